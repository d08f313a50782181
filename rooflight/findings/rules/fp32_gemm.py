"""Matrix products in fp32 on a device with faster units."""

from __future__ import annotations

from collections.abc import Iterator

from rooflight.findings.evidence import of_groups
from rooflight.findings.facts import Facts
from rooflight.findings.model import Found
from rooflight.findings.registry import rule
from rooflight.roofline.groups import Group


@rule(
    "fp32-matrix",
    "Matrix products run in fp32",
    regime="compute",
    why="The matrix units take TF32, BF16 and FP16; fp32 products run on the ordinary units, several times "
    "slower.",
    fix="torch.set_float32_matmul_precision('high') lets fp32 products use TF32 "
    "(torch.backends.cudnn.allow_tf32 "
    "for convolutions); autocast to bf16 is faster still and halves the bytes.",
    false_alarms="Code that asks for fp32 precision on purpose, as some solvers and losses do.",
)
def fp32_gemm(facts: Facts) -> Iterator[Found]:
    """Kernels whose name says that they multiply matrices in fp32, on a device that has TF32 units."""
    faster = facts.roofs.compute.get("tf32")
    if faster is None or not faster.practical:
        return
    slow = [
        i for i, g, _ in facts.kernels() if g.work.matrix and g.work.dtype == "fp32" and g.work.math_known
    ]
    gain = sum(facts.group_ns(i) * _gain(facts.groups.rows[i], faster.practical) for i in slow)
    yield from of_groups(facts, slow, gain, "TF32 kernels come as near to their roof as these to theirs")


def _gain(g: Group, tf32_flop_per_s: float) -> float:
    """The share of its time that goes: its bound under the TF32 roof against that under its own."""
    if g.work.flops is None or not g.bound.compute_ns or not g.bound.bound_ns:
        return 0.0
    compute_ns = g.work.flops / tf32_flop_per_s * 1e9
    return max(0.0, 1 - max(compute_ns, g.bound.memory_ns or 0.0) / g.bound.bound_ns)
