"""What a rule about one rank of a run may look at, once the ranks are compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rooflight.attribution.intervals import Set

#: From here on shares are uneven: the largest over the mean.
LEAST_RATIO = 1.25


@dataclass(frozen=True, slots=True)
class Shares:
    """What a rank's all-to-alls share out: in ``uneven`` of ``exchanges`` the largest share is at least
    ``LEAST_RATIO`` times the mean, ``ratio`` times in their median.

    ``heaviest`` is the rank that has it most often (``times``), ``None`` where only this rank's own split is
    known.  ``when`` is the exposed time of the uneven ones and of the waiting for that rank, within the
    steps; of it ``moving_ns`` and ``waiting_ns`` rest on the unevenness.  ``experts`` is the longest time of
    grouped products of a rank over the mean of the ranks.
    """

    exchanges: int
    uneven: int
    ratio: float
    heaviest: int | None
    times: int
    when: Set
    moving_ns: float
    waiting_ns: float
    experts: float | None = None


@dataclass(frozen=True, slots=True)
class Waits:
    """How one rank waits for another.

    ``straggler`` is the rank for which this rank (``rank``) waited most often in the collectives that it took
    part in: in ``last`` of ``collectives``.  Where there are no ``steps``, the whole recording is one; else
    they are the numbers of the counted ones.  ``wait_ns`` is the exposed communication of each before that
    one had arrived, ``when`` its instants, ``wall_ns`` the time of the steps, each instant once.  ``groups``
    are places of the rank's communication kernels in its kernel table.  ``shares`` are those of its
    all-to-alls; a rank alone has no straggler but itself.  ``unlike`` says what some ranks recorded and
    others did not.  ``withheld``: the rank has no GPU work, or its recording allows no verdicts.
    """

    rank: int
    straggler: int
    last: int
    collectives: int
    steps: Sequence[int]
    wait_ns: Sequence[float]
    when: Set
    wall_ns: int
    groups: tuple[int, ...] = ()
    shares: Shares | None = None
    unlike: Sequence[str] = ()
    withheld: bool = False

    @property
    def counted(self) -> int:
        """How many steps a mean is over; 1 for a recording without steps."""
        return max(1, len(self.steps))

    def each(self, ns: float) -> str:
        """The mean per counted step, as text; without steps the whole."""
        return f"{ns / self.counted / 1e6:.3g} ms{' per step' if self.steps else ''}"
