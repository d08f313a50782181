"""Which phase of training launched a GPU event: the innermost mark around its launch.

Marks are the ops of autograd's backward pass, the ``Optimizer.step#`` and ``Optimizer.zero_grad#`` rows
and the waits for the next batch.  Without a mark, what an op or a module launched is the forward pass.
"""

from __future__ import annotations

import re

import numpy as np

from rooflight.attribution.idle import is_input
from rooflight.attribution.launches import Links, enclosing
from rooflight.trace.tables import I8, HostKind, Mask
from rooflight.trace.timeline import Timeline

PHASES = ("forward", "backward", "optimizer", "data", "other")
FORWARD, BACKWARD, OPTIMIZER, DATA, OTHER = range(len(PHASES))
#: The engine's rows, and the nodes that it runs, which is all that recordings up to 2021 hold.
_BACKWARD = re.compile(
    r"autograd::engine::evaluate_function: |torch::autograd::AccumulateGrad$|[A-Za-z]\w*Backward\d*$"
)
_OPTIMIZER = ("Optimizer.step#", "Optimizer.zero_grad#")


def phases(timeline: Timeline, links: Links) -> I8:
    """Row-aligned with ``timeline.gpu``: the place of each event's phase in :data:`PHASES`."""
    host = timeline.host
    # One more for the row -1: no launch.
    mark = np.full(len(host) + 1, -1, np.int8)
    mark[:-1] = _of_names(timeline)[host.name]
    mark[:-1][(host.kind == HostKind.CPU_OP) & (host.fwd_thread > 0)] = BACKWARD
    mark[:-1][~_may_mark(timeline)] = -1
    around = enclosing(timeline, links.launch, np.flatnonzero(mark >= 0))
    found = mark[around]
    inside = (links.op >= 0) | (links.module >= 0)
    result: I8 = np.where(found >= 0, found, np.where(inside, FORWARD, OTHER)).astype(np.int8)
    return result


def backward_marks(timeline: Timeline) -> Mask:
    """Row-aligned with ``timeline.host``: the rows of autograd's backward pass."""
    host = timeline.host
    named = np.append(_of_names(timeline) == BACKWARD, False)[host.name]
    of_op = (host.kind == HostKind.CPU_OP) & (host.fwd_thread > 0)
    marks: Mask = (named | of_op) & _may_mark(timeline)
    return marks


def _of_names(timeline: Timeline) -> I8:
    return np.array([_phase(name) for name in timeline.names] or [-1], np.int8)


def _phase(name: str) -> int:
    if name.startswith(_OPTIMIZER):
        return OPTIMIZER
    if _BACKWARD.match(name):
        return BACKWARD
    return DATA if is_input(name) else -1


def _may_mark(timeline: Timeline) -> Mask:
    return np.isin(timeline.host.kind, (HostKind.CPU_OP, HostKind.ANNOTATION))
