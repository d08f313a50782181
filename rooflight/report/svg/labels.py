"""Labels beside points that never lie over one another; none beats a crowded one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rooflight.report.svg.sheet import width_of

_HALF = 7.0  # px: half a line
_GAP = 4.0
#: How far above or below a dot its text may stand, px.
_OFF = (0.0, 16.0, 34.0, 56.0)
#: The small ones have no label: what they cover does no harm.
_LOOKED_AT = 60


@dataclass(frozen=True, slots=True)
class Box:
    """Pixels from the left and from the top."""

    x0: float
    y0: float
    x1: float
    y1: float

    def crosses(self, other: Box) -> bool:
        return self.x0 < other.x1 and other.x0 < self.x1 and self.y0 < other.y1 and other.y0 < self.y1

    def within(self, other: Box) -> bool:
        return other.x0 <= self.x0 and self.x1 <= other.x1 and other.y0 <= self.y0 and self.y1 <= other.y1


@dataclass(frozen=True, slots=True)
class Dot:
    """A point of radius ``r`` px, and what would be written beside it."""

    x: float
    y: float
    r: float
    text: str

    @property
    def box(self) -> Box:
        return Box(self.x - self.r, self.y - self.r, self.x + self.r, self.y + self.r)


@dataclass(frozen=True, slots=True)
class Label:
    """Where the text of a dot stands: to the right of ``x``, or to the left of it (``end``).  ``led``
    says that it is so far off that a line has to lead to its dot."""

    x: float
    y: float
    dot: Dot
    end: bool
    led: bool = False


def placed(dots: list[Dot], taken: Iterable[Box], frame: Box, most: int) -> list[Label]:
    """Labels of the largest dots, the first first, at most so many and none twice."""
    blocked = [*taken, *(d.box for d in dots[:_LOOKED_AT])]
    found: list[Label] = []
    said: set[str] = set()
    for dot in dots[:_LOOKED_AT]:
        if len(found) == most:
            break
        label = None if dot.text in said else next(_free(dot, blocked, frame), None)
        if label is not None:
            found.append(label)
            said.add(dot.text)
            blocked.append(_box(label))
    return found


def _free(dot: Dot, blocked: list[Box], frame: Box) -> Iterator[Label]:
    """Places for a dot's text that nothing else has."""
    for label in _places(dot):
        box = _box(label)
        if box.within(frame) and not any(box.crosses(b) for b in blocked if b != dot.box):
            yield label


def _places(dot: Dot) -> Iterator[Label]:
    """Right, left, above, below; then farther off, with a line that leads there."""
    beside = dot.r + _GAP
    yield Label(dot.x + beside, dot.y, dot, end=False)
    yield Label(dot.x - beside, dot.y, dot, end=True)
    for off in _OFF:
        for y in (dot.y - dot.r - _HALF - off, dot.y + dot.r + _HALF + off):
            yield Label(dot.x, y, dot, end=False, led=off > 0)
            yield Label(dot.x, y, dot, end=True, led=off > 0)


def _box(label: Label) -> Box:
    wide = width_of(label.dot.text)
    x0 = label.x - wide if label.end else label.x
    return Box(x0, label.y - _HALF, x0 + wide, label.y + _HALF)
