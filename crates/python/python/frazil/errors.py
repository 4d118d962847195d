"""The exceptions of this package.

All derive from :class:`Error`, which is a :class:`RuntimeError`, as ``torch.jit.Error`` is: a program that catches what PyTorch raises
catches these. Files that cannot be read or written raise :class:`OSError` (:class:`FileNotFoundError`, ...), and attributes that are
missing :class:`AttributeError`.
"""

__all__ = ["ArgumentError", "Error", "InputError", "LimitError", "RaisedError", "UnsupportedError"]


class Error(RuntimeError):
    """The base of all of them, and the class of failures that have no class of their own."""

    #: Places in the source of the model, ``file:line:column`` each, the innermost first.
    places: list[str] = []


class ArgumentError(Error, TypeError):
    """A call with missing, unknown or unsuitable arguments."""


class InputError(Error, ValueError):
    """A malformed archive, text, pipeline or state dictionary."""


class LimitError(Error):
    """A limit of the option ``limits`` was exceeded."""


class RaisedError(Error):
    """The model raised an exception. The text has its class, its message, and the places in the source."""


class UnsupportedError(Error, NotImplementedError):
    """Something that does not exist here, or that cannot be done with this model."""
