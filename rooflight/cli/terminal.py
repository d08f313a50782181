"""How text reaches a terminal: colour, width, characters that it can show and none that it obeys."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TextIO

from rooflight.report.text import fit as fit
from rooflight.report.text import safe as safe

#: 256-colour codes next to the regime colours of the pages.
_COLOURS: Mapping[str, int] = {
    "compute": 32,
    "memory": 214,
    "latency": 175,
    "communication": 36,
    "copy": 75,
    "input": 166,
    "host": 94,
    "dependency": 62,
    "unknown": 245,
}
_ASCII = str.maketrans(
    {
        "·": "-", "–": "-", "−": "-", "…": "...", "‹": "<", "›": ">", "µ": "u", "×": "x", "█": "#", "▒": ":",
        "▏": "|", "→": "->", "─": "-",
    }
)  # fmt: skip
_DEFAULT_WIDTH = 100


@dataclass(frozen=True, slots=True)
class Terminal:
    """What the reader's terminal can do.  ``width`` is in characters."""

    unicode: bool = True
    colour: bool = False
    width: int = _DEFAULT_WIDTH

    def paint(self, text: str, regime: str) -> str:
        """``text`` in the colour of a regime, or as it is."""
        if not self.colour or regime not in _COLOURS:
            return text
        return f"\x1b[38;5;{_COLOURS[regime]}m{text}\x1b[0m"

    def strong(self, text: str) -> str:
        return f"\x1b[1m{text}\x1b[0m" if self.colour else text

    def final(self, text: str) -> str:
        """``text`` in characters that the terminal has."""
        if self.unicode:
            return text
        return text.translate(_ASCII).encode("ascii", "backslashreplace").decode("ascii")


def of_stream(stream: TextIO) -> Terminal:
    """What ``stream`` can show: colour only on a terminal and unless NO_COLOR is set."""
    tty = stream.isatty()
    encoding = (getattr(stream, "encoding", None) or "ascii").lower().replace("-", "")
    width = shutil.get_terminal_size((_DEFAULT_WIDTH, 24)).columns if tty else _DEFAULT_WIDTH
    return Terminal(
        unicode=encoding == "utf8",
        colour=tty and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb",
        width=max(60, min(width, 160)),
    )
