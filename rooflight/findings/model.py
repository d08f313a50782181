"""What a rule is and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Generic, Self, TypeVar

from rooflight.attribution.intervals import EMPTY, Set, measure

#: What a rule looks at: a recording's Facts, or how a rank Waits for the others.
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Seen:
    """A row of evidence in words; ``groups`` are places in the kernel groups, ``steps`` numbers of steps."""

    text: str
    groups: tuple[int, ...] = ()
    steps: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """What a rule saw.

    ``time_ns`` is the time of the rows that it speaks of, over all counted steps; ``saving_ns`` how much of
    it would go at most, ``None`` where nothing tells; ``assumption`` what that rests on, in words; ``when``
    the instants of that time, empty where nothing is to be saved.
    """

    seen: tuple[Seen, ...]
    time_ns: int
    saving_ns: float | None
    assumption: str
    when: Set = field(default_factory=lambda: EMPTY, compare=False)

    @classmethod
    def over(cls, when: Set, seen: tuple[Seen, ...], saving_ns: float | None, assumption: str) -> Self:
        """What was seen in these instants of the counted time."""
        return cls(seen, measure(when), saving_ns, assumption, when)


@dataclass(frozen=True, slots=True)
class Rule(Generic[T]):
    """A rule with what its page says: what it sees (``check``'s docstring), why that costs, how to fix it and
    when it is wrong.  ``regime`` is the regime that it speaks of.  ``quiet`` rules speak of the recording
    itself and also where its verdicts are withheld.
    """

    code: str
    title: str
    check: Callable[[T], Iterable[Found]]
    why: str
    fix: str
    false_alarms: str
    regime: str | None = None
    quiet: bool = False

    @property
    def sees(self) -> str:
        return (self.check.__doc__ or "").strip()
