"""Forward ops, modules, compiled regions and phases of GPU events (DEFINITIONS §5, KINETO §2)."""

from __future__ import annotations

import gzip
import json
from decimal import Decimal
from typing import Any

import pytest

from rooflight import analyze, read
from rooflight.attribution.forward import forward_ops
from rooflight.attribution.launches import link
from rooflight.attribution.phases import PHASES, phases
from rooflight.protocol import Kernel
from rooflight.trace.timeline import Timeline
from tests.drawing import timeline_from_events
from tests.shared import traces_dir

MAIN, ENGINE = 1, 2
EVALUATE = "autograd::engine::evaluate_function: "


def row(
    cat: str, name: str, ts: float, dur: float, *, tid: int = MAIN, pid: int = 9, **args: Any
) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}


def op(
    name: str, ts: float, dur: float, *, seq: int | None = None, fwd: int = 0, **more: Any
) -> dict[str, Any]:
    numbers = {} if seq is None else {"Sequence number": seq, "Fwd thread id": fwd}
    return row("cpu_op", name, ts, dur, **more, **numbers)


def module(name: str, ts: float, dur: float, **more: Any) -> dict[str, Any]:
    return row("python_function", f"nn.Module: {name}", ts, dur, **more)


def launch(name: str, ts: float, *, n: int, driver: bool = False, **more: Any) -> list[dict[str, Any]]:
    """A call at ``ts`` of 1 µs and the kernel ``name`` of 5 µs that it launches, 50 µs later."""
    call = ("cuda_driver", "cuLaunchKernel") if driver else ("cuda_runtime", "cudaLaunchKernel")
    kernel = row("kernel", name, ts + 50, 5, pid=0, tid=7, device=0, stream=7, correlation=n)
    return [row(*call, ts, 1, correlation=n, **more), kernel]


def host_name(timeline: Timeline, index: int) -> str | None:
    return None if index < 0 else timeline.names[timeline.host.name[index]]


def by_kernel(timeline: Timeline, column: str) -> dict[str, str | None]:
    """Of each kernel's name the name of the host row in a column of its links."""
    rows = getattr(link(timeline), column).tolist()
    names = [timeline.names[i] for i in timeline.gpu.name]
    return {name: host_name(timeline, at) for name, at in zip(names, rows, strict=True)}


def kernels(timeline: Timeline) -> dict[str, Kernel]:
    return {k.name: k for k in analyze(timeline).document.ranks[0].kernels}


def test_the_forward_op_is_the_last_in_time_that_carries_the_number() -> None:
    """Ops that record no gradient carry the number that comes next: the one that takes it is the last."""
    timeline = timeline_from_events([
        op("aten::detach", 0, 5, seq=7), op("aten::linear", 10, 20, seq=7), op("aten::addmm", 12, 10, seq=7),
        op("AddmmBackward0", 100, 20, seq=7, fwd=1, tid=ENGINE), op("aten::mm", 102, 5, tid=ENGINE),
        *launch("gemm", 103, n=1, tid=ENGINE),
    ])  # fmt: skip
    assert by_kernel(timeline, "forward") == {"gemm": "aten::addmm"}
    assert by_kernel(timeline, "op") == {"gemm": "aten::mm"}


def test_an_op_after_its_backward_pass_is_not_its_forward_op() -> None:
    """The next step starts to count anew only in a broken recording; forward comes before backward."""
    rows = [
        op("aten::relu", 0, 5, seq=7), op("aten::gelu", 200, 5, seq=7),
        op("ReluBackward0", 100, 20, seq=7, fwd=1, tid=ENGINE), *launch("threshold", 105, n=1, tid=ENGINE),
    ]  # fmt: skip
    assert by_kernel(timeline_from_events(rows), "forward") == {"threshold": "aten::relu"}


