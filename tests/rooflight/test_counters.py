"""Hardware counters go before formulas: in a recording, and in a file beside it."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rooflight import Timeline, analyze, analyze_files, read, read_counters
from rooflight.cli.cost import answer
from rooflight.cli.explained import lines as explained
from rooflight.cli.main import main
from rooflight.cost import OpCall, estimate
from rooflight.cost.explain import explain
from rooflight.errors import Malformed
from rooflight.protocol import Kernel, Rank, encode
from rooflight.readers import kineto
from rooflight.trace import stored
from rooflight.trace.counters import MAX_LAUNCHES
from tests.drawing import timeline_from_events
from tests.shared import CHECKOUT, traces_dir

A100 = {"id": 0, "name": "NVIDIA A100-SXM4-80GB", "computeMajor": 8, "computeMinor": 0, "numSms": 108}
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, 2>(int)"
SASS = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum"


def event(cat: str, name: str, ts: float, dur: float, pid: int = 9, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": 7, "ts": ts, "dur": dur, "args": args}


def an_add(correlation: int = 11, at: float = 0) -> list[dict[str, Any]]:
    """c = a + b of 1024 fp32: by formula 1,024 FLOPs and 3 x 1024 x 4 = 12,288 bytes, in 20 us."""
    inputs = {"Input Dims": [[1024], [1024], []], "Input type": ["float", "float", "Scalar"],
              "Input Strides": [[1], [1], []], "Concrete Inputs": ["", "", "1"]}  # fmt: skip
    gpu = {"device": 0, "context": 1, "stream": 7, "correlation": correlation}
    return [
        event("cpu_op", "aten::add", at + 5, 10, **inputs),
        event("cuda_runtime", "cudaLaunchKernel", at + 7, 2, correlation=correlation),
        event("kernel", ADD, at + 20, 20, 0, **gpu, grid=[2, 1, 1], block=[128, 1, 1]),
    ]


def counted(at: float, correlation: int | None = None) -> dict[str, Any]:
    """A row of CUPTI's range profiler, without metrics yet."""
    args = {} if correlation is None else {"correlation": correlation}
    return event("cuda_profiler_range", ADD, at, 100, 0, **args)


def dram(total: int, **where: Any) -> dict[str, Any]:
    row = counted(1, **where)
    row["args"] |= {"dram__bytes_read.sum": total - 1, "dram__bytes_write.sum": 1}
    return row


def sass(**counts: int) -> dict[str, int]:
    return {SASS.format(f"{k}{op}"): counts.get(f"{k}{op}", 0) for k in "dfh" for op in ("add", "mul", "fma")}


def recording(*rows: dict[str, Any]) -> Timeline:
    return timeline_from_events([*an_add(), *rows], deviceProperties=[A100])


def rank(timeline: Timeline, *files: Path) -> Rank:
    return analyze(timeline, counters=[read_counters(f) for f in files]).document.ranks[0]


def the_kernel(timeline: Timeline, *files: Path) -> Kernel:
    (kernel,) = rank(timeline, *files).kernels
    return kernel


def nsight(tmp_path: Path, *rows: str, name: str = "ncu.csv", metric: str = "dram__bytes.sum") -> Path:
    head = f'"ID","Process ID","Kernel Name","Block Size","Grid Size","Device","{metric}"\n'
    path = tmp_path / name
    path.write_text(head + '"","","","","","","byte"\n' + "".join(f"{row}\n" for row in rows))
    return path


def launch(value: int, *, n: int = 0, name: str = ADD, grid: str = "(2, 1, 1)") -> str:
    return f'"{n}","1","{name}","(128, 1, 1)","{grid}","0","{value}"'


# -- what a cost becomes -----------------------------------------------------------------------------


def test_without_counters_a_formula_speaks() -> None:
    kernel = the_kernel(recording())
    assert (kernel.flops, kernel.bytes, kernel.origin) == (1024, 12_288, "modelled")


