"""The analysis of whole recordings: groups, links, flags, ranks, the JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rooflight import Options, analyze, protocol, read
from rooflight.calibration import Calibration
from rooflight.errors import Refused, TooLarge
from rooflight.http_form import encode_http
from rooflight.protocol import Rank
from tests.drawing import timeline_from_events
from tests.shared import cases_dir

H100 = {"deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3", "numSms": 132,
                              "computeMajor": 9, "computeMinor": 0}]}  # fmt: skip


def event(
    cat: str, name: str, ts: float, dur: float, *, tid: int = 1, pid: int = 9, **args: Any
) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}


def mm(
    ts: float, n: int, *, correlation: int, dur: float = 100.0, dtype: str = "c10::BFloat16"
) -> list[dict[str, Any]]:
    """aten::mm of two n x n matrices whose kernel runs for ``dur`` µs."""
    inputs = {"Input Dims": [[n, n], [n, n]], "Input type": [dtype] * 2, "Input Strides": [[n, 1], [n, 1]],
              "Concrete Inputs": ["", ""]}  # fmt: skip
    return [
        event("cpu_op", "aten::mm", ts, 8, **inputs),
        event("cuda_runtime", "cudaLaunchKernel", ts + 2, 2, correlation=correlation),
        event("kernel", "nvjet_tst_128x256_64x4_2x1_v_bz_TNT", ts + 10, dur, pid=0, tid=7, device=0, stream=7,
              correlation=correlation, grid=[132, 1, 1], block=[384, 1, 1]),
    ]  # fmt: skip


def only(timeline_events: list[dict[str, Any]], **meta: Any) -> Rank:
    return analyze(timeline_from_events(timeline_events, **meta)).document.ranks[0]


def test_a_matmul_has_its_flops_bytes_roofs_and_regime() -> None:
    """bf16, n = 4096: 2 n^3 = 137,438,953,472 FLOPs in 200 µs are 687.194767 TFLOP/s; 3 n^2 x 2 bytes are
    100,663,296.  The practical roof is 0.8 or so of 989: over 0.6 of it, so compute."""
    rank = only(mm(0, 4096, correlation=1, dur=200), **H100)
    [k] = rank.kernels
    assert (k.flops, k.bytes) == (137_438_953_472, 100_663_296)
    assert k.achieved_tflops == pytest.approx(687.195, abs=0.001)
    assert k.ai == pytest.approx(137_438_953_472 / 100_663_296, rel=1e-5)
    assert (k.regime, k.roof_side, k.origin, k.dtype) == ("compute", "compute", "modelled", "bf16")
    roof = rank.roofs["0"].compute["bf16"]
    assert roof.datasheet == pytest.approx(989.4e12, rel=1e-3)
    assert roof.practical is not None
    assert k.bound_us == pytest.approx(137_438_953_472 / roof.practical * 1e6, abs=0.001)
    assert k.roof_fraction == pytest.approx(k.bound_us / 200, rel=1e-4)
    assert rank.flops_total == 137_438_953_472


def test_launches_of_one_shape_are_one_group_and_of_two_shapes_two() -> None:
    rows = mm(0, 64, correlation=1) + mm(200, 64, correlation=2, dur=50) + mm(400, 128, correlation=3)
    rank = only(rows, **H100)
    assert [(k.count, k.time_us, k.input_dims) for k in rank.kernels] == [
        (2, 150.0, "[[64, 64], [64, 64]]"),
        (1, 100.0, "[[128, 128], [128, 128]]"),
    ]
    first = rank.kernels[0]
    assert (first.min_us, first.p50_us, first.max_us) == (50, 75, 100)
    assert first.flops == 2 * 2 * 64**3
    assert first.share_pct == 60.0  # 150 of 250


def test_a_faster_kernel_than_the_datasheet_is_flagged_not_clipped() -> None:
    """2 x 8192^3 in 1 ms are 1099.5 TFLOP/s: 111 % of 989."""
    rank = only(mm(0, 8192, correlation=1, dur=1000), **H100)
    assert rank.kernels[0].achieved_tflops == pytest.approx(1099.51, abs=0.01)
    assert rank.kernels[0].above_peak
    assert {f.code: f.count for f in rank.flags}["above_peak"] == 1


def test_an_unknown_gpu_has_no_roof_and_says_so() -> None:
    rank = only(mm(0, 512, correlation=1), deviceProperties=[{"id": 0, "name": "Foo Accelerator X1"}])
    [k] = rank.kernels
    assert k.flops == 2 * 512**3
    assert (k.regime, k.bound_us, k.roof_fraction) == ("unknown", None, None)
    assert {"gpu_model_unknown", "peak_unknown"} <= {f.code for f in rank.flags}
    named = analyze(timeline_from_events(mm(0, 512, correlation=1)), gpu="NVIDIA H100 80GB HBM3")
    assert named.document.ranks[0].roofs["0"].gpu_id == "h100-sxm"
    with pytest.raises(Refused, match="unknown GPU 'A1000'"):
        analyze(timeline_from_events(mm(0, 512, correlation=1)), gpu="A1000")


def test_nested_ops_count_once() -> None:
    """linear around addmm: the kernel's FLOPs are addmm's, 2 x 8 x 16 x 32."""
    shapes = {"Input type": ["float"] * 3}
    rows = [
        event("cpu_op", "aten::linear", 0, 30, **shapes, **{"Input Dims": [[8, 16], [32, 16], [32]]}),
        event("cpu_op", "aten::addmm", 5, 20, **shapes, **{"Input Dims": [[32], [8, 16], [16, 32]]}),
        event("cuda_runtime", "cudaLaunchKernel", 10, 2, correlation=4),
        event("kernel", "ampere_sgemm_128x64_nn", 40, 9, pid=0, tid=7, device=0, stream=7, correlation=4),
    ]
    rank = only(rows, **H100)
    assert rank.flops_total == 2 * 8 * 16 * 32
    assert [(a.kernel, a.op) for a in rank.attribution] == [("ampere_sgemm_128x64_nn", "aten::addmm")]


def test_one_graph_launch_has_many_kernels_and_costs_the_host_once() -> None:
    rows = [
        event("cpu_op", "torch::GraphReplay", 0, 30),
        event("cuda_runtime", "cudaGraphLaunch", 5, 20, correlation=50),
        *(
            event("kernel", f"k{i}", 40 + 20 * i, 15, pid=0, tid=7, device=0, stream=7, correlation=50)
            for i in range(5)
        ),
    ]
    rank = only(rows)
    assert rank.attribution_op_time_us == {"torch::GraphReplay": 75}
    assert (rank.graph_launches, rank.graph_launches_with_kernels, rank.host_api_us) == (1, 1, 20)


def test_more_parts_than_anyone_reads_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three steps on two devices are six pairs."""
    rows = [event("user_annotation", f"ProfilerStep#{n}", 10 * n, 10) for n in range(3)]
    rows += [event("kernel", "k", 5, 3, pid=d, tid=7, device=d, stream=7) for d in range(2)]
    assert len(only(rows).steps) == 3
    monkeypatch.setattr("rooflight.results.stages.MAX_CELLS", 5)
    with pytest.raises(TooLarge, match="3 steps on 2 devices"):
        only(rows)


