"""Which op was called by which (DEFINITIONS §5)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rooflight.trace.tables import HostEvents, HostKind, rows_by

#: Clocks are read twice, so a child may seem to end this much after its parent.
TOLERANCE_NS = 1_000


def children(host: HostEvents) -> Iterator[tuple[int, int]]:
    """(parent, child) rows of ``host`` for every op that runs inside another, thread by thread.

    The parent is the op that started last of those around the child's start which end at most 1 µs
    before the child does.
    """
    ops = np.flatnonzero(host.kind == HostKind.CPU_OP)
    for _, at in rows_by(host.thread[ops]):
        rows = ops[at]
        rows = rows[np.lexsort((-host.end[rows], host.start[rows]))]
        around: list[tuple[int, int]] = []
        for row, start, end in zip(
            rows.tolist(), host.start[rows].tolist(), host.end[rows].tolist(), strict=True
        ):
            around = [(e, r) for e, r in around if e > start]
            parent = next((r for e, r in reversed(around) if end <= e + TOLERANCE_NS), None)
            if parent is not None:
                yield parent, row
            around.append((end, row))
