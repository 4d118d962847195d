"""The exceptions of this package.

All derive from :class:`Error`, which is a :class:`RuntimeError`, as ``torch.jit.Error`` is: a program that catches what PyTorch raises
catches these. Files that cannot be read or written raise :class:`OSError` (:class:`FileNotFoundError`, ...), and attributes that are
missing :class:`AttributeError`.
"""

__all__ = ["ArgumentError", "Error", "InputError", "LimitError", "RaisedError", "UnsupportedError"]


class Error(RuntimeError):
    """The base of all of them, and the class of failures that have no class of their own.

    >>> import frazil
    >>> try:
    ...     frazil.load(b"no archive")
    ... except frazil.Error as error:
    ...     print(type(error).__name__)
    InputError
    """

    #: Places in the source of the model, ``file:line:column`` each, the innermost first.
    places: list[str] = []


class ArgumentError(Error, TypeError):
    """A call with missing, unknown or unsuitable arguments.

    >>> import frazil
    >>> frazil.script("def f(x: int): return x").f("one")
    Traceback (most recent call last):
    ...
    frazil.errors.ArgumentError: f() Expected a value of type 'int' for argument 'x' but instead found type 'str'.
    ...
    """


class InputError(Error, ValueError):
    """A malformed archive, text, pipeline or state dictionary.

    >>> import frazil
    >>> frazil.script("def f(x: return x")
    Traceback (most recent call last):
    ...
    frazil.errors.InputError: <string>:1:...
    """


class LimitError(Error):
    """A limit of the option ``limits`` was exceeded.

    >>> import frazil
    >>> frazil.script("def f(n: int): return torch.zeros(n)", limits="elements=10").f(100)
    Traceback (most recent call last):
    ...
    frazil.errors.LimitError: ...elements=10...
    """


class RaisedError(Error):
    """The model raised an exception. The text has its class, its message, and the places in the source.

    >>> import frazil
    >>> unit = frazil.script("def f(x: int):\\n    assert x > 0, 'x is too small'\\n    return x")
    >>> try:
    ...     unit.f(0)
    ... except frazil.RaisedError as error:
    ...     print(error.args[0].splitlines()[0], error.places)
    RuntimeError: AssertionError: x is too small ['<string>:2:4']
    """


class UnsupportedError(Error, NotImplementedError):
    """Something that does not exist here, or that cannot be done with this model.

    >>> import frazil
    >>> frazil.script("def f(x: int): return x").cuda()
    Traceback (most recent call last):
    ...
    frazil.errors.UnsupportedError: `cuda` has no counterpart here: the host is the only device
    """
