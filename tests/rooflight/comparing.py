"""Small runs to compare."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from rooflight.comparison import Comparison
from rooflight.protocol import (
    PARTS,
    SCHEMA_VERSION,
    DeviceFigures,
    Document,
    Kernel,
    Parts,
    Rank,
    Step,
)

WORK = PARTS[:6]


def a_step(n: int, **us: float) -> Step:
    return Step(n=n, step_time_us=sum(us.values()), device="0", parts_us=Parts(**us))


def a_group(
    name: str = "k", us: float = 0.0, calls: int = 1, op: str | None = "aten::mm", **more: Any
) -> Kernel:
    """A group with ``us`` of its own in ``calls`` calls within the steps, and no more of either outside."""
    told = {
        "regime": "compute",
        "family": "gemm",
        "input_dims": "[[4, 4]]",
        "input_types": '["float"]',
    } | more
    return Kernel(
        name, op=op, count=max(calls, 1), time_us=us, exclusive_us=us, steps_exclusive_us=us,
        steps_count=calls, **told,
    )  # fmt: skip


def a_device(name: str | None = "NVIDIA H100", kernel_sum_us: float = 1.0) -> DeviceFigures:
    return DeviceFigures(
        name=name, n_gpu_events=1, kernels=1, span_us=1, busy_us=1, idle_us=0, busy_pct=100.0,
        kernel_sum_us=kernel_sum_us, compute_us=1, comm_us=0, mem_us=0, exposed_comm_us=0, overlap_pct=None,
        exposed_mem_us=0, unlinked_kernels=0, unlinked_us=0,
    )  # fmt: skip


def a_rank(steps: list[Step], kernels: list[Kernel] | None = None, rank: int = 0, **more: Any) -> Rank:
    whole = {p: sum(getattr(s.parts_us, p) for s in steps) for p in PARTS}
    told = {"grade": "complete", "devices": {"0": a_device()}, "parts_us": {"0": Parts(**whole)}} | more
    return Rank(rank, steps=steps, kernels=kernels or [], **told)


def a_run(*ranks: Rank, **more: Any) -> Document:
    return Document(SCHEMA_VERSION, "run.json", list(ranks), **more)


def one(kernels: list[Kernel], **us: float) -> Document:
    """A run of one step, whose compute time is that of the kernels unless told."""
    parts = {"compute": sum(k.steps_exclusive_us or 0 for k in kernels)} | us
    return a_run(a_rank([a_step(1, **parts)], kernels))


def timed(*times_us: float, **more: Any) -> Document:
    """A run of steps that only compute."""
    return a_run(a_rank([a_step(n, compute=us) for n, us in enumerate(times_us)], **more))


def us(ns: Fraction) -> float:
    return float(ns / 1000)


def matches(c: Comparison) -> dict[tuple[str | None, str | None], str]:
    """How the groups were found, by their names in A and B."""
    names = {(g.pair.a and g.pair.a.key.name, g.pair.b and g.pair.b.key.name): g for g in c.groups}
    return {key: g.pair.match for key, g in names.items()}