def test_measured_bytes_go_before_the_formula(tmp_path: Path) -> None:
    """16,000 bytes were moved in 20 us: 0.8 GB/s; FLOPs stay those of the formula, 1,024 / 16,000 = 0.064."""
    kernel = the_kernel(recording(), nsight(tmp_path, launch(16_000)))
    assert (kernel.flops, kernel.bytes, kernel.origin) == (1024, 16_000, "measured")
    assert kernel.cost_reason == "bytes: dram__bytes; FLOPs modelled"
    assert kernel.achieved_gbs == pytest.approx(0.8)
    assert kernel.ai == pytest.approx(0.064)


def test_measured_flops_alone_leave_the_origin_of_the_bytes() -> None:
    """512 fma are 1,024 FLOPs, 6 adds more: 1,030.  Bytes are modelled, and so is the cost."""
    row = counted(1, correlation=11)
    row["args"] |= sass(ffma=512, fadd=6)
    kernel = the_kernel(recording(row))
    assert (kernel.flops, kernel.bytes, kernel.origin) == (1030, 12_288, "modelled")
    assert kernel.cost_reason == "bytes modelled; FLOPs: smsp__sass_thread_inst_executed_op"


def test_measured_flops_of_unknown_bytes_are_all_that_is_known() -> None:
    row = counted(1, correlation=11)
    row["args"] |= sass(ffma=512)
    without_op = [e for e in an_add() if e["cat"] != "cpu_op"]
    kernel = the_kernel(timeline_from_events([*without_op, row], deviceProperties=[A100]))
    assert (kernel.flops, kernel.bytes, kernel.origin) == (1024, None, "measured")
    assert kernel.cost_reason == "bytes unknown; FLOPs: smsp__sass_thread_inst_executed_op"
    assert kernel.dtype == "fp32"


def test_coverage_counts_kernel_time_that_was_measured(tmp_path: Path) -> None:
    """Two kernels of 20 us and of two sizes, one of them counted by its grid: half."""
    other = an_add(12, 100)
    other[0]["args"]["Input Dims"] = [[1536], [1536], []]
    other[2]["args"]["grid"] = [3, 1, 1]
    timeline = timeline_from_events([*an_add(), *other], deviceProperties=[A100])
    found = rank(timeline, nsight(tmp_path, launch(16_000)))
    assert (found.coverage.measured, found.coverage.modelled) == (50.0, 50.0)


# -- in the recording itself -------------------------------------------------------------------------


def test_counters_are_joined_by_correlation_where_they_carry_one() -> None:
    timeline = timeline_from_events(
        [*an_add(11), *an_add(12, 100), dram(20_000, correlation=12), dram(10_000, correlation=11)],
        deviceProperties=[A100],
    )
    (kernel,) = rank(timeline).kernels
    assert (kernel.bytes, kernel.origin, kernel.count) == (30_000, "measured", 2)


def test_of_a_correlation_that_no_kernel_has_it_is_said() -> None:
    flags = {f.code: f for f in rank(recording(dram(20_000, correlation=12))).flags}
    assert flags["field_unavailable"].count == 1
    assert "recording's own counters" in flags["field_unavailable"].detail


def test_several_kernels_of_one_launch_cannot_share_what_it_counted() -> None:
    two = an_add(11)
    two.append({**two[2], "ts": 60})
    found = rank(timeline_from_events([*two, dram(20_000, correlation=11)], deviceProperties=[A100]))
    assert {k.origin for k in found.kernels} == {"modelled"}
    assert [f.count for f in found.flags if f.code == "field_unavailable"] == [1]


def _chunk(*extra: dict[str, Any]) -> list[dict[str, Any]]:
    return [*an_add(), dram(16_000), *extra]


