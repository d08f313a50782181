"""What-if: each expected number has its arithmetic beside it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooflight import Malformed, Refused, Scenario, analyze, whatif
from rooflight.hardware import ceilings, find
from rooflight.prices import Instance
from rooflight.protocol import (
    Ceiling,
    DeviceFigures,
    Document,
    Kernel,
    Parts,
    Rank,
    Roofs,
    Step,
)
from rooflight.scenarios import Money, Range, WhatIf
from rooflight.scenarios.kernels import Move, fill, forecasts
from rooflight.scenarios.model import exactly
from rooflight.scenarios.ranges import Ranges
from rooflight.scenarios.rows import Rows, works_of
from rooflight.scenarios.start import Start, starts
from rooflight.scenarios.steps import part_factors, wall
from rooflight.scenarios.target import Retyped, roofs_of
from tests.drawing import timeline_from_events
from tests.shared import CHECKOUT

AS_IS = Scenario()
US = 1_000_000  # per second


def roofs(tflops: float, gbs: float, *, sms: int = 100, link: float | None = None, **more: Any) -> Roofs:
    """A device whose practical roofs are these, in TFLOP/s of bf16 and GB/s."""
    matrix = {"bf16": Ceiling(practical=tflops * 1e12)} | more.pop("compute", {})
    return Roofs(
        gpu_id=more.pop("gpu_id", f"{tflops}/{gbs}"), compute=matrix, memory=Ceiling(practical=gbs * 1e9),
        vector={"fp32": Ceiling(practical=tflops * 1e11)},
        link=None if link is None else Ceiling(practical=link * 1e9), sm_count=sms, **more,
    )  # fmt: skip


# 100 TFLOP/s are 1e8 FLOP/µs, 1000 GB/s are 1e6 byte/µs.
X = roofs(100, 1000, sms=100)
#: Half as long for FLOPs, a quarter as long for bytes, twice the SMs.
Y = roofs(200, 4000, sms=200)


def move(y: Roofs = Y, x: Roofs = X, dtype: str | None = None) -> Move:
    return Move(x, y, Retyped(dtype, y))


def kernel(regime: str, t: float = 100.0, **more: Any) -> Kernel:
    """One launch of ``t`` µs: 6e9 FLOPs (60 µs on X, 30 on Y) and 20 MB (20 µs on X, 5 on Y)."""
    defaults: dict[str, Any] = {
        "name": "k", "family": "gemm", "dtype": "bf16", "matrix": True, "time_us": t, "p50_us": t,
        "flops": 6 * 10**9, "bytes": 20 * 10**6, "regime": regime, "exclusive_us": t,
        "steps_exclusive_us": t,
    }  # fmt: skip
    return Kernel(**(defaults | more))


class Forecast(NamedTuple):
    """What is said of one row."""

    factor: Range
    basis: str
    known: bool
    bound_us: float | None = None


def forecast(k: Kernel, m: Move, scenario: Scenario) -> Forecast:
    f = forecasts(Rows.of([k], ["0"]), m, scenario)
    low, mid, high, known, bound = (
        c.item() for c in (f.factor.low, f.factor.mid, f.factor.high, f.known, f.bound_us)
    )
    return Forecast(Range(low, mid, high), f.basis.item(), known, None if math.isnan(bound) else bound)


def factor(k: Kernel, m: Move | None = None, scenario: Scenario = AS_IS) -> Range:
    return forecast(k, m or move(), scenario).factor


def test_a_kernel_at_a_roof_keeps_its_share_of_it() -> None:
    # 30/60 = 0.5; the range is 1.15 either way; its own bound on Y is 30 of 100 µs, which lies below.
    assert factor(kernel("compute")) == Range(0.5 / 1.15, 0.5, 0.5 * 1.15)
    # Bytes alone: 5/20 = 0.25; 25 µs, of which the bound is 5.
    by_bytes = kernel("memory", flops=0)
    assert factor(by_bytes) == Range(0.25 / 1.15, 0.25, 0.25 * 1.15)


def test_nothing_goes_below_the_other_devices_bound() -> None:
    # 62 µs over a bound of 60: mid 31 µs; low 31/1.15 = 26.96 is under Y's bound of 30.
    f = forecast(kernel("compute", 62.0), move(), AS_IS)
    assert f.bound_us == pytest.approx(30.0)
    assert f.factor.times(62.0).low == pytest.approx(30.0)
    assert f.factor.times(62.0).mid == pytest.approx(31.0)


def test_what_beat_its_practical_roof_may_beat_the_other_ones() -> None:
    # 54 µs where 60 were due is 0.9; so 27 of Y's 30 µs: the middle, and the least.
    assert factor(kernel("compute", 54.0)).times(54.0).mid == pytest.approx(27.0)
    assert factor(kernel("compute", 54.0)).times(54.0).low == pytest.approx(27.0)


def test_which_side_bounds_may_change_with_the_device() -> None:
    # X: 60 µs of FLOPs over 20 of bytes.  On a device with 400 TFLOP/s and 1000 GB/s 15 over 20: r = 20/60.
    assert factor(kernel("compute"), move(roofs(400, 1000))).mid == pytest.approx(1 / 3)


def test_a_tiny_kernel_keeps_its_time() -> None:
    for regime in ("latency", "memory"):
        k = kernel(regime, 4.0, flops=10**6, bytes=10**3)
        assert factor(k) == Range(1 / 1.5, 1.0, 1.5)


def test_a_kernel_of_many_blocks_lies_halfway_between_latency_and_roof() -> None:
    # r = 0.5, every SM has blocks on both: sqrt(0.5).
    k = kernel("latency", blocks=4000)
    assert factor(k).mid == pytest.approx(math.sqrt(0.5))
    assert factor(k).low == pytest.approx(math.sqrt(0.5) / 1.5)


def test_more_sms_do_not_help_a_kernel_with_few_blocks() -> None:
    # 50 blocks fill half of X's 100 SMs and a quarter of Y's 200: r = 0.5 x (0.5 / 0.25) = 1.
    assert factor(kernel("latency", blocks=50)).mid == pytest.approx(1.0)
    # 150 fill X, and three quarters of Y: 0.5 x 1/0.75 = 2/3.
    assert factor(kernel("latency", blocks=150)).mid == pytest.approx(math.sqrt(2 / 3))


def test_start_and_end_are_those_of_the_device() -> None:
    """Of 4 µs on an H100 2.1 are start and end, on an MI300X 3.5: 4 - 2.1 + 3.5 = 5.4; of 1 µs all is:
    1 / 2.1 x 3.5; and back 5.4 - 3.5 + 2.1 = 4."""
    there, back = (
        starts(roofs_of(x), roofs_of(y)) for x, y in (("h100-sxm", "mi300x"), ("mi300x", "h100-sxm"))
    )
    assert 4 * there.moved(4.0, 1.0) == pytest.approx(5.4)
    assert there.moved(1.0, 1.0) == pytest.approx(3.5 / 2.1)
    assert 5.4 * back.moved(5.4, 1.0) == pytest.approx(4.0)
    assert 10 * there.moved(10.0, 0.8) == pytest.approx((10 - 2.1) * 0.8 + 3.5)


@pytest.mark.parametrize(
    ("recorded", "asked"),
    [
        ("h100-sxm", "l4"),
        ("mi210+mi250-gcd", "mi300x"),
        ("h100-sxm", None),
        ("h100-sxm", "no+such"),
        ("h100-sxm+mi300x", "l4"),
    ],
)
def test_start_and_end_stay_where_they_are_the_same_or_unknown(recorded: str, asked: str | None) -> None:
    assert starts(Roofs(gpu_id=recorded), Roofs(gpu_id=asked)) == Start()
    assert Start().moved(3.0, 0.7) == 0.7


def test_start_and_end_move_tiny_and_latency_kernels_alone() -> None:
    """Of 3 µs on an H100 2.1 are start and end: (0.9 + 3.5) / 3; one at a roof is judged by its roof."""
    [tiny] = whatif(a_run(kernel("latency", 3.0, flops=0, bytes=0)), "mi300x").per_kernel
    assert tiny.predicted_us.mid == pytest.approx(0.9 + 3.5)
    late = replace(move(), start=Start(2.1, 3.5))
    assert factor(kernel("compute"), late) == factor(kernel("compute"))
    assert factor(kernel("latency"), late).mid == pytest.approx(
        (97.9 * factor(kernel("latency")).mid + 3.5) / 100
    )


def test_blocks_that_are_not_known_fill_the_device() -> None:
    blocks = np.array([math.nan, 25.0, 100.0, 900.0])
    assert fill(blocks, 100).tolist() == [1.0, 0.25, 1.0, 1.0]
    assert fill(blocks, None).tolist() == [1.0] * 4


def test_unknown_lies_between_unchanged_and_the_bandwidths() -> None:
    # b = 1000/4000: [0.25/1.2, 1 x 1.2], the middle 0.5.
    k = kernel("unknown", flops=None, bytes=None)
    f = forecast(k, move(), AS_IS)
    assert f.factor == Range(0.25 / 1.2, 0.5, 1.2)
    assert not f.known
    # The other way b = 4: [1/1.2, 4 x 1.2], the middle 2.
    assert factor(k, move(X, Y)) == Range(1 / 1.2, 2.0, 4 * 1.2)


def test_a_roof_that_is_missing_on_one_side_leaves_the_kernel_unknown() -> None:
    bare = Roofs(gpu_id="bare", memory=Ceiling(practical=4e12))
    assert not forecast(kernel("compute"), move(bare), AS_IS).known


def test_communication_scales_at_most_with_the_link() -> None:
    k = kernel("communication", flops=None, bytes=None)
    slow, fast = roofs(100, 1000, link=100), roofs(200, 4000, link=400)
    assert factor(k, move(fast, slow)) == Range(0.25, 0.5, 1.0)  # n = 100/400
    assert factor(k, move(slow, fast)) == Range(1.0, 2.0, 4.0)
    unlinked = forecast(k, move(), AS_IS)
    assert (unlinked.factor, unlinked.known) == (exactly(1.0), False)


@pytest.mark.parametrize(
    ("name", "want"),
    [
        ("Memcpy HtoD (Pageable -> Device)", Range(0.5, 0.5, 1.0)),  # 32 over 64 GB/s
        ("Memcpy DtoD (Device -> Device)", Range(0.25, 0.25, 1.0)),  # 1000 over 4000
        ("Memcpy PtoP (Device -> Device)", Range(0.125, 0.125, 1.0)),  # 100 over 800
    ],
)
def test_copies_by_what_they_cross(name: str, want: Range) -> None:
    x = roofs(100, 1000, link=100, pcie=Ceiling(practical=32e9))
    y = roofs(200, 4000, link=800, pcie=Ceiling(practical=64e9))
    k = kernel("copy", name=name, family="memcpy", kind="memcpy")
    assert factor(k, move(y, x)) == want


def test_another_dtype_has_its_own_roof_and_size() -> None:
    # fp8 at 400 TFLOP/s: 15 µs of FLOPs; 10 MB at 1000 GB/s: 10 µs.  r = 15/60.
    x = roofs(100, 1000, compute={"fp8": Ceiling(practical=400e12)})
    assert factor(kernel("compute"), Move(x, x, Retyped("fp8", x))).mid == pytest.approx(0.25)
    # Elementwise work does not run in 8 bits, but it does in 16: fp32 to bf16 halves its 20 µs of bytes.
    e = kernel("memory", 25.0, family="elementwise", matrix=False, dtype="fp32", flops=0)
    assert factor(e, Move(x, x, Retyped("fp8", x))) == exactly(1.0)
    assert factor(e, Move(x, x, Retyped("bf16", x))).mid == pytest.approx(0.5)


def test_a_dtype_that_the_part_lacks_has_a_named_fallback() -> None:
    m = move(dtype="fp8")
    # Y has no fp8: bf16 it is, and its bytes are those of bf16 again.
    assert factor(kernel("compute"), m).mid == pytest.approx(0.5)
    assert m.types.fallback == {"fp8": "bf16"}
    volta = roofs_of("v100-sxm2-32")
    away = move(volta)
    forecast(kernel("compute"), away, AS_IS)
    assert away.types.fallback == {"bf16": "fp16"}


def test_roofs_reached_is_the_bound_itself() -> None:
    asked = Scenario(roofs_reached=True)
    # 60 of 100 µs on X, 30 on Y; also for one that was kept by latency.
    for regime in ("compute", "latency"):
        assert factor(kernel(regime), move(X), asked) == exactly(0.6)
        assert factor(kernel(regime), move(Y), asked) == exactly(0.3)
    assert factor(kernel("unknown"), move(X), asked) == exactly(1.0)


def test_a_chain_reads_and_writes_once() -> None:
    # Of 30 MB it takes 10 from the one before and leaves 10 to the next: a third is left at best; at worst
    # it still writes, two thirds; the middle is a half.
    k = kernel("memory", 40.0, family="elementwise", bytes=30 * 10**6, chained_in_bytes=10**7,
               chained_out_bytes=10**7, flops=0, matrix=False, dtype="fp32")  # fmt: skip
    got = factor(k, move(X), Scenario(fused=True))
    assert (got.low, got.mid, got.high) == pytest.approx((1 / 3, 1 / 2, 2 / 3))
    assert factor(kernel("memory", family="norm"), move(X), Scenario(fused=True)) == exactly(1.0)


def ev(cat: str, name: str, ts: int, dur: int, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur, "args": args}


def elementwise(i: int, ts: int, op: str, stream: int = 7, n: int = 1000) -> list[dict[str, Any]]:
    """An op of two (or one) fp32 inputs of ``n`` elements and its kernel."""
    inputs = 1 if op == "aten::relu" else 2
    name = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)"
    shape = {"Input Dims": [[n]] * inputs + [[]], "Input type": ["float"] * inputs + ["Scalar"]}
    return [
        ev("cpu_op", op, ts, 9, **shape, **{"External id": i}),
        ev("cuda_runtime", "cudaLaunchKernel", ts + 1, 2, correlation=i),
        ev("kernel", name, ts + 100, 5, device=0, stream=stream, correlation=i, grid=[4, 2, 1]),
    ]


def test_chains_are_neighbours_on_a_stream() -> None:
    # add: reads 2 x 4000 byte, writes 4000; relu reads 4000 of it.  Another stream is no neighbour, and
    # what follows a copy is none either.
    events = elementwise(1, 0, "aten::add") + elementwise(2, 10, "aten::relu")
    events += elementwise(3, 20, "aten::mul", stream=8)
    events.append(ev("gpu_memcpy", "Memcpy DtoD", 130, 2, device=0, stream=7, bytes=8, correlation=9))
    events += elementwise(4, 40, "aten::sub")
    rows = {k.op: k for k in analyze(timeline_from_events(events)).document.ranks[0].kernels}
    handed = {op: (k.chained_in_bytes, k.chained_out_bytes) for op, k in rows.items() if op}
    assert handed["aten::add"] == (0, 4000)
    assert handed["aten::relu"] == (4000, 0)
    assert handed["aten::mul"] == handed["aten::sub"] == (0, 0)
    assert rows["aten::add"].blocks == 8  # 4 x 2
    assert not rows["aten::add"].matrix


def test_sizes_that_no_device_has_hand_nothing_on() -> None:
    events = elementwise(1, 0, "aten::add", n=2**61) + elementwise(2, 10, "aten::relu", n=2**61)
    rows = analyze(timeline_from_events(events)).document.ranks[0].kernels
    assert {(k.chained_in_bytes, k.chained_out_bytes) for k in rows} == {(0, 0)}


def test_a_grid_that_no_device_could_run_has_no_blocks() -> None:
    events = elementwise(1, 0, "aten::add")
    events[2]["args"]["grid"] = [2**31 - 1] * 3
    assert analyze(timeline_from_events(events)).document.ranks[0].kernels[0].blocks is None


# --- steps -----------------------------------------------------------------------------------------

PARTS = Parts(compute=50, memory=20, communication=30, copy=4, input=25, host=6, launch=3)


def figures(comm: float = 0.0, exposed: float = 0.0, compute: float = 100.0) -> DeviceFigures:
    return DeviceFigures(
        name="X", n_gpu_events=9, kernels=9, span_us=200.0, busy_us=100.0, idle_us=100.0, busy_pct=50.0,
        kernel_sum_us=compute + comm, compute_us=compute, comm_us=comm, mem_us=0.0, exposed_comm_us=exposed,
        overlap_pct=None, exposed_mem_us=0.0, unlinked_kernels=0, unlinked_us=0.0,
    )  # fmt: skip


FACTORS = {
    "compute": Range(0.4, 0.5, 0.6),
    "memory": Range(0.5, 1.0, 1.5),
    "communication": Range(1.0, 2.0, 3.0),
    "copy": Range(0.25, 0.5, 1.0),
}


def test_a_step_scales_its_work_and_keeps_its_waiting() -> None:
    # low: 20 + 10 + 30 + 1; mid: 25 + 20 + 60 + 2; high: 30 + 30 + 90 + 4; each + 25 + 6 + 3 = 34.
    assert wall(PARTS, FACTORS, AS_IS, figures()) == Range(95.0, 141.0, 188.0)


def test_input_that_is_ready_takes_its_part_away() -> None:
    assert wall(PARTS, FACTORS, Scenario(input_ready=True), figures()) == Range(70.0, 116.0, 163.0)


def test_communication_hides_as_far_as_compute_reaches() -> None:
    asked = Scenario(overlapped=True)
    # Kernels 30/45/60 µs.  low: 30 - 60 < 0, all hidden; mid: 60 - 45 = 15; high: 90 - 30 = 60 stays.
    assert wall(PARTS, FACTORS, asked, figures()) == Range(65.0, 96.0, 158.0)
    # Half of the kernel time hides communication already: room 15/22.5/30, so 0, 37.5, 75 stay.
    half = figures(comm=80.0, exposed=30.0, compute=100.0)
    assert wall(PARTS, FACTORS, asked, half) == Range(65.0, 118.5, 173.0)


def test_a_part_scales_as_its_rows_do_by_the_time_that_is_theirs() -> None:
    rows = [kernel("compute", steps_exclusive_us=30.0), kernel("compute", steps_exclusive_us=10.0)]
    table, found = Rows.of(rows, ["0", "1"]), Ranges.exactly(np.array([1.0, 0.2]))
    # (30 x 1 + 10 x 0.2) / 40
    assert part_factors(table, found, 0, steps=True)["compute"].mid == pytest.approx(0.8)
    assert part_factors(table, found, 1, steps=True) == {}


def test_roofs_that_cannot_be_are_unknown() -> None:
    odd = roofs(100, -1000, sms=-5, link=math.inf)
    for regime in ("latency", "unknown"):
        # No bandwidth to compare: 1.5 either way.
        k = kernel(regime, count=0, p50_us=0.0, blocks=7)
        assert forecast(k, move(odd), AS_IS) == Forecast(Range(1 / 1.5, 1.0, 1.5), "unknown", known=False)
    assert factor(kernel("communication"), move(odd, roofs(1, 1, link=50))) == exactly(1.0)
    assert fill(np.array([7.0]), odd.sm_count).tolist() == [1.0]


# --- whole answers ---------------------------------------------------------------------------------


def a_run(*kernels: Kernel, gpu: str = "h100-sxm", withheld: str | None = None) -> Document:
    parts = Parts(compute=100.0, input=60.0)
    rank = Rank(
        rank=0, grade="complete", verdict_withheld=withheld, devices={"0": figures()},
        roofs={"0": ceilings(find(gpu))}, kernels=list(kernels) or [kernel("compute")],
        steps=[Step(n=i, step_time_us=160.0, device="0", parts_us=parts) for i in (1, 2)],
        parts_us={"0": Parts(compute=200.0, input=120.0)},
    )  # fmt: skip
    return Document(schema_version=1, source="run.json", ranks=[rank])


def practical(gpu: str, dtype: str = "bf16") -> float:
    rate = roofs_of(gpu).compute[dtype].practical
    assert rate is not None
    return rate


def test_the_answer_adds_up() -> None:
    w = whatif(a_run(), "a100-sxm4-80")
    r = practical("h100-sxm") / practical("a100-sxm4-80")
    assert w.kernel_time_us.mid == pytest.approx(100 * r, abs=1e-3)
    assert w.step_time_us is not None
    assert w.step_time_us.mid == pytest.approx(100 * r + 60, abs=1e-3)
    assert w.recording_us is not None
    assert w.recording_us.mid == pytest.approx(200 * r + 120, abs=1e-3)
    assert (w.recorded_step_time_us, w.recorded_us, w.unknown_share) == (160.0, 320.0, 0.0)


def test_the_share_that_rests_on_unknowns() -> None:
    w = whatif(a_run(kernel("compute", 75.0), kernel("unknown", 25.0, flops=None)))
    assert w.unknown_share == 25.0
    assert w.kernel_time_us == exactly(100.0)


def test_money_is_time_by_price_by_devices() -> None:
    document = a_run()
    document.world_size = 8
    w = whatif(document, money=Money(3.6))
    # 160 µs x 8 x 3.6 USD / 3.6e9 µs = 1.28e-6 USD
    assert w.cost_per_step is not None
    assert w.cost_per_step.mid == pytest.approx(1.28e-6)
    assert whatif(document).cost_per_step is None


def test_instances_by_money_and_those_without_a_price_last() -> None:
    from decimal import Decimal

    listed = [
        Instance("A", "dear", "h100-sxm", 8, usd_per_hour=Decimal(80)),
        Instance("A", "cheap", "h100-sxm", 8, usd_per_hour=Decimal(16)),
        Instance("B", "untold", "h100-sxm", 8),
        Instance("B", "other", "no-such-gpu", 8, usd_per_hour=Decimal(1)),
    ]
    rows = whatif(a_run(), instances=listed).instances
    assert rows is not None
    assert [r.name for r in rows] == ["cheap", "dear", "other", "untold"]
    # 2 USD per GPU and hour for 160 µs
    assert rows[0].cost_per_step is not None
    assert rows[0].cost_per_step.mid == pytest.approx(160 * 2 / 3.6e9)
    # That of a GPU of which nothing is known has a price and no step, the other a step and no price.
    assert (rows[2].step_time_us, rows[2].cost_per_step, rows[2].usd_per_gpu_hour) == (None, None, 0.125)
    assert (rows[3].step_time_us, rows[3].cost_per_step) == (exactly(160.0), None)


def test_a_withheld_verdict_marks_the_answer() -> None:
    assert whatif(a_run(withheld="truncated"), "h200-sxm").withheld == "truncated"


@pytest.mark.parametrize("time", [-1.0, 3.1e15, 1e300])
@pytest.mark.parametrize("where", ["part", "step", "kernel", "own", "whole"])
def test_times_that_cannot_be_are_refused(time: float, where: str) -> None:
    document = a_run()
    rank = document.ranks[0]
    assert rank.steps[0].parts_us
    if where == "part":
        rank.steps[0].parts_us.copy = time
    elif where == "step":
        rank.steps[0].step_time_us = time
    elif where == "whole":
        rank.parts_us["0"].host = time
    else:
        setattr(rank.kernels[0], {"kernel": "time_us", "own": "steps_exclusive_us"}[where], time)
    with pytest.raises(Malformed, match="not a time"):
        whatif(document, "h200-sxm")


def test_a_step_of_a_device_that_is_not_there_goes_by_the_busiest() -> None:
    document = a_run()
    for s in document.ranks[0].steps:
        s.device = "7"
    assert document.ranks[0].headline == "0"
    assert whatif(document, "h200-sxm").gpu_id == "h200-sxm"


@pytest.mark.parametrize("rate", [1e-300, 1e280])
def test_a_roof_a_million_times_another_is_none(rate: float) -> None:
    """The ratio would be no number, or make the rest of the sum vanish: the kernel is unknown."""
    odd = roofs(rate, rate)
    for m in (move(Y, odd), move(odd, Y)):
        f = forecast(kernel("compute"), m, AS_IS)
        assert (f.basis, f.known) == ("unknown", False)
        assert all(math.isfinite(v) for v in (f.factor.low, f.factor.mid, f.factor.high))


def test_what_cannot_be_asked_is_refused() -> None:
    with pytest.raises(Refused, match=r"unknown GPU 'H100'.*h100-sxm"):
        whatif(a_run(), "H100")
    with pytest.raises(Refused, match="unknown dtype 'fp7'"):
        whatif(a_run(), scenario=Scenario(dtype="fp7"))
    with pytest.raises(Refused, match="no GPU work"):
        whatif(Document(schema_version=1, source="cpu.json", ranks=[Rank(rank=0, grade="usable")]))
    with pytest.raises(Refused, match="whole card"):
        whatif(a_run(), "mi250x-card")


# --- properties ------------------------------------------------------------------------------------

GPUS = ("h100-sxm", "a100-sxm4-80", "v100-sxm2-32", "mi300x", "b200", "l4")
amounts = st.one_of(st.none(), st.integers(0, 10**12))
kernels = st.builds(
    Kernel,
    name=st.just("k"),
    family=st.sampled_from(("gemm", "elementwise", "norm", "memcpy")),
    dtype=st.sampled_from((None, "bf16", "fp16", "fp32", "tf32", "int64")),
    matrix=st.booleans(),
    time_us=st.floats(0, 1e6),
    p50_us=st.floats(0, 1e5),
    count=st.integers(1, 50),
    flops=amounts,
    bytes=amounts,
    blocks=st.one_of(st.none(), st.integers(0, 10**6)),
    chained_in_bytes=st.integers(0, 10**9),
    chained_out_bytes=st.integers(0, 10**9),
    regime=st.sampled_from(("compute", "memory", "latency", "unknown", "communication", "copy")),
)
scenarios = st.builds(
    Scenario,
    dtype=st.sampled_from((None, "bf16", "fp8", "fp4", "fp32", "tf32", "int8")),
    roofs_reached=st.booleans(),
    fused=st.booleans(),
    overlapped=st.booleans(),
    input_ready=st.booleans(),
)


def ordered(r: Range | None) -> bool:
    return r is None or 0 <= r.low <= r.mid <= r.high


@given(st.lists(kernels, min_size=1, max_size=4), scenarios, st.sampled_from(GPUS), st.sampled_from(GPUS))
def test_every_range_is_in_order_and_sums_add_up(
    rows: list[Kernel], scenario: Scenario, x: str, y: str
) -> None:
    w: WhatIf = whatif(a_run(*rows, gpu=x), y, scenario)
    assert all(map(ordered, (w.kernel_time_us, w.step_time_us, w.recording_us)))
    assert all(ordered(k.predicted_us) for k in w.per_kernel)
    for end in ("low", "mid", "high"):
        total = sum(getattr(k.predicted_us, end) for k in w.per_kernel)
        assert getattr(w.kernel_time_us, end) == pytest.approx(total, abs=0.01)


@given(st.lists(kernels, min_size=1, max_size=4), st.sampled_from(GPUS))
def test_the_same_device_changes_nothing(rows: list[Kernel], gpu: str) -> None:
    w = whatif(a_run(*rows, gpu=gpu), gpu)
    assert [k.predicted_us for k in w.per_kernel] == [exactly(round(k.time_us, 3)) for k in rows]


@given(kernels, st.sampled_from(GPUS), st.floats(1.0, 8.0))
def test_a_faster_device_never_raises_a_bound(k: Kernel, gpu: str, times: float) -> None:
    slow, fast = ceilings(find(gpu)), ceilings(find(gpu))
    for c in (*fast.compute.values(), *fast.vector.values(), fast.memory):
        if c is not None and c.practical is not None:
            c.practical *= times
    a, b = forecast(k, move(slow), AS_IS), forecast(k, move(fast), AS_IS)
    assert (a.bound_us is None) == (b.bound_us is None)
    if a.bound_us is not None and b.bound_us is not None:
        assert b.bound_us <= a.bound_us
    assert b.factor.mid <= a.factor.mid * (1 + 1e-9)


@given(kernels, st.sampled_from(GPUS), st.sampled_from(GPUS))
def test_no_time_is_under_the_bound_but_as_recorded(k: Kernel, x: str, y: str) -> None:
    here, there = roofs_of(x), roofs_of(y)
    m = move(there, here)
    f, recorded_us = forecast(k, m, AS_IS), m.bounds(works_of([k])).recorded_us.item()
    if f.bound_us is not None and k.time_us > recorded_us:
        assert f.factor.low * k.time_us >= f.bound_us * (1 - 1e-9)


def test_every_field_of_the_answer_is_on_its_page() -> None:
    page = (CHECKOUT / "docs/whatif.md").read_text()
    assert [f for f in WhatIf.__struct_fields__ if f"`{f}" not in page] == []
