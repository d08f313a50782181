"""What a rule about one rank of a run may look at, once the ranks are compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Waits:
    """How one rank waits for another.

    ``straggler`` is the rank that came last most often in the collectives that this rank (``rank``) took
    part in: in ``last`` of ``collectives``.  ``steps`` are the numbers of the counted steps, ``wait_ns`` the
    exposed communication of each before the last rank had arrived, ``wall_ns`` the length of them all.
    ``groups`` are places of the rank's communication kernels in its kernel table.
    """

    rank: int
    straggler: int
    last: int
    collectives: int
    steps: Sequence[int]
    wait_ns: Sequence[float]
    wall_ns: float
    groups: tuple[int, ...] = ()

    @property
    def counted(self) -> int:
        """How many steps a mean is over."""
        return max(1, len(self.steps))
