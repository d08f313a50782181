"""An optimizer that goes over its parameters in many kernels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rooflight.attribution.launches import enclosing
from rooflight.attribution.modules import named
from rooflight.findings.evidence import of_rows
from rooflight.findings.facts import Facts
from rooflight.findings.model import Found
from rooflight.findings.registry import LEAST, rule
from rooflight.roofline.groups import Group
from rooflight.trace.tables import I64, HostKind, among, distinct, values_at
from rooflight.units import NS_PER_S

_STEP = "Optimizer.step#"
_ADAM = frozenset({"Optimizer.step#Adam.step", "Optimizer.step#AdamW.step"})
#: Once per step Adam divides its first moment by the root of its second, and adds that to the parameters.
_UPDATE = ("aten::addcdiv_", "aten::_foreach_addcdiv_")
#: The update reads three tensors and writes one; the fused kernel reads parameter, gradient and both moments,
#: and writes all but the gradient.
_UPDATE_PASSES, _FUSED_PASSES = 4, 7
_MANY = 20


@rule(
    "unfused-optimizer",
    "The optimizer is not fused",
    regime="memory",
    why="Each of its dozen operations reads and writes all parameters or their state once more, and a "
    "for-loop launches all of them for every single parameter.",
    fix="fused=True (Adam, AdamW, SGD, Adagrad), else foreach=True; for other optimizers "
    "torch.compile(optimizer.step).",
    false_alarms="Optimizers that multiply matrices (Shampoo, Muon) have work of their own inside.  "
    "Parameters that no gradient reached are not counted.",
)
def unfused_optimizer(facts: Facts) -> Iterator[Found]:
    """Twenty elementwise kernels or more in each Optimizer.step, none of them from a fused op."""
    calls, rows, around = _launched(facts)
    rows_op = facts.op_names[rows]
    names = facts.timeline.names
    fused = np.array([i for i, n in enumerate(names) if n.startswith("aten::_fused_")], np.int64)
    plain = np.array([i for i, n in enumerate(names) if n.startswith("aten::")], np.int64)
    eager = among(rows_op, plain)
    if among(rows_op, fused).any() or eager.sum() < max(_MANY * calls, 1):
        return
    rows, around = rows[eager], around[eager]
    time = int(facts.own_ns[rows].sum())
    if time < LEAST * facts.wall_ns:
        return
    saving, assumption = _saving(facts, rows, around, time)
    each = f"{rows.size / calls:.3g} kernels per call of the optimizer"
    yield of_rows(facts, rows, saving, assumption, f"{each}, ")


def _launched(facts: Facts) -> tuple[int, I64, I64]:
    """How many calls of an optimizer launched something in the counted time; what they launched; the name of
    the call around each."""
    host = facts.timeline.host
    steps = np.flatnonzero((host.kind == np.int8(HostKind.ANNOTATION)) & named(facts.timeline, _STEP))
    rows = facts.kernel_rows
    if not steps.size:
        return 0, rows[:0], rows[:0]
    call = enclosing(facts.timeline, facts.links.launch[rows], steps)
    inside = call >= 0
    return distinct(call[inside]).size, rows[inside], values_at(host.name, call[inside], -1)


def _saving(facts: Facts, rows: I64, around: I64, time: int) -> tuple[float | None, str]:
    """What would go in ns, and what that rests on."""
    memory, params = facts.roofs.memory, _parameter_bytes(facts, rows)
    adam = np.array(facts.timeline.name_ids(*_ADAM), np.int64)
    if memory is not None and memory.practical and params and bool(among(around, adam).all()):
        fused_ns = _FUSED_PASSES * params * NS_PER_S / memory.practical
        return max(0.0, time - fused_ns), (
            f"one fused kernel moves {_FUSED_PASSES} x {round(params / facts.counted):,} bytes: parameters, "
            "gradients and both moments in, all but the gradients out, all as wide as the parameters"
        )
    known = [g for g in distinct(facts.groups.of_event[rows]).tolist() if _is_known(facts, g)]
    if not known:
        return None, "the sizes of its tensors are not recorded"
    shares = np.array([facts.excess_ns(g) / max(1, facts.group_ns(g)) for g in range(len(facts.groups.rows))])
    return float((facts.own_ns[rows] * shares[facts.groups.of_event[rows]]).sum()), (
        "its kernels take the time of their bytes alone"
    )


def _is_known(facts: Facts, group: int) -> bool:
    g: Group = facts.groups.rows[group]
    return facts.verdicts[group].regime != "unknown" and g.bound.bound_ns is not None


def _parameter_bytes(facts: Facts, rows: I64) -> int:
    """Bytes of all parameters over all counted calls, from what the update moves; 0 where that is unknown."""
    updates = np.array(facts.timeline.name_ids(*_UPDATE), np.int64)
    mine = facts.groups.of_event[rows[among(facts.op_names[rows], updates)]]
    moved = 0.0
    for group, n in zip(*np.unique(mine, return_counts=True), strict=True):
        g = facts.groups.rows[int(group)]
        if g.bytes is None:
            return 0
        moved += g.bytes * int(n) / g.rows.size
    return round(moved / _UPDATE_PASSES)
