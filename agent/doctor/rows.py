"""What a look found: rows in three states."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

import msgspec

State = Literal["ok", "warning", "problem"]


class Row(msgspec.Struct, frozen=True):
    """One line.  ``problem``: it does not work; ``warning``: something is left out, or will be;
    ``fix`` is what to do, empty where nothing must be done."""

    check: str
    state: State
    text: str
    fix: str = ""

    def line(self) -> str:
        """The row for a person."""
        # A process may have any command line, with line ends too.
        told = " ".join(f"{self.text}{f'. {self.fix}' if self.fix else ''}".split())
        return f"{self.state:<8} {self.check:<12} {told}"


def guarded(check: str, look: Callable[[], Iterable[Row]]) -> list[Row]:
    """The rows of a look; one that fails by itself is a row too, and the others go on."""
    try:
        return list(look())
    except Exception as e:  # whatever a broken host does to it, the rest is still told
        return [Row(check, "warning", f"could not be looked at: {type(e).__name__}: {e}")]
