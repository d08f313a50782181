"""The forward op that a backward op computes the gradients of, by autograd's sequence numbers.

A forward op carries the number that autograd will give next, so every op that records no gradient, and
every one inside of another, shares the number of the op that takes it: that one is the last in time
(KINETO, section 2.5).  Each thread counts for itself, and a backward op names its forward thread by a
number of torch's own, which no forward row carries.  Which thread is meant is told by the numbers: the
one thread of the process that holds most of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rooflight.trace.tables import I64, HostKind, among, distinct
from rooflight.trace.timeline import Timeline

#: Forward passes run on one thread, or on one for each replica; of more the busiest are looked at.
MAX_THREADS = 8


@dataclass(frozen=True, slots=True)
class Pairs:
    """Rows of ``timeline.host``, aligned: backward ops whose forward op is known, and that op."""

    backward: I64
    forward: I64


def forward_ops(timeline: Timeline) -> Pairs:
    """Every backward op with a number, and the last forward op with it that started before."""
    host = timeline.host
    numbered = (host.kind == HostKind.CPU_OP) & (host.seq >= 0)
    backward = np.flatnonzero(numbered & (host.fwd_thread > 0))
    if not backward.size:
        return Pairs(backward, backward)
    forward = np.flatnonzero(numbered & (host.fwd_thread == 0))
    forward = forward[among(host.seq[forward], host.seq[backward])]
    found = _on_its_thread(
        timeline, backward, [_last(timeline, backward, f) for f in _threads(timeline, forward)]
    )
    return Pairs(backward[found >= 0], found[found >= 0])


def processes(timeline: Timeline) -> I64:
    """The number of the process of each thread of ``timeline.threads``."""
    table: dict[str, int] = {}
    return np.array([table.setdefault(pid, len(table)) for pid, _ in timeline.threads], np.int64)


def _threads(timeline: Timeline, forward: I64) -> list[I64]:
    """The forward ops of each thread that has any, the busiest threads first."""
    thread = timeline.host.thread[forward]
    found, counts = np.unique(thread, return_counts=True)
    busiest = found[np.argsort(-counts, kind="stable")][:MAX_THREADS]
    return [forward[thread == t] for t in busiest.tolist()]


def _last(timeline: Timeline, backward: I64, forward: I64) -> I64:
    """For each backward op the last of these forward ops, all of one thread, with its number; else -1."""
    host = timeline.host
    forward = forward[np.lexsort((host.start[forward], host.seq[forward]))]
    seq, starts = host.seq[forward], np.sort(host.start[forward])
    numbers = distinct(seq)
    width = starts.size + 1
    keys = np.searchsorted(numbers, seq) * width + np.searchsorted(starts, host.start[forward], side="right")
    wanted = np.searchsorted(numbers, host.seq[backward]) * width
    at = np.searchsorted(keys, wanted + np.searchsorted(starts, host.start[backward]), side="right") - 1
    of_thread = processes(timeline)
    same_process = of_thread[host.thread[backward]] == of_thread[host.thread[forward[0]]]
    known = (at >= 0) & (seq[at] == host.seq[backward]) & same_process
    last: I64 = np.where(known, forward[at], -1)
    return last


def _on_its_thread(timeline: Timeline, backward: I64, on_thread: list[I64]) -> I64:
    """The candidate on the thread that each backward op means; -1 where that stays open."""
    if len(on_thread) < 2:
        return on_thread[0] if on_thread else np.full(backward.size, -1, np.int64)
    table, host = np.stack(on_thread), timeline.host
    passes = np.stack((processes(timeline)[host.thread[backward]], host.fwd_thread[backward]))
    _, group = np.unique(passes, axis=1, return_inverse=True)
    votes = np.stack([np.bincount(group.ravel(), row >= 0)[group.ravel()] for row in table]).astype(np.int64)
    meant = _only_best(votes)
    row = np.where(meant >= 0, meant, _only_best((table >= 0).astype(np.int64)))
    chosen: I64 = np.where(row >= 0, table[row, np.arange(backward.size)], -1)
    return chosen


def _only_best(votes: I64) -> I64:
    """The row with most votes in each column; -1 where several have as many, or none has any."""
    best = votes.max(axis=0)
    single = (np.count_nonzero(votes == best, axis=0) == 1) & (best > 0)
    row: I64 = np.where(single, votes.argmax(axis=0), -1)
    return row
