"""What the device waited for: the largest kinds of idle time, as every surface shows them."""

from __future__ import annotations

from dataclasses import dataclass

from rooflight.protocol import Idle, Rank
from rooflight.report.summary import Summary, counted, ms

TOP_WAITS = 6
#: Shares of the wall time below this are no place to look first, in percent.
LEAST_PCT = 1.0
NOTHING_OPEN = "no op, call or annotation"


@dataclass(frozen=True, slots=True)
class Wait:
    """Idle time of one kind: ``us`` per step (without steps in all), ``share_pct`` of the wall time.

    ``what`` explains it and ``where`` is the line of Python, "" where it is not known.
    """

    cause: str
    us: float
    share_pct: float
    what: str
    where: str
    seen: str


def waits(rank: Rank, s: Summary) -> list[Wait]:
    """The largest of the device that the other figures are of; none where no verdict is given, since idle
    time is then no fact."""
    steps = 1 if s.whole else sum(x.parts_us is not None for x in s.steps)
    if s.withheld or s.on_cpu or not s.wall_us or not steps:
        return []
    mine = [r for r in rank.idle if r.device == rank.headline and not r.rest]
    found = [_wait(r, steps, s) for r in sorted(mine, key=lambda r: -r.time_us)[:TOP_WAITS]]
    return [w for w in found if w.share_pct >= LEAST_PCT]


def _wait(r: Idle, steps: int, s: Summary) -> Wait:
    us = r.time_us / steps
    where = r.python if r.python and r.python != r.frame else ""
    return Wait(r.cause, us, 100 * us / s.wall_us, r.frame or NOTHING_OPEN, where, _seen(r, s))


def _seen(r: Idle, s: Summary) -> str:
    longest = "" if r.longest_us is None else f", at most {ms(r.longest_us)}"
    at = f" in {s.step} {r.step}" if longest and r.step is not None else ""
    return f"{counted(r.count, 'gap')}{longest}{at}"