def test_lost_graph_replays_withhold_the_verdict() -> None:
    rows = [
        *(event("cuda_runtime", "cudaGraphLaunch", 10 * i, 5, correlation=i) for i in range(10)),
        *(
            event("kernel", "k", 10 * i + 6, 3, pid=0, tid=7, device=0, stream=7, correlation=i)
            for i in range(8)
        ),
    ]
    rank = only(rows)
    assert (rank.graph_launches, rank.graph_launches_with_kernels) == (10, 8)
    assert rank.grade == "unreliable"
    assert rank.verdict_withheld is not None
    assert rank.regime is None


def test_a_correlation_of_two_processes_links_nothing() -> None:
    rows = [
        event("cuda_runtime", "cudaLaunchKernel", 0, 1, pid=1, correlation=5),
        event("cuda_runtime", "cudaLaunchKernel", 0, 1, pid=2, correlation=5),
        event("kernel", "k", 10, 30, pid=0, tid=7, device=0, stream=7, correlation=5),
    ]
    rank = only(rows)
    assert rank.unattributed_us == 30
    assert {f.code: f.count for f in rank.flags}["ambiguous_correlation"] == 1


def test_ranks_are_sorted_and_one_file_each() -> None:
    two = [
        timeline_from_events(mm(0, 64, correlation=1), distributedInfo={"rank": r, "world_size": 3})
        for r in (2, 0)
    ]
    document = analyze(two).document
    assert [r.rank for r in document.ranks] == [0, 2]
    assert document.missing_ranks == [1]
    assert [f.code for f in document.flags] == ["missing_ranks"]
    with pytest.raises(Refused, match="rank 2 is there twice: both drawn"):
        analyze([two[0], two[0]])


