"""Kernels of graph replays that are named from an eager recording (rooflight/attribution/replays.py)."""

from __future__ import annotations

import gzip
import json
import time
from pathlib import Path
from typing import Any

import pytest

from rooflight import analyze, read
from rooflight.cli.main import main
from rooflight.protocol import Kernel, Rank
from rooflight.readers import kineto
from rooflight.trace.timeline import Timeline
from tests.drawing import timeline_from_events
from tests.shared import traces_dir

Event = dict[str, Any]
H100 = {"deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3", "numSms": 132,
                              "computeMajor": 9, "computeMinor": 0}]}  # fmt: skip
#: The kernels of a layer, and the ops that launch them; eight, which is as many as a run has to have.
LAYER = {
    "norm": "aten::rms_norm", "qkv_gemm": "aten::mm", "rope": "rope", "attn": "aten::sdpa",
    "out_gemm": "aten::mm", "add": "aten::add", "up_gemm": "aten::mm", "silu": "aten::silu",
}  # fmt: skip


def row(cat: str, name: str, ts: float, dur: float, *, tid: int = 1, pid: int = 9, **args: Any) -> Event:
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}


class Program:
    """Runs kernels one by one under their ops, or all at once as a graph."""

    def __init__(self, rows: int = 64) -> None:
        self.events: list[Event] = []
        self.now, self.calls, self.rows = 0.0, 0, rows

    def _kernel(self, name: str, grid: int | None) -> None:
        where: Event = {"device": 0, "stream": 7, "correlation": self.calls}
        if grid is not None:
            where |= {"grid": [grid, 1, 1], "block": [128, 1, 1], "registers per thread": 32}
        self.events.append(row("kernel", name, self.now + 5, 4, pid=0, tid=7, **where))
        self.now += 10

    def op(self, name: str, *kernels: str, grid: int | None = None, around: str = "") -> None:
        """An op on ``rows`` x 128 and 128 x 128 matrices, with a launch for each kernel."""
        inputs = {"Input Dims": [[self.rows, 128], [128, 128]], "Input type": ["c10::BFloat16"] * 2,
                  "Input Strides": [[128, 1], [128, 1]], "Concrete Inputs": ["", ""]}  # fmt: skip
        begin = self.now
        for kernel in kernels:
            self.calls += 1
            self.events.append(
                row("cuda_runtime", "cudaLaunchKernel", self.now + 1, 1, correlation=self.calls)
            )
            self._kernel(kernel, grid)
        spans = [(around, begin)] * bool(around) + [(name, begin + 0.5)]
        self.events += [row("cpu_op", n, at, self.now - at - 0.1, **inputs) for n, at in spans]

    def graph(self, *kernels: str, grid: int | None = None) -> None:
        self.calls += 1
        self.events.append(row("cuda_runtime", "cudaGraphLaunch", self.now, 3, correlation=self.calls))
        for kernel in kernels:
            self._kernel(kernel, grid)

    def layer(self, **how: Any) -> Program:
        for kernel, op in LAYER.items():
            self.op(op, kernel, **how)
        return self

    def timeline(self) -> Timeline:
        return timeline_from_events(self.events, **H100)


def replay(*kernels: str, times: int = 1, grid: int | None = None) -> Timeline:
    program = Program()
    for _ in range(times):
        program.graph(*kernels, grid=grid)
    return program.timeline()


def analysed(graph: Timeline, eager: Timeline) -> Rank:
    return analyze(graph, eager=eager).document.ranks[0]


def by_name(rank: Rank) -> dict[str, Kernel]:
    return {k.name: k for k in rank.kernels}


def ops(graph: Timeline, eager: Timeline) -> dict[str, str | None]:
    return {name: k.op for name, k in by_name(analysed(graph, eager)).items()}


def test_a_replay_has_the_ops_of_the_kernels_that_it_was_captured_from() -> None:
    """Two replays of a layer.  2 x 64 x 128 x 128 = 2,097,152 FLOPs for each of the three gemms."""
    eager = Program().layer().timeline()
    rank = analysed(replay(*LAYER, times=2), eager)
    rows = by_name(rank)
    assert {name: k.op for name, k in rows.items()} == LAYER
    for gemm in ("qkv_gemm", "out_gemm", "up_gemm"):
        assert (rows[gemm].count, rows[gemm].flops) == (2, 2 * 2 * 64 * 128 * 128)
        assert rows[gemm].origin == "inferred"
        assert rows[gemm].cost_reason == "op and inputs as in the eager recording drawn.json"
        assert rows[gemm].input_dims == "[[64, 128], [128, 128]]"
    assert rows["rope"].origin == "unknown"  # an op that nobody knows is not known from elsewhere either
    assert (rank.attributed_kernels, rank.unattributed_us) == (16, 0.0)


def test_without_an_eager_recording_they_belong_to_no_op() -> None:
    rank = analyze(replay(*LAYER)).document.ranks[0]
    assert {k.op for k in rank.kernels} == {None}
    assert rank.attributed_kernels == 0


def test_layers_that_are_alike_may_all_be_named_from_one() -> None:
    rank = analysed(replay(*LAYER, *LAYER, *LAYER), Program().layer().timeline())
    assert {k.name: (k.op, k.count) for k in rank.kernels} == {name: (op, 3) for name, op in LAYER.items()}
    assert by_name(rank)["up_gemm"].flops == 3 * 2 * 64 * 128 * 128