def test_rows_without_a_number_inherit_from_the_op_around() -> None:
    """What inductor runs in CompiledFunctionBackward carries none; neither does AccumulateGrad, alone."""
    timeline = timeline_from_events([
        op("Torch-Compiled Region: 0/0", 0, 40), op("CompiledFunction", 5, 30, seq=3),
        op(f"{EVALUATE}CompiledFunctionBackward", 100, 60, seq=3, fwd=1, tid=ENGINE),
        op("CompiledFunctionBackward", 101, 50, seq=3, fwd=1, tid=ENGINE),
        row("user_annotation", "## Call CompiledFxGraph fbw ##", 102, 40, tid=ENGINE),
        op("aten::mm", 110, 5, tid=ENGINE), *launch("gemm", 112, n=1, tid=ENGINE),
        op("triton_poi_fused_add_0", 120, 5, tid=ENGINE),
        *launch("triton_poi_fused_add_0", 122, n=2, tid=ENGINE, driver=True),
        op(f"{EVALUATE}torch::autograd::AccumulateGrad", 200, 20, tid=ENGINE),
        *launch("add", 205, n=3, tid=ENGINE),
    ])  # fmt: skip
    compiled = {"gemm": "CompiledFunction", "triton_poi_fused_add_0": "CompiledFunction", "add": None}
    assert by_kernel(timeline, "forward") == compiled
    region = "Torch-Compiled Region: 0/0"
    assert by_kernel(timeline, "region") == {"gemm": region, "triton_poi_fused_add_0": region, "add": None}
    assert by_kernel(timeline, "op")["triton_poi_fused_add_0"] == "triton_poi_fused_add_0"
    assert kernels(timeline)["gemm"].module == region


def test_a_compiled_graph_is_the_home_where_no_region_was_recorded() -> None:
    graph = "## Call CompiledFxGraph abc ##"
    rows = [
        row("user_annotation", graph, 0, 50),
        op("aten::mm", 5, 10),
        *launch("gemm", 6, n=1),
        *launch("later", 60, n=2),
    ]
    assert by_kernel(timeline_from_events(rows), "module") == {"gemm": graph, "later": None}


def test_each_forward_thread_counts_for_itself() -> None:
    """Two replicas with numbers of their own: the backward ops of one name its thread by a number that is
    no thread id.  Thread 1 holds 5 and 6, thread 3 holds 6 and 7: the pass with 5 and 6 is thread 1's."""
    numbers = {MAIN: (5, 6), 3: (6, 7)}
    rows = [
        op(f"aten::op_{tid}_{seq}", seq, 0.5, seq=seq, tid=tid)
        for tid, seqs in numbers.items()
        for seq in seqs
    ]
    for fwd, tid in ((1, MAIN), (4, 3)):
        for seq in numbers[tid]:
            at = 100 * fwd + 10 * seq
            rows.append(op("MulBackward0", at, 5, seq=seq, fwd=fwd, tid=ENGINE))
            rows += launch(f"{tid}_{seq}", at + 1, n=at, tid=ENGINE)
    assert by_kernel(timeline_from_events(rows), "forward") == {
        f"{tid}_{seq}": f"aten::op_{tid}_{seq}" for tid, seqs in numbers.items() for seq in seqs
    }


def test_a_number_on_two_equal_threads_is_nobodys() -> None:
    """Both threads hold 5 and nothing tells them apart; 6 is on one of them only."""
    rows = [
        op("aten::a", 0, 1, seq=5, tid=MAIN), op("aten::b", 0, 1, seq=5, tid=3),
        op("aten::c", 3, 1, seq=6, tid=MAIN), op("aten::d", 3, 1, seq=7, tid=3),
        *(op("MulBackward0", 100 + 10 * s, 5, seq=s, fwd=1, tid=ENGINE) for s in (5, 6, 7)),
        *(r for s in (5, 6, 7) for r in launch(f"k{s}", 101 + 10 * s, n=s, tid=ENGINE)),
    ]  # fmt: skip
    forward = by_kernel(timeline_from_events(rows), "forward")
    assert forward == {"k5": None, "k6": "aten::c", "k7": "aten::d"}


def test_numbers_of_another_process_are_not_meant() -> None:
    rows = [
        op("aten::theirs", 5, 1, seq=5, pid=8), op("aten::ours", 0, 1, seq=5),
        op("MulBackward0", 100, 5, seq=5, fwd=1, tid=ENGINE), *launch("mul", 101, n=1, tid=ENGINE),
    ]  # fmt: skip
    assert by_kernel(timeline_from_events(rows), "forward") == {"mul": "aten::ours"}
    assert by_kernel(timeline_from_events(rows[:1] + rows[2:]), "forward") == {"mul": None}


NET = [
    module("Net_0", 0, 90), module("Sequential_0", 5, 80), module("Linear_0", 10, 30),
    op("aten::addmm", 12, 10, seq=1), *launch("forward", 13, n=1),
    op("AddmmBackward0", 200, 20, seq=1, fwd=1, tid=ENGINE), *launch("backward", 205, n=2, tid=ENGINE),
]  # fmt: skip