def test_the_json_is_strict_and_comes_back_as_it_was() -> None:
    document = analyze(timeline_from_events(mm(0, 64, correlation=1), **H100)).document
    text = protocol.encode(document)
    assert protocol.decode(text) == document
    assert json.loads(text)["ranks"][0]["kernels"][0]["flops"] == 2 * 64**3
    assert json.loads(encode_http(document))["ranks"][0]["kernels"][0]["flops"] == str(2 * 64**3)


def test_launch_columns_are_row_aligned_and_name_their_step_and_row() -> None:
    rows = [
        event("user_annotation", "ProfilerStep#4", 0, 60),
        *mm(5, 64, correlation=1),
        *mm(70, 64, correlation=2),
    ]
    analysis = analyze(timeline_from_events(rows, **H100))
    columns = analysis.launches[0]
    assert {len(c) for c in columns.values()} == {2}
    assert columns["step"].tolist() == [4, -1]
    assert columns["launch_ns"].tolist() == [7_000, 72_000]
    assert columns["kernel_row"].tolist() == [0, 0]
    assert columns["regime"].tolist() == [analysis.document.ranks[0].kernels[0].regime] * 2


def test_launch_columns_hold_all_that_draws_a_launch() -> None:
    """bf16 mm of n = 64, launched 2 us after the op's start by a call of 2 us, runs 8 us after that:
    2 x 64^3 = 524,288 FLOPs and 3 x 64^2 x 2 = 24,576 bytes.  The copy of 1 MB has no launch and no shape."""
    copy = event("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 200, 50, pid=0, tid=20, device=0, stream=20,
                 bytes=1_000_000, correlation=99)  # fmt: skip
    frame = event("python_function", "nn.Module: Linear_0", 4, 60)
    analysis = analyze(timeline_from_events([frame, *mm(5, 64, correlation=3), copy], **H100))
    first, second = ({k: v.tolist()[i] for k, v in analysis.launches[0].items()} for i in (0, 1))
    assert (first["launch_ns"], first["launch_dur_ns"], first["start_ns"]) == (7_000, 2_000, 15_000)
    assert (first["thread"], first["stream"], first["device"]) == ("9/1", "7", "0")
    assert (first["op"], first["module"]) == ("aten::mm", "nn.Module: Linear_0")
    assert (first["phase"], second["phase"]) == ("forward", "other")
    assert (first["grid"], first["block"]) == ("132 1 1", "384 1 1")
    assert (first["registers"], first["shared_memory"], first["graph_node"]) == (-1, -1, -1)
    assert (first["flops"], first["moved_bytes"], first["bytes"]) == (524_288, 24_576, -1)
    assert (first["link_bytes"], first["origin"]) == (-1, "modelled")
    # The row rounds to nanoseconds.
    assert first["bound_us"] == pytest.approx(analysis.document.ranks[0].kernels[0].bound_us, abs=0.0005)
    assert (second["op"], second["module"], second["thread"], second["grid"]) == ("", "", "", "")
    assert (second["launch_ns"], second["launch_dur_ns"]) == (-1, -1)
    # From the host: the bytes are written to device memory once, and cross the link once.
    assert (second["bytes"], second["moved_bytes"], second["link_bytes"]) == (1_000_000,) * 3
    assert (second["origin"], second["flops"]) == ("measured", 0)


def test_a_calibration_of_the_device_sets_the_practical_roof() -> None:
    c = Calibration(
        device="NVIDIA H100 80GB HBM3",
        kind="cuda",
        measured_at="2026-12-01T00:00:00Z",
        gemm_tflops={"bf16": 700.0},
    )
    timeline = timeline_from_events(mm(0, 4096, correlation=1), **H100)
    roof = analyze(timeline, options=Options(calibrations=(c,))).document.ranks[0].roofs["0"].compute["bf16"]
    assert (roof.practical, roof.origin) == (700e12, "measured")


