"""What the counters of one launch amount to."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

#: Metrics by the tool's names; times are ns.
Values = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Executed:
    """FLOPs that ran, the type that most of them are of, and whether the matrix unit ran them.

    ``source`` names the metrics, for the reason of the cost.
    """

    flops: int
    dtype: str | None
    matrix: bool
    source: str


@dataclass(frozen=True, slots=True)
class Moved:
    """Device-memory bytes; ``read`` and ``written`` are ``None`` where only their sum was counted."""

    total: int
    read: int | None
    written: int | None
    source: str


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes through a cache; ``peak`` is the most that it could have moved, B/s, at the clocks at which it
    was counted, ``None`` where the counters do not tell."""

    bytes: int
    peak: float | None


@dataclass(frozen=True, slots=True)
class Counted:
    """What counters tell of one launch; ``None`` is unknown."""

    executed: Executed | None = None
    moved: Moved | None = None
    l2: Traffic | None = None
    l1: Traffic | None = None

    def filled(self, other: Counted) -> Counted:
        """This, with what it lacks from another."""
        return Counted(
            self.executed or other.executed,
            self.moved or other.moved,
            self.l2 or other.l2,
            self.l1 or other.l1,
        )


NOTHING = Counted()


@dataclass(frozen=True, slots=True)
class Kernel:
    """What has to be known of a kernel to understand its counters.

    ``dtype`` is its element type by name or operands, ``matrix_unit`` whether its name tells that it uses
    the matrix units, ``compute`` the device's "major.minor"; ``None`` is unknown.
    """

    dtype: str | None = None
    matrix_unit: bool | None = None
    compute: str | None = None

    @property
    def major(self) -> int | None:
        head = (self.compute or "").partition(".")[0]
        return int(head) if head.isascii() and head.isdecimal() and len(head) < 6 else None


def whole(amount: float) -> int:
    """A count: metrics that were scaled or averaged come with a fraction; -1 for what is no number."""
    return round(amount) if math.isfinite(amount) else -1


def sum_of(values: Values, weights: Mapping[str, int]) -> float | None:
    """The weighted sum; ``None`` when one of the metrics is missing."""
    if any(metric not in values for metric in weights):
        return None
    return sum(values[metric] * weight for metric, weight in weights.items())