ROADS: dict[str, Callable[[], str]] = {
    "by category": lambda: json.dumps(_chunk()),
    # A category that is not listed: all rows are told by their phase.
    "strict": lambda: json.dumps(_chunk(event("odd", "x", 1, 1))),
    # Beside one, a row that is skipped has a name of another type.
    "strict, odd types": lambda: json.dumps(_chunk(event("odd", "x", 1, 1), {"ph": "s", "name": 5})),
    # Fractions beyond what binary holds at an absolute time ask for the text.
    "with texts": lambda: json.dumps(_chunk(event("cpu_op", "x", 1_700_000_000_000_000.123, 1))),
    # A category that is a number is a surprise.
    "lenient": lambda: json.dumps(_chunk({"ph": "X", "cat": 5, "name": "x", "ts": 1, "dur": 1})),
    # NaN is no JSON.
    "mended": lambda: json.dumps(_chunk(event("cpu_op", "x", 1, 1, odd=float("nan")))),
}


@pytest.mark.parametrize("road", ROADS)
def test_counters_are_read_on_every_road(road: str) -> None:
    timeline = kineto.read([f'{{"traceEvents": {ROADS[road]()}}}'.encode()], "x.json")
    (found,) = timeline.counters.launches(timeline.names)
    assert (found.name, found.device, found.correlation) == (ADD, "0", -1)
    assert found.values == {"dram__bytes_read.sum": 15_999, "dram__bytes_write.sum": 1}


def test_what_is_no_count_is_no_metric() -> None:
    row = counted(1)
    row["args"] |= {
        "a__x.sum": 5,
        "b__x.sum": -1,
        "c__x.sum": 1e300,
        "d__x": "7",
        "e__x.sum": 2.0**62,
        "x": 3,
    }
    (found,) = recording(row).counters.launches(recording(row).names)
    assert found.values == {"a__x.sum": 5, "e__x.sum": 2**62}


def test_the_order_of_rows_in_the_file_changes_nothing() -> None:
    """Two launches of one kernel: the earlier row is the first launch's."""
    rows = [dram(10_000), dram(20_000)]
    rows[1]["ts"] = 500
    events = [*an_add(11), *an_add(12, 100), *rows]
    results = [
        encode(analyze(timeline_from_events(order, deviceProperties=[A100])).document)
        for order in (events, events[::-1])
    ]
    assert results[0] == results[1]


def test_a_stored_timeline_keeps_its_counters() -> None:
    timeline = recording(dram(16_000, correlation=11))
    back = stored.decode([gzip.decompress(stored.encode(timeline))], max_rows=1000)
    assert back.counters == timeline.counters
    assert the_kernel(back).bytes == 16_000


@pytest.mark.parametrize(
    "change",
    [
        {"name": 99},
        {"name": -1},
        {"metrics": 1},
        {"values": (1,)},
        {"values": (1, -1)},
        {"values": (1, 2**63)},
    ],
    ids=str,
)
def test_stored_counters_that_no_reader_made_are_refused(change: dict[str, Any]) -> None:
    timeline = recording(dram(16_000))
    rows = tuple(replace(row, **change) for row in timeline.counters.rows)
    odd = replace(timeline, counters=replace(timeline.counters, rows=rows))
    with pytest.raises(Malformed, match="counters"):
        stored.decode([gzip.decompress(stored.encode(odd))], max_rows=1000)


def test_more_counted_launches_than_are_kept_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MAX_LAUNCHES == 100_000
    monkeypatch.setattr("rooflight.trace.builder.MAX_LAUNCHES", 2)
    flags = [f for f in rank(recording(*(dram(9) for _ in range(5)))).flags if "kept" in f.detail]
    assert [(f.code, f.count) for f in flags] == [("metric_unavailable", 3)]


def test_a_recording_of_counters_alone_says_where_they_belong() -> None:
    rows = [e for e in an_add() if e["cat"] != "kernel"]
    found = rank(timeline_from_events([*rows, dram(16_000)], deviceProperties=[A100]))
    (flag,) = [f for f in found.flags if f.code == "field_unavailable"]
    assert flag.count == 1
    assert "--counters" in flag.detail


