"""The colours of figures, from the design tokens: the one place in which they are written down."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

_HEX = "#[0-9a-f]{6}"
_TOKEN = re.compile(rf"--([a-z0-9-]+): (?:light-dark\(({_HEX}), ({_HEX}|transparent)\)|({_HEX}));")


@cache
def tokens() -> dict[str, tuple[str, str]]:
    """Colours by token, as they are in light and in dark."""
    text = (resources.files("rooflight") / "report" / "assets" / "tokens.css").read_text("utf-8")
    return {name: (both or light, both or dark) for name, light, dark, both in _TOKEN.findall(text)}


def light(token: str) -> str:
    """The colour of a token on paper; that of ``unknown`` for what is none."""
    known = tokens()
    return known.get(token, known["unknown"])[0]
