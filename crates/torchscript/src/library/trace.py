"""Tracing, which never happens here."""


def is_tracing() -> bool:
    return False
