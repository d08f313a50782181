"""Small valid documents for tests that need one and do not care how it was measured."""

from __future__ import annotations

import random

from rooflight.protocol import (
    SCHEMA_VERSION,
    Attribution,
    Ceiling,
    Coverage,
    DeviceFigures,
    Document,
    Flag,
    Idle,
    Kernel,
    Parts,
    Rank,
    Roofs,
    Step,
)


def a_document(
    *, kernels: int = 12, steps: int = 6, source: str = "train.pt.trace.json", seed: int = 1
) -> Document:
    """A one-rank run on a V100: input-bound steps, ``kernels`` groups whose times fall off as 1/i."""
    return Document(
        schema_version=SCHEMA_VERSION,
        source=source,
        world_size=1,
        ranks=[a_rank(kernels=kernels, steps=steps, rng=random.Random(seed))],
    )


def a_rank(*, kernels: int, steps: int, rng: random.Random) -> Rank:
    rows = [a_kernel(i, rng) for i in range(kernels)]
    total = sum(k.time_us for k in rows)
    for k in rows:
        k.share_pct = round(100 * k.time_us / total, 2)
    return Rank(
        rank=0,
        grade="usable",
        grade_reasons=["cost unknown for 12 % of kernel time"],
        flags=[Flag("rank_assumed", 1, "the file names no rank")],
        busy_pct=51.2,
        devices={"0": a_device(total)},
        roofs={"0": v100_roofs()},
        steps=[a_step(5 + i) for i in range(steps)],
        n_steps=steps,
        steps_total_us=174_800.0 * steps,
        parts_us={"0": a_step(5).parts_us or Parts()},
        regime="input",
        regime_confidence="high",
        attribution=[Attribution(k.name, k.op, k.count, k.time_us) for k in rows],
        coverage=Coverage(modelled=88.0, unknown=12.0),
        kernels=rows,
        flops_total=sum(k.flops or 0 for k in rows),
        idle=some_idle(steps),
    )


def some_idle(steps: int) -> list[Idle]:
    """Of each step 58.7 ms of input, and 12.2 of dispatch, 2 of which explain little."""
    loader, line = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "train.py(42): main"
    return [
        Idle("0", "input", loader, line, steps, 58_700.0 * steps, 68_694.0, 12_000.0, 5),
        Idle("0", "dispatch", "aten::cudnn_convolution", None, 20 * steps, 10_200.0 * steps, 295.0, 90.0, 6),
        Idle("0", "dispatch", count=9 * steps, time_us=2_000.0 * steps, longest_us=120.0, rest=True),
    ]


def a_step(n: int) -> Step:
    """Parts: 40 + 30 + 20 + 5 compute to unknown, 1.8 copy, 58.7 input, 12.2 dispatch, 3.3 launch,
    1 host, 2.8 dependency: 174.8 ms."""
    parts = Parts(
        compute=40_000, memory=30_000, latency=20_000, unknown=5_000, copy=1_800, input=58_700,
        dispatch=12_200, launch=3_300, host=1_000, dependency=2_800,
    )  # fmt: skip
    return Step(
        n=n, step_time_us=174_800.0, gpu_busy_in_window_us=96_800.0, gpu_launched_us=95_000.0, device="0",
        parts_us=parts, regime="input", regime_confidence="high", attainable_us=68_400.0, bound_us=63_400.0,
        start_us=174_800.0 * (n - 5),
    )  # fmt: skip


def a_kernel(i: int, rng: random.Random) -> Kernel:
    count, per_launch = 6 * (i % 5 + 1), 800.0 / (i + 1)
    regime = ("compute", "memory", "latency", "unknown")[i % 4]
    flops = None if regime == "unknown" else int(per_launch * 1e6 * rng.uniform(0.5, 9)) * count
    size = None if regime == "unknown" else int(per_launch * 1e3 * rng.uniform(50, 700)) * count
    time = round(count * per_launch, 3)
    return Kernel(
        name=f"void at::native::vectorized_elementwise_kernel<4, Functor{i}<float>>(int, float)",
        short_name=f"vectorized_elementwise‹4, Functor{i}›",
        family="elementwise", dtype="fp32", op="aten::add_", input_dims=f"[[{i + 1}, 64]]", count=count,
        time_us=time, min_us=round(per_launch * 0.9, 3), p50_us=round(per_launch, 3),
        p95_us=round(per_launch * 1.1, 3), p99_us=round(per_launch * 1.2, 3),
        max_us=round(per_launch * 1.3, 3),
        flops=flops, bytes=size, origin="unknown" if flops is None else "modelled",
        ai=None if not flops or not size else round(flops / size, 3),
        achieved_tflops=None if flops is None else round(flops / time / 1e6, 3),
        achieved_gbs=None if size is None else round(size / time / 1e3, 3),
        bound_us=None if flops is None else round(time * 0.7, 3),
        roof_fraction=None if flops is None else 0.7, roof_side=None if flops is None else "memory",
        regime=regime, reason="no dims were recorded" if flops is None else "",
        histogram=[1, 5, 9, 3, 1] + [0] * 7,
    )  # fmt: skip


def a_device(kernel_us: float) -> DeviceFigures:
    return DeviceFigures(
        name="Tesla V100-DGXS-32GB", n_gpu_events=900, kernels=880, span_us=1_048_800.0, busy_us=536_000.0,
        idle_us=512_800.0, busy_pct=51.11, kernel_sum_us=kernel_us, compute_us=530_000.0, comm_us=0.0,
        mem_us=11_000.0, exposed_comm_us=0.0, overlap_pct=None, exposed_mem_us=6_000.0, unlinked_kernels=0,
        unlinked_us=0.0,
    )  # fmt: skip


def v100_roofs() -> Roofs:
    """15.7 TFLOP/s fp32, 125 fp16, 900 GB/s; practical 0.80 of compute, 0.90 of bandwidth."""
    return Roofs(
        gpu_id="v100-sxm2-32", name="Tesla V100", sm_count=80,
        compute={
            "fp32": Ceiling(15.7e12, 12.56e12, "assumed", "datasheet"),
            "fp16": Ceiling(125e12, 100e12, "assumed", "datasheet"),
        },
        vector={"fp32": Ceiling(15.7e12, 14.13e12, "assumed", "datasheet")},
        memory=Ceiling(900e9, 814e9, "factor", "stream triad"),
    )  # fmt: skip