def test_the_backward_pass_has_the_module_of_its_forward_op_and_the_path_to_it() -> None:
    rows = kernels(timeline_from_events(NET))
    for name in ("forward", "backward"):
        assert rows[name].module == "nn.Module: Linear_0"
        assert rows[name].module_path == "Net_0 > Sequential_0 > Linear_0"


def test_a_checkpoint_that_runs_again_is_in_the_module_that_it_runs() -> None:
    """Inside the backward op of the block the module frame of the second run is nearer than the block."""
    rows = [
        module("Block_0", 0, 50), op("CheckpointFunction", 5, 40, seq=1),
        op("CheckpointFunctionBackward", 200, 100, seq=1, fwd=1, tid=ENGINE),
        module("Linear_3", 210, 40, tid=ENGINE), op("aten::addmm", 215, 10, tid=ENGINE),
        *launch("again", 216, n=1, tid=ENGINE), *launch("after", 260, n=2, tid=ENGINE),
    ]  # fmt: skip
    module_of = by_kernel(timeline_from_events(rows), "module")
    assert module_of == {"again": "nn.Module: Linear_3", "after": "nn.Module: Block_0"}


def test_a_module_around_the_whole_step_says_less_than_the_forward_op() -> None:
    """The engine runs on the calling thread of a CPU, within the module of a trainer."""
    rows = [
        module("Trainer_0", 0, 500), module("Linear_0", 10, 30), op("aten::addmm", 12, 10, seq=1),
        op("AddmmBackward0", 200, 20, seq=1, fwd=1), *launch("backward", 205, n=2),
    ]  # fmt: skip
    assert by_kernel(timeline_from_events(rows), "module") == {"backward": "nn.Module: Linear_0"}


def test_a_path_of_a_thousand_modules_is_cut_at_its_outer_end() -> None:
    deep = [module(f"M_{i}", i, 5000 - 2 * i) for i in range(1000)]
    [k] = kernels(timeline_from_events([*deep, *launch("k", 1500, n=1)])).values()
    assert k.module_path == " > ".join(["…", *(f"M_{i}" for i in range(968, 1000))])  # 32 are named


def test_phases() -> None:
    rows = [
        *NET,
        row("user_annotation", "enumerate(DataLoader)#_Single.__next__", 300, 20), *launch("fed", 305, n=3),
        row("user_annotation", "Optimizer.step#SGD.step", 400, 20), op("aten::add_", 402, 9),
        *launch("stepped", 405, n=4), row("user_annotation", "Optimizer.zero_grad#SGD.zero_grad", 450, 20),
        *launch("zeroed", 455, n=5), *launch("bare", 500, n=6), op("AddBackward0", 600, 20, tid=ENGINE),
        *launch("old", 605, n=7, tid=ENGINE),
        row("kernel", "lost", 900, 5, pid=0, tid=7, device=0, stream=7, correlation=99),
    ]  # fmt: skip
    timeline = timeline_from_events(rows)
    found = phases(timeline, link(timeline)).tolist()
    assert {timeline.names[n]: PHASES[p] for n, p in zip(timeline.gpu.name, found, strict=True)} == {
        "forward": "forward", "backward": "backward", "fed": "data", "stepped": "optimizer",
        "zeroed": "optimizer", "bare": "other", "old": "backward", "lost": "other",
    }  # fmt: skip
    # 5 µs each: forward 1, backward 2, optimizer 2, data 1, other 2.
    want = {"forward": 5.0, "backward": 10.0, "optimizer": 10.0, "data": 5.0, "other": 10.0}
    assert analyze(timeline).document.ranks[0].phases_us == want


def test_an_optimizer_that_steps_within_the_backward_pass_is_the_optimizer() -> None:
    rows = [
        op(f"{EVALUATE}torch::autograd::AccumulateGrad", 0, 100, tid=ENGINE),
        row("user_annotation", "Optimizer.step#SGD.step", 10, 50, tid=ENGINE),
        *launch("k", 20, n=1, tid=ENGINE),
    ]  # fmt: skip
    assert analyze(timeline_from_events(rows)).document.ranks[0].phases_us == {"optimizer": 5.0}