def test_such_a_recording_measures_another(tmp_path: Path) -> None:
    rows = [e for e in an_add() if e["cat"] != "kernel"]
    (tmp_path / "cupti.json").write_text(json.dumps({"traceEvents": [*rows, dram(16_000)]}))
    kernel = the_kernel(recording(), tmp_path / "cupti.json")
    assert (kernel.bytes, kernel.origin) == (16_000, "measured")


@pytest.mark.traces
def test_a_real_recording_of_counters() -> None:
    """AlexNet on A100, every kernel of two iterations; the first convolution ran 9,119,334,400 fma."""
    timeline = read(traces_dir() / "hta/a100_cupti_counters.json.gz")
    launches = timeline.counters.launches(timeline.names)
    assert len(launches) == 77
    assert launches[1].values[SASS.format("ffma")] == 9_119_334_400
    assert all(len(found.values) == 9 for found in launches)


@pytest.mark.traces
def test_counters_of_one_real_run_measure_another_of_the_same_program() -> None:
    """What the sgemms of AlexNet's classifier ran, 2 x ffma + fadd + fmul, by the names of their kernels:
    2 x 4,831,838,208 + 1,572,864 + 2,097,152 = 9,667,346,432."""
    counters = read_counters(traces_dir() / "hta/a100_cupti_counters.json.gz")
    found = analyze(read(traces_dir() / "hta/a100_alexnet.json.gz"), counters=[counters]).document.ranks[0]
    assert found.coverage.measured > 50
    sgemm = [k for k in found.kernels if k.name == "ampere_sgemm_32x32_sliced1x4_tn"]
    assert sgemm
    assert all(k.dtype == "fp32" and k.cost_reason.endswith("executed_op") for k in sgemm)


# -- beside the recording ----------------------------------------------------------------------------


def test_several_files_each_tell_a_part(tmp_path: Path) -> None:
    files = [
        nsight(tmp_path, launch(15_000), name="read.csv", metric="dram__bytes_read.sum"),
        nsight(tmp_path, launch(1_000), name="write.csv", metric="dram__bytes_write.sum"),
    ]
    found = rank(recording(), *files)
    assert [(k.bytes, k.origin) for k in found.kernels] == [(16_000, "measured")]
    assert not [f for f in found.flags if f.code.endswith("_unavailable")]


def test_the_recording_goes_before_a_file_and_a_file_before_the_next(tmp_path: Path) -> None:
    files = [nsight(tmp_path, launch(n), name=f"{n}.csv") for n in (5_000, 6_000)]
    assert the_kernel(recording(dram(16_000, correlation=11)), *files).bytes == 16_000
    assert the_kernel(recording(), *files).bytes == 5_000


def test_what_fits_no_kernel_is_said_with_its_file(tmp_path: Path) -> None:
    path = nsight(tmp_path, launch(1), launch(2, n=1, name="other"), launch(3, n=2, grid="(9, 1, 1)"))
    (flag,) = [f for f in rank(recording(), path).flags if f.code == "field_unavailable"]
    assert (flag.count, flag.detail.startswith("2 of 3 launches that ncu.csv counted")) == (2, True)


def test_values_that_were_not_told_are_counted() -> None:
    found = rank(recording(), CHECKOUT / "tests/data/counters/ncu_raw.csv")
    assert [f.count for f in found.flags if f.code == "metric_unavailable"] == [1]


def test_the_command_takes_files_of_counters(tmp_path: Path, capsysbinary: Any) -> None:
    trace, csv = tmp_path / "t.json", nsight(tmp_path, launch(16_000))
    trace.write_text(json.dumps({"traceEvents": an_add(), "deviceProperties": [A100]}))
    assert main(["analyze", str(trace), "--counters", str(csv), "--format", "json"]) == 0
    (kernel,) = json.loads(capsysbinary.readouterr().out)["ranks"][0]["kernels"]
    assert (kernel["bytes"], kernel["origin"]) == (16_000, "measured")


