"""What methods of modules return."""

from typing import NamedTuple


class IncompatibleKeys(NamedTuple):
    """Names that a module and a state dictionary do not share.

    >>> import frazil
    >>> frazil.script("def f(x: int): return x").load_state_dict({}, strict=False)
    IncompatibleKeys(missing_keys=[], unexpected_keys=[])
    """

    #: The module has them, the dictionary has not.
    missing_keys: list[str]
    #: The dictionary has them, the module has not.
    unexpected_keys: list[str]