def test_ops_that_overlap_in_part_still_nest() -> None:
    """a [0, 100), b [50, 150) and c [120, 130): at 60 both a and b are open, and b started last; at 125
    c is within b, and at 140 b alone is left."""
    ops = [op("a", 0, 100), op("b", 50, 100), op("c", 120, 10)]
    at = {"in_a": 20, "in_b": 60, "in_c": 125, "after_c": 140, "after": 160}
    timeline = timeline_from_events(
        [*ops, *(r for i, (k, t) in enumerate(at.items()) for r in launch(k, t, n=i))]
    )
    assert by_kernel(timeline, "op") == {"in_a": "a", "in_b": "b", "in_c": "c", "after_c": "b", "after": None}
    parent = {
        host_name(timeline, i): host_name(timeline, p)
        for i, p in enumerate(link(timeline).parent.tolist())
        if p >= 0
    }
    assert parent == {"b": "a", "c": "b"}


def test_an_op_that_never_finished_is_open_until_the_window_ends() -> None:
    """It was closed where the window ends; those inside it stay innermost, and it has what is between."""
    rows = [
        op("aten::outer", 0, 500, finished="false"), op("aten::inner", 100, 20),
        *launch("inner", 105, n=1), *launch("outer", 300, n=2),
    ]  # fmt: skip
    assert by_kernel(timeline_from_events(rows), "op") == {"inner": "aten::inner", "outer": "aten::outer"}


def test_a_child_that_ends_after_its_parent_is_its_child_and_has_its_last_launch() -> None:
    """addmm [10, 31) within linear [0, 30): what it launches at 30.5 is its own, the parent is over."""
    rows = [op("aten::linear", 0, 30), op("aten::addmm", 10, 21), *launch("gemm", 30.5, n=1)]
    timeline = timeline_from_events(rows)
    assert by_kernel(timeline, "op") == {"gemm": "aten::addmm"}
    assert timeline.op_children == {"aten::linear": ["aten::addmm"]}
    assert link(timeline).parent.tolist() == [-1, 0, -1]


def test_two_processes_with_one_thread_number_are_two_threads() -> None:
    rows = [
        op("aten::ours", 0, 100), op("aten::theirs", 40, 100, pid=8),
        *launch("ours", 50, n=1), *launch("theirs", 60, n=2, pid=8), *launch("late", 120, n=3),
    ]  # fmt: skip
    want = {"ours": "aten::ours", "theirs": "aten::theirs", "late": None}
    assert by_kernel(timeline_from_events(rows), "op") == want


FLOWS = (
    "hta/a100_nccl_rank0of2.json.gz",
    "hta/mi250_train.json.gz",
    "mi300_normalization_layers.json.gz",
    "mi300_resnet_act_checkpoint_rank0of8.json.gz",
)


@pytest.mark.traces
@pytest.mark.parametrize("file", FLOWS)
def test_real_forward_ops_are_those_of_the_recorded_flows(file: str) -> None:
    """The profiler draws an arrow from each forward op to its backward op; we do not read them."""
    events = json.loads(gzip.decompress((traces_dir() / file).read_bytes()))["traceEvents"]
    ends: dict[str, dict[int, tuple[str, str, int]]] = {"s": {}, "f": {}}
    for e in events:
        if e.get("cat") == "fwdbwd":
            ends[e["ph"]][e["id"]] = (str(e["pid"]), str(e["tid"]), round(Decimal(str(e["ts"])) * 1000))
    timeline = read(traces_dir() / file)

    def place(at: int) -> tuple[str, str, int]:
        return (*timeline.threads[timeline.host.thread[at]], int(timeline.host.start[at]))

    pairs = forward_ops(timeline)
    found = {place(b): place(f) for b, f in zip(pairs.backward, pairs.forward, strict=True)}
    assert ends["f"]
    assert all(found[end] == ends["s"][n] for n, end in ends["f"].items())


@pytest.mark.traces
def test_a_real_compiled_run_has_a_home_for_every_kernel() -> None:
    rank = analyze(read(traces_dir() / "mi300_torch_compile.json.gz")).document.ranks[0]
    assert {k.module for k in rank.kernels} == {"Torch-Compiled Region: 0/0"}
    triton = [k for k in rank.kernels if k.name.startswith("triton_")]
    assert {(k.name, k.op) for k in triton} == {(k.name, k.name) for k in triton}
    assert sum(k.count for k in triton) == 4


@pytest.mark.traces
def test_a_real_triton_kernel_is_tied_through_the_driver_call() -> None:
    [k] = analyze(read(traces_dir() / "hta/a100_triton.json.gz")).document.ranks[0].kernels
    assert k.name == k.op == "triton_poi_fused_add_cos_sin_0"
    assert k.module == "Torch-Compiled Region: 0/0"