def test_the_command_refuses_a_file_without_counters_by_its_name(tmp_path: Path, capsys: Any) -> None:
    trace = tmp_path / "t.json"
    trace.write_text(json.dumps({"traceEvents": an_add()}))
    assert main(["analyze", str(trace), "--counters", str(trace)]) == 2
    err = capsys.readouterr().err
    assert "no counters" in err
    assert "t.json" in err


def test_ranks_in_processes_of_their_own_are_measured_too(tmp_path: Path) -> None:
    csv, paths = nsight(tmp_path, launch(16_000)), []
    for n in (0, 1):
        path = tmp_path / f"rank{n}.json"
        info = {"rank": n, "world_size": 2}
        path.write_text(json.dumps({"traceEvents": an_add(), "distributedInfo": info}))
        paths.append(path)
    found = analyze_files(paths, counters=[csv], jobs=2).document
    assert [r.kernels[0].bytes for r in found.ranks] == [16_000, 16_000]


# -- counted by a compiler ---------------------------------------------------------------------------


def inductor(**args: Any) -> OpCall:
    """A pointwise kernel of two tensors of 2048 fp32, one launch element each."""
    return OpCall(
        "triton_poi_fused_relu_0",
        dims=([2048], [2048], []),
        types=("float", "float", "Scalar"),
        strides=([1], [1], []),
        concrete=("", "", "2048"),
        gpu_args={"kernel_backend": "triton", **args},
    )


def test_bytes_by_inductors_own_count() -> None:
    """0.0000164 GB of 1e9 bytes are 16,400 bytes; by shapes they would be 2 x 2048 x 4 = 16,384."""
    assert estimate(inductor()).bytes == 16_384
    cost = estimate(inductor(kernel_num_gb=0.0000164))
    assert (cost.bytes, cost.flops, cost.origin) == (16_400, None, "measured")
    assert (cost.bytes_read, cost.bytes_written) == (None, None)
    assert cost.reason == "bytes: the compiler's kernel_num_gb; FLOPs unknown"


def test_flops_by_inductors_own_count() -> None:
    cost = estimate(inductor(kernel_num_gb=0.0000164, kernel_flop=2048))
    assert (cost.bytes, cost.flops, cost.origin) == (16_400, 2048, "measured")


@pytest.mark.parametrize("value", [0, 0.0, None, -1, "7", True, float("inf"), float("nan"), 1e300, [1]])
def test_what_the_compiler_does_not_know_is_not_taken(value: Any) -> None:
    assert estimate(inductor(kernel_num_gb=value, kernel_flop=value)) == estimate(inductor())


def test_the_compilers_count_reaches_the_table_and_counters_go_before_it() -> None:
    op = event("cpu_op", "triton_poi_fused_relu_0", 5, 10, kernel_backend="triton", kernel_num_gb=0.0000164,
               **{"Input Dims": [[2048], [2048]], "Input type": ["float", "float"]})  # fmt: skip
    rows = [op, *an_add()[1:]]
    kernel = the_kernel(timeline_from_events(rows, deviceProperties=[A100]))
    assert (kernel.bytes, kernel.origin) == (16_400, "measured")
    both = timeline_from_events([*rows, dram(20_000, correlation=11)], deviceProperties=[A100])
    assert the_kernel(both).bytes == 20_000


def test_bytes_that_were_counted_together_are_told_so() -> None:
    told = answer(estimate(inductor(kernel_num_gb=0.0000164)))
    assert (told["bytes"], told["bytes_read"], told["bytes_written"]) == (16_400, None, None)
    assert "bytes" not in answer(estimate(inductor()))
    lines = list(explained(explain(inductor(kernel_num_gb=0.0000164))))
    assert any("FLOPs unknown, 16,400 B" in line for line in lines)
    assert not any("unknown in all" in line for line in lines)
