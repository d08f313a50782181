"""HTML by construction: what is not made by :func:`tag` is text, and text is escaped."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable
from typing import Any

from rooflight.report.text import safe

NB = "\u00a0"
_VOID = ("input", "meta")


class Html(str):
    """Finished markup; only this module makes it."""

    __slots__ = ()


def tag(name: str, /, *children: str, **attributes: str | float | None) -> Html:
    """An element.  Children that are no :class:`Html` are escaped; so is every attribute.

    ``cls`` is the attribute class, an underscore in a name a hyphen; ``None`` leaves an attribute out.
    """
    given = "".join(
        f' {_name(key)}="{_escaped(_text(value))}"' for key, value in attributes.items() if value is not None
    )
    return Html(f"<{name}{given}>" if name in _VOID else f"<{name}{given}>{join(children)}</{name}>")


def join(children: Iterable[str]) -> Html:
    """Children one after the other, text among them escaped."""
    return Html("".join(c if isinstance(c, Html) else _escaped(c) for c in children))


def data(value: Any, name: str) -> Html:
    """``value`` as a block of JSON under the id ``name``; no character of it can end the block."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    return Html(f'<script type="application/json" id="{_escaped(name)}">{text}</script>')


def script(source: str) -> Html:
    """A script of our own or of a library; ValueError when it holds what would end it."""
    if "</script" in source.lower() or "<!--" in source:
        raise ValueError("this script cannot stand inside a page")
    return Html(f"<script>{source}</script>")


def style(source: str) -> Html:
    """A style sheet of our own."""
    if "</style" in source.lower():
        raise ValueError("this style sheet cannot stand inside a page")
    return Html(f"<style>{source}</style>")


def _name(key: str) -> str:
    return "class" if key == "cls" else key.replace("_", "-")


def _text(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.3f}".rstrip("0").rstrip(".")


def _escaped(text: str) -> str:
    # The no-break space between a number and its unit counts as not printable.
    return html.escape(NB.join(map(safe, text.split(NB))))
