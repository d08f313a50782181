"""Questions that take long, so many at a look and no more."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field


@dataclass
class Turns:
    """At most ``most`` questions in a look; nobody has a second turn before all had one."""

    most: int
    _left: int = 0
    _seen: set[Hashable] = field(default_factory=set)
    _had: set[Hashable] = field(default_factory=set)

    def begin(self) -> None:
        """A look begins."""
        if self._had >= self._seen:
            self._had.clear()
        self._left, self._seen = self.most, set()

    def take(self, who: Hashable) -> bool:
        """Whether it is the turn of ``who``."""
        self._seen.add(who)
        if who in self._had or not self._left:
            return False
        self._had.add(who)
        self._left -= 1
        return True
