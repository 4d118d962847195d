"""What methods of modules return."""

from typing import NamedTuple


class IncompatibleKeys(NamedTuple):
    """Names that a module and a state dictionary do not share."""

    #: The module has them, the dictionary has not.
    missing_keys: list[str]
    #: The dictionary has them, the module has not.
    unexpected_keys: list[str]