def test_frames_for_notebooks() -> None:
    rows = [event("user_annotation", "ProfilerStep#4", 0, 60), *mm(5, 64, correlation=1)]
    analysis = analyze(timeline_from_events(rows, **H100))
    assert analysis.kernels["time_us"].tolist() == [100.0]
    assert analysis.steps["n"].tolist() == [4]


# -- the CPU as a device -----------------------------------------------------------------------------

CPU = Calibration(
    device="A CPU", kind="cpu", measured_at="2026-12-01T00:00:00Z", gemm_tflops={"fp32": 0.1},
    vector_tflops={"fp32": 0.05}, stream_gbs=10.0,
)  # fmt: skip


def cpu_rows() -> list[dict[str, Any]]:
    """In a step of 1000 µs: 100 input, 50 sync (aten::item), linear 400 around addmm 300, rest host.

    addmm is 2 x 128 x 256 x 256 = 16,777,216 FLOPs: 167.8 µs at 0.1 TFLOP/s, 56 % of 300."""
    shapes = {"Input type": ["float"] * 3}
    return [
        event("user_annotation", "ProfilerStep#7", 0, 1000),
        event("user_annotation", "enumerate(DataLoader)#It.__next__", 0, 100),
        event("cpu_op", "aten::stack", 10, 50),
        event(
            "cpu_op", "aten::linear", 200, 400, **shapes, **{"Input Dims": [[128, 256], [256, 256], [256]]}
        ),
        event("cpu_op", "aten::addmm", 250, 300, **shapes, **{"Input Dims": [[256], [128, 256], [256, 256]]}),
        event("cpu_op", "aten::item", 700, 50),
        event("cpu_op", "aten::mul", 100, 500, tid=2),
    ]


def test_a_cpu_step_is_cut_into_self_times_that_sum_to_it() -> None:
    rank = analyze(timeline_from_events(cpu_rows()), options=Options(calibrations=(CPU,))).document.ranks[0]
    assert rank.devices == {}
    assert "no_gpu_activity" in {f.code for f in rank.flags}
    cpu = rank.cpu
    assert cpu is not None
    [step] = cpu.steps
    got = {p: v for p in protocol.PARTS if (v := getattr(step.parts_us, p))}
    # linear's own 100 and addmm's 300 are latency: neither roof is at 60 %.
    assert got == {"input": 100, "sync": 50, "latency": 400, "host": 1000 - 550}
    assert sum(got.values()) == step.step_time_us
    times = {k.name: k.time_us for k in cpu.ops}
    assert times == {
        "aten::addmm": 300,
        "aten::linear": 100,
        "aten::stack": 50,
        "aten::item": 50,
        "aten::mul": 500,
    }
    addmm = next(k for k in cpu.ops if k.name == "aten::addmm")
    assert addmm.flops == 16_777_216
    assert addmm.roof_fraction == pytest.approx(16_777_216 / 0.1e12 * 1e6 / 300, rel=1e-3)
    assert cpu.threads_busy_us == {"9/2": 500}
    assert cpu.regime == "host"


def test_gpu_work_that_was_not_recorded_is_no_work_of_the_cpu() -> None:
    rank = only([*cpu_rows(), event("cuda_runtime", "cudaLaunchKernel", 300, 5, correlation=1)])
    assert rank.grade == "unreliable"
    assert rank.verdict_withheld is not None
    assert "not" in rank.verdict_withheld
    assert rank.cpu is not None
    assert rank.cpu.regime is None


def test_a_copy_from_the_host_is_bound_by_pcie() -> None:
    """63 MB over PCIe 5 x16 at 63 GB/s take 1000 µs by the datasheet; the H100 has gen 5."""
    copy = event("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 0, 2000, pid=0, tid=7, device=0, stream=7,
                 bytes=63_000_000)  # fmt: skip
    [k] = only([copy], **H100).kernels
    roof = only([copy], **H100).roofs["0"].pcie
    assert roof is not None
    assert roof.datasheet == 63e9
    assert roof.practical is not None
    assert k.bound_us == pytest.approx(63e6 / roof.practical * 1e6, abs=0.001)
    assert (k.regime, k.kind) == ("copy", "memcpy")


