"""Ranks that get more than their share in all-to-alls."""

from __future__ import annotations

from collections.abc import Iterator

from rooflight.findings.model import Found, Seen
from rooflight.findings.registry import run_rule
from rooflight.findings.waits import LEAST_RATIO, Shares, Waits

_FEWEST = 4


@run_rule(
    "uneven-experts",
    "All-to-alls give some ranks more than their share",
    regime="communication",
    why="An all-to-all lasts until the rank with the largest share has it, and the next one begins when that "
    "rank has worked it off; the others stand still.",
    fix="Balance what is routed: an auxiliary loss or bias for the router, a capacity per expert, hot "
    "experts replicated or placed apart; embedding tables sharded by their load, large ones by rows.",
    false_alarms="A few steps may be uneven by chance: look at more of them.  With one rank its own splits "
    "stand for those of all others.",
)
def uneven_experts(waits: Waits) -> Iterator[Found]:
    """Four all-to-alls or more in which the largest share is at least a quarter over the mean: the exposed
    transfer that a mean share would not take, and the exposed waiting, at the next all-to-all of the group,
    for the rank that had the largest.  With several ranks the shares are what each receives, with one the
    parts that it sends (In split size)."""
    s = waits.shares
    if s is None or s.uneven < _FEWEST or s.ratio < LEAST_RATIO:
        return
    yield Found.over(
        s.when,
        tuple(Seen(text, waits.groups) for text in _texts(waits, s)),
        s.moving_ns + s.waiting_ns,
        "every rank gets the mean share"
        if s.heaviest is not None
        else "every rank gets the mean share; the others send in the proportions of this one",
    )


def _texts(waits: Waits, s: Shares) -> Iterator[str]:
    who = "" if s.heaviest is None else f", most often for rank {s.heaviest} ({s.times} times)"
    yield (
        f"in {s.uneven} of {s.exchanges} all-to-alls the largest share is {s.ratio:.2f} times the mean{who}; "
        f"{waits.each(s.moving_ns)} of transfer and {waits.each(s.waiting_ns)} of waiting rest on it"
    )
    if s.experts is not None:
        yield f"grouped products take the slowest rank {s.experts:.2f} times the mean of the ranks"