def test_what_eager_steps_disagree_on_stays_unnamed() -> None:
    """The second eager step has attention of another length: which one the graph ran is not known."""
    program = Program().layer()
    program.rows = 64
    for kernel, op in LAYER.items():
        program.rows = 65 if kernel == "attn" else 64
        program.op(op, kernel)
    named = ops(replay(*LAYER), program.timeline())
    assert named == {**LAYER, "attn": None}


def test_fewer_kernels_than_a_run_has_are_not_named() -> None:
    seven = list(LAYER)[:7]
    assert set(ops(replay(*seven, "other"), Program().layer().timeline()).values()) == {None}
    # But a graph of seven kernels is whole.
    assert ops(replay(*seven), Program().layer().timeline()) == {k: LAYER[k] for k in seven}


def test_a_part_that_was_never_eager_is_left_out() -> None:
    named = ops(replay("fused_norm", *LAYER, "sampler"), Program().layer().timeline())
    assert named == {"fused_norm": None, **LAYER, "sampler": None}


def test_another_grid_is_another_kernel() -> None:
    """Grids are compared where all kernels of the graphs have one; HIP records none."""
    eager = Program().layer(grid=8).timeline()
    assert ops(replay(*LAYER, grid=8), eager) == LAYER
    assert set(ops(replay(*LAYER, grid=16), eager).values()) == {None}
    assert ops(replay(*LAYER), eager) == LAYER


def test_an_op_of_which_a_kernel_is_outside_of_the_run_names_none() -> None:
    """The first op launched two kernels, the graph has only the second: its cost is not that one's."""
    program = Program()
    program.op("aten::mm", "split", "qkv_gemm_0")
    program.layer()
    assert ops(replay("qkv_gemm_0", *LAYER), program.timeline()) == {"qkv_gemm_0": None, **LAYER}
    assert ops(replay("split", "qkv_gemm_0", *LAYER), program.timeline())["split"] == "aten::mm"


def test_an_op_around_brings_its_formula() -> None:
    """aten::_inner has no formula; the aten::mm around it has: 2 x 64 x 128 x 128, once in each layer."""
    program = Program()
    for kernel in LAYER:
        program.op("aten::_inner", kernel, around="aten::mm")
    rank = analysed(replay(*LAYER, *LAYER), program.timeline())
    assert {k.op for k in rank.kernels} == {"aten::_inner"}
    assert {k.flops for k in rank.kernels} == {2 * 2 * 64 * 128 * 128}


def test_a_graph_in_the_eager_recording_names_nothing() -> None:
    assert set(ops(replay(*LAYER), replay(*LAYER)).values()) == {None}


def test_thousands_of_graphs_and_kernels_take_a_second() -> None:
    program = Program()
    for _ in range(200):
        program.layer()
    graphs = Program()
    for i in range(400):
        graphs.graph(*list(LAYER) * (1 + i % 20))
    graph, eager = graphs.timeline(), program.timeline()
    begin = time.process_time()
    rank = analysed(graph, eager)
    assert time.process_time() - begin < 4
    assert {k.name: k.op for k in rank.kernels} == LAYER


def test_the_command_line_takes_both(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graphs = Program()
    graphs.graph(*LAYER)
    for name, program in (("graph", graphs), ("eager", Program().layer())):
        (tmp_path / f"{name}.json").write_text(json.dumps({**H100, "traceEvents": program.events}))
    command = ["analyze", str(tmp_path / "graph.json"), "--format", "json", "--eager"]
    assert main([*command, str(tmp_path / "eager.json")]) == 0
    [rank] = json.loads(capsys.readouterr().out)["ranks"]
    assert {k["name"]: k["op"] for k in rank["kernels"]} == LAYER
    assert main([*command, str(tmp_path / "none.json")]) == 2
    assert "none.json" in capsys.readouterr().err


REAL = ("pairs/h100/Falconsai_nsfw_image_detection__1016002.json.gz",
        "pairs/h100/gaunernst_bert-small-uncased__1016001.json.gz",
        "pairs/mi300/Falconsai_nsfw_image_detection__1016002.json.gz")  # fmt: skip


@pytest.mark.traces
@pytest.mark.parametrize("file", REAL)
def test_a_real_model_that_is_replayed_as_one_graph_has_all_its_ops_again(file: str) -> None:
    """The kernels of a real eager pass, as if one graph launch had started them: op by op the same, and the
    same FLOPs and bytes, which are inferred now."""
    path = traces_dir() / file
    events = json.loads(gzip.decompress(path.read_bytes()))
    for e in events["traceEvents"]:
        if e.get("cat") == "kernel":
            e["args"]["correlation"] = 1 << 30
    began = min(float(e["ts"]) for e in events["traceEvents"] if e.get("cat") == "kernel")
    events["traceEvents"].append(row("cuda_runtime", "cudaGraphLaunch", began - 1, 1, correlation=1 << 30))
    graph, eager = kineto.read([json.dumps(events).encode()], "graph"), read(path)
    want = analyze(eager).document.ranks[0]
    got = analysed(graph, eager)
    assert got.attributed_kernels == want.attributed_kernels > 0
    assert got.attribution_op_time_us == want.attribution_op_time_us
    assert got.flops_total == want.flops_total
    assert (got.coverage.inferred, got.coverage.modelled) == (want.coverage.modelled, want.coverage.inferred)
