"""Text from files as text that UTF-8 can hold."""

from __future__ import annotations


def shown(text: str) -> str:
    """The text with bytes that were no UTF-8 (kept by ``surrogateescape``) and half surrogates escaped."""
    if text.isascii():
        return text
    try:
        raw = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raw = text.encode("utf-8", "backslashreplace")
    return raw.decode("utf-8", "backslashreplace")
