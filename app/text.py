"""Text from outside, made storable: the same on every database.

PostgreSQL cannot hold a NUL, and a lone surrogate has no UTF-8: NULs are left out, surrogates become
backslash escapes.  Everything else, markup included, is data and stays as it is.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, StringConstraints


def clean(text: str) -> str:
    """``text`` without what a database cannot hold."""
    return text.replace("\0", "").encode("utf-8", "backslashreplace").decode("utf-8")


def clean_all(value: Any) -> Any:
    """Plain JSON data with every text cleaned, keys included."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(k) if isinstance(k, str) else k: clean_all(v) for k, v in value.items()}
    if isinstance(value, list):
        return [clean_all(v) for v in value]
    return value


def _named(text: str) -> str:
    text = clean(text).strip()
    if not text:
        raise ValueError("a name must not be empty")
    return text


#: A name that somebody gives: 1 to 200 characters.
Name = Annotated[str, StringConstraints(max_length=200), AfterValidator(_named)]
#: A text that may be empty.
Words = Annotated[str, StringConstraints(max_length=2_000), AfterValidator(clean)]