def test_copies_of_unequal_size_in_one_row_are_judged_by_the_median_one() -> None:
    """Sizes 1, 1 and 1000 MB in 20, 20 and 20,000 µs at 85 % of 63 GB/s: the median copy takes at least
    1e6 / 53.55e9 s = 18.674 µs of its 20; all of them 1002e6 / 53.55e9 s."""
    rows = [
        event("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", ts, dur, pid=0, tid=7, device=0, stream=7,
              bytes=size)
        for ts, dur, size in ((0, 20, 1_000_000), (100, 20, 1_000_000), (200, 20_000, 1_000_000_000))
    ]  # fmt: skip
    [k] = only(rows, **H100).kernels
    assert (k.count, k.p50_us, k.bytes) == (3, 20, 1_002_000_000)
    assert k.roof_fraction == pytest.approx(18.674 / 20, abs=1e-4)
    assert not k.above_peak
    assert k.bound_us == pytest.approx(1_002_000_000 / 53.55e9 * 1e6, abs=0.001)


def test_a_kernel_with_the_name_of_a_copy_is_a_row_of_its_own() -> None:
    """A copy of 5.5 µs and a kernel of 0 µs, both named alike: no kernel time, so no share of it."""
    where = {"pid": 0, "tid": 7, "device": 0, "stream": 7}
    rank = only(
        [event("kernel", "Memcpy HtoD", 10, 0, **where), event("gpu_memcpy", "Memcpy HtoD", 0, 5.5, **where)]
    )
    assert sorted((k.count, k.time_us) for k in rank.kernels) == [(1, 0.0), (1, 5.5)]
    assert rank.devices["0"].kernel_sum_us == 0


def test_only_roofs_that_kernels_were_held_against_are_called_assumed() -> None:
    """Nobody measured fp16 products on a V100; its fp32 units and its memory have measured shares."""
    v100 = {"deviceProperties": [{"id": 0, "name": "Tesla V100-SXM2-32GB", "numSms": 80}]}

    def codes(dtype: str) -> set[str]:
        return {f.code for f in only(mm(0, 512, correlation=1, dtype=dtype), **v100).flags}

    assert "factor_assumed" in codes("c10::Half")
    assert "factor_assumed" not in codes("float")


def test_properties_numbered_otherwise_speak_for_devices_of_one_model() -> None:
    """HIP calls the device 2 in events and 0 in properties; two models could not speak for it."""
    rows = [event("kernel", "k", 0, 9, pid=2, tid=7, device=2, stream=0)]
    one = {"id": 0, "name": "AMD Instinct MI300X", "numSms": 304}
    assert only(rows, deviceProperties=[one, {**one, "id": 1}]).roofs["2"].gpu_id == "mi300x"
    other = {"id": 1, "name": "AMD Instinct MI210", "numSms": 104}
    assert only(rows, deviceProperties=[one, other]).roofs["2"].gpu_id is None


def test_counting_in_integers_needs_no_peak_of_the_cpu() -> None:
    """As on a GPU: no roof is published for it, and its bytes have one."""
    counter = event("cpu_op", "aten::add_", 0, 20, **{"Input Dims": [[64], [64], []],
                    "Input type": ["long int", "long int", "Scalar"]})  # fmt: skip
    calibrated = Options(calibrations=(CPU,))
    rank = analyze(timeline_from_events([counter]), options=calibrated).document.ranks[0]
    assert rank.cpu is not None
    assert rank.cpu.ops[0].flops == 64
    assert "peak_unknown" not in {f.code for f in rank.flags}
    assert "peak_unknown" in {f.code for f in only([counter]).flags}


def test_a_cpu_without_a_calibration_has_no_roof() -> None:
    rank = only(cpu_rows())
    assert rank.cpu is not None
    assert {k.regime for k in rank.cpu.ops if k.flops} == {"unknown"}


# -- the shared cases --------------------------------------------------------------------------------


@pytest.mark.traces
@pytest.mark.parametrize(
    ("file", "rank", "wall"), [("input-rank0.json", 0, 100_000), ("input-rank1.json", 1, 130_000)]
)
def test_wall_times_of_files_with_and_without_a_base_agree(file: str, rank: int, wall: int) -> None:
    """Case 45: 1764500000 s + 100 and 130 µs, whatever the base of the file."""
    result = analyze(read(Path(cases_dir()) / "45-base-time-and-absolute-mixed" / file)).document.ranks[0]
    assert (result.rank, result.first_kernel_wall_ns) == (rank, str(1_764_500_000_000_000_000 + wall))
