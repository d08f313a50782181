"""Text from outside, made fit to be read: nothing in it drives a terminal or turns a line round."""

from __future__ import annotations


def safe(text: str) -> str:
    """``text`` from outside without control characters: a kernel's name must not drive the terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def fit(text: str, width: int) -> str:
    """At most ``width`` characters of ``text``, made safe, with an ellipsis where it is cut."""
    # Cut before cleaning as well: a hostile name may be 64 KiB long.
    clean = safe(text[: width + 1])
    return clean if len(clean) <= width else clean[: max(0, width - 1)] + "…"
