"""Execution traces: what they complete, whose they are, what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rooflight import analyze, read
from rooflight.analysis import analyze_files
from rooflight.errors import Malformed, NotATrace, Refused, TooLarge, Truncated
from rooflight.protocol import Kernel
from rooflight.readers import Limits, execution, read_execution
from rooflight.trace.execution import Execution, all_joined, joined
from rooflight.trace.timeline import Timeline
from tests.drawing import timeline_from_events
from tests.shared import CHECKOUT

FLOAT = "Tensor(float)"
Arg = tuple[Any, str, Any, Any]  # value, type, dims, strides


def tensor(*dims: int, of: str = "float") -> Arg:
    steps = [1] * len(dims)
    for i in range(len(dims) - 2, -1, -1):
        steps[i] = steps[i + 1] * dims[i + 1]
    return [1, 2, 0, 6, 4, "cpu"], f"Tensor({of})", list(dims), steps


def tensors(*each: Arg) -> Arg:
    columns = list(zip(*each, strict=True))
    values, types, dims, steps = (list(c) for c in columns)
    return values, f"GenericList[{','.join(types)}]", dims, steps


ABSENT: Arg = ("<None>", "None", [], [])


def side(args: tuple[Arg, ...]) -> dict[str, Any]:
    keys = ("values", "types", "shapes", "strides")
    return {key: [a[i] for a in args] for i, key in enumerate(keys)}


def node(
    record: int, name: str, inputs: tuple[Arg, ...] = (), outputs: tuple[Arg, ...] = ()
) -> dict[str, Any]:
    """A node of an execution trace as torch 2.13 writes it."""
    attrs = [
        {"name": "rf_id", "type": "uint64", "value": record},
        {"name": "op_schema", "type": "string", "value": ""},
    ]
    return {
        "id": record + 100,
        "name": name,
        "ctrl_deps": 2,
        "inputs": side(inputs),
        "outputs": side(outputs),
        "attrs": attrs,
    }


def document(*nodes: dict[str, Any], pid: int = 9) -> dict[str, Any]:
    return {"schema": "1.1.1-chakra.0.0.4", "pid": pid, "time": "2026-12-01", "nodes": list(nodes)}


def recorded(*nodes: dict[str, Any], source: str = "et.json", pid: int = 9) -> Execution:
    return execution.read([json.dumps(document(*nodes, pid=pid)).encode()], source)


def op(
    record: int, name: str, types: list[str], dims: list[Any], concrete: list[str] | None = None
) -> dict[str, Any]:
    """An op of 10 us as the profiler records it, the n-th starting at n x 20."""
    args: dict[str, Any] = {"Input type": types, "Input Dims": dims, "Record function id": record}
    if concrete is not None:
        args |= {"Concrete Inputs": concrete, "Input Strides": [[] for _ in dims]}
    return {
        "ph": "X",
        "cat": "cpu_op",
        "name": name,
        "pid": 9,
        "tid": 1,
        "ts": record * 20,
        "dur": 10,
        "args": args,
    }


def cost_of(timeline: Timeline) -> Kernel:
    """The only op of the recording."""
    cpu = analyze(timeline).document.ranks[0].cpu
    assert cpu is not None
    [row] = cpu.ops
    return row


# -- what it completes -------------------------------------------------------------------------------


def test_lists_get_their_types_and_long_ones_their_dims() -> None:
    """40 tensors of 3 x 2 bf16, plus as many: 240 FLOPs, and 3 x 240 x 2 = 1,440 bytes."""
    many = tensors(*[tensor(3, 2, of="c10::BFloat16")] * 40)
    trace = op(1, "aten::_foreach_add_", ["TensorList", "TensorList", "Scalar"], [[], [], []], ["", "", "1"])
    alone = timeline_from_events([trace])
    assert cost_of(alone).flops is None
    k = cost_of(joined(alone, recorded(node(1, "aten::_foreach_add_", (many, many, (1, "Int", [], []))))))
    assert (k.flops, k.bytes, k.dtype) == (240, 1_440, "bf16")
    assert (k.origin, k.cost_reason) == ("modelled", "execution trace")


def test_parts_of_different_types_are_joined_in_the_type_that_holds_both() -> None:
    """Reads 12 x 4 and 8 x 2 bytes, writes 20 x 4: 144."""
    parts = tensors(tensor(3, 4), tensor(2, 4, of="c10::Half"))
    trace = op(1, "aten::cat", ["TensorList", "Scalar"], [[[3, 4], [2, 4]], []], ["", "0"])
    k = cost_of(
        joined(timeline_from_events([trace]), recorded(node(1, "aten::cat", (parts, (0, "Int", [], [])))))
    )
    assert (k.flops, k.bytes, k.dtype) == (0, 144, "fp32")


def test_a_list_of_optional_tensors_and_the_result_size_an_index() -> None:
    """x[:, i] of 8 x 16 fp32 with 3 int64 indices: 24 + 24 x 4 in, 24 x 4 out."""
    chooser = tensors(ABSENT, tensor(3, of="long int"))
    trace = op(1, "aten::index", ["float", ""], [[8, 16], []], ["", ""])
    told = recorded(node(1, "aten::index", (tensor(8, 16), chooser), (tensor(8, 3),)))
    k = cost_of(joined(timeline_from_events([trace]), told))
    assert (k.flops, k.bytes, k.cost_reason) == (0, 24 + 96 + 96, "execution trace")


def test_a_result_sizes_what_depends_on_values() -> None:
    """nonzero of 8 x 16 bool: 128 bytes in, 58 x 2 int64 out; no convention for its FLOPs."""
    trace = op(1, "aten::nonzero", ["bool"], [[8, 16]], [""])
    told = recorded(node(1, "aten::nonzero", (tensor(8, 16, of="bool"),), (tensor(58, 2, of="long int"),)))
    k = cost_of(joined(timeline_from_events([trace]), told))
    assert (k.flops, k.bytes, k.cost_reason) == (None, 128 + 58 * 2 * 8, "data_dependent")


def test_a_result_tells_the_size_of_a_reduction_whose_dims_were_not_recorded() -> None:
    """sum of 4 x 5 fp32 over dims that no row has: 80 bytes in, 4 x 4 out, 20 FLOPs."""
    trace = op(1, "aten::sum", ["float", "ScalarList", "Scalar"], [[4, 5], [], []])
    unsure = node(1, "aten::sum", outputs=(tensor(4),))
    alone = timeline_from_events([trace])
    assert cost_of(alone).bytes is None
    k = cost_of(joined(alone, recorded(unsure)))
    assert (k.flops, k.bytes, k.cost_reason) == (20, 96, "execution trace")


def test_words_are_filled_in_and_what_the_profiler_has_stays() -> None:
    trace = op(1, "aten::gelu", ["float", ""], [[8, 16], []], ["", ""])
    told = recorded(node(1, "aten::gelu", (tensor(9, 9), ("tanh", "String", [], []))))
    [timeline_args] = joined(timeline_from_events([trace]), told).op_args[1:]
    dims, types, _, concrete, _ = timeline_args.decoded()
    assert (dims, types, concrete) == ([[8, 16], []], ["float", ""], ["", "tanh"])


def test_an_op_recorded_without_shapes_gets_all_from_the_execution_trace() -> None:
    """mm of 4 x 5 and 5 x 6: 2 x 4 x 5 x 6 = 240 FLOPs, (20 + 30 + 24) x 4 = 296 bytes."""
    trace = op(1, "aten::mm", [], [])
    del trace["args"]["Input type"], trace["args"]["Input Dims"]
    k = cost_of(
        joined(timeline_from_events([trace]), recorded(node(1, "aten::mm", (tensor(4, 5), tensor(5, 6)))))
    )
    assert (k.flops, k.bytes, k.cost_reason) == (240, 296, "execution trace")


def test_what_was_complete_is_as_it_was_and_says_nothing_of_its_source() -> None:
    trace = op(1, "aten::relu", ["float"], [[8, 16]], [""])
    k = cost_of(
        joined(
            timeline_from_events([trace]), recorded(node(1, "aten::relu", (tensor(8, 16),), (tensor(8, 16),)))
        )
    )
    assert (k.flops, k.bytes, k.cost_reason) == (128, 1_024, "")


def test_the_timeline_that_was_joined_is_a_new_one_and_is_stored_with_all_it_knows(tmp_path: Path) -> None:
    alone = timeline_from_events([op(1, "aten::relu", ["float"], [[8, 16]], [""])])
    both = joined(alone, recorded(node(1, "aten::relu", (tensor(8, 16),), (tensor(8, 16),))))
    assert (alone.source, both.source) == ("drawn.json", "drawn.json with et.json")
    assert len(alone.op_args) == 1
    both.save(tmp_path / "x.rooflight")
    assert read(tmp_path / "x.rooflight").op_args == both.op_args


def test_a_kernel_on_a_gpu_has_the_cost_of_its_completed_op() -> None:
    """cat of two 4 x 4 in bf16: 2 x 32 x 2 = 128 bytes, though the kernel's name tells nothing."""
    where = {"device": 0, "stream": 7, "correlation": 5}
    rows = [
        op(1, "aten::cat", ["TensorList", "Scalar"], [[[4, 4], [4, 4]], []], ["", "0"]),
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 1, "ts": 22, "dur": 2,
         "args": {"correlation": 5}},
        {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 30, "dur": 4, "args": where},
    ]  # fmt: skip
    parts = tensors(*[tensor(4, 4, of="c10::BFloat16")] * 2)
    told = recorded(node(1, "aten::cat", (parts, (0, "Int", [], [])), (tensor(8, 4, of="c10::BFloat16"),)))
    [k] = analyze(joined(timeline_from_events(rows), told)).document.ranks[0].kernels
    assert (k.op, k.flops, k.bytes, k.origin) == ("aten::cat", 0, 128, "modelled")
    assert k.cost_reason == "execution trace"


# -- real recordings ---------------------------------------------------------------------------------


REAL = CHECKOUT / "tests/data/execution"
"""Recorded by torch 2.13 on a CPU, profiler (record_shapes=True) and ExecutionTraceObserver at once:

    a, b = ([torch.ones(3 + i, 2) for i in range(40)] for _ in range(2))
    x, half = torch.ones(8, 16), torch.ones(2, 4, dtype=torch.float16)
    sgd, adam = SGD(one parameter of 4 x 5, momentum=0.9, fused=True), Adam(33 of them, fused=True)

    torch._foreach_add_(a, b)
    torch.cat([torch.ones(3, 4), torch.ones(5, 4)])
    torch.cat([torch.ones(3, 4), half])
    torch.nn.functional.gelu(x, approximate="tanh")
    x.masked_fill(x > 0, float("-inf"))
    x[torch.tensor([1, 2, 3])]
    sgd.step()
    adam.step()
"""


def ops(path: Path, **beside: Path) -> list[Kernel]:
    cpu = analyze(read(path, **beside)).document.ranks[0].cpu
    assert cpu is not None
    return cpu.ops


def test_a_real_recording_has_the_costs_of_its_arithmetic() -> None:
    found = ops(REAL / "trace.json.gz", execution=REAL / "et.json.gz")
    rows = {(k.name, k.bytes): k for k in found}
    # Sum over i < 40 of 2 x (3 + i) = 1,800 elements: read twice, written once, 4 bytes each.
    assert rows["aten::_foreach_add_", 3 * 1_800 * 4].flops == 1_800
    # 12 + 20 elements in and out; and 12 fp32 with 8 fp16 into 20 fp32.
    assert rows["aten::cat", 2 * 32 * 4].flops == 0
    assert rows["aten::cat", 12 * 4 + 8 * 2 + 20 * 4].flops == 0
    assert rows["aten::gelu", 2 * 128 * 4].flops == 128
    # 3 indices of 8 bytes, 48 elements in and out.
    assert rows["aten::index", 3 * 8 + 2 * 48 * 4].flops == 0
    # SGD with momentum: 4 FLOPs for 20 parameters; reads three lists, writes two.
    assert rows["aten::_fused_sgd_", 5 * 20 * 4].flops == 80
    # Adam: 13 FLOPs and 28 bytes for each of 33 x 20 parameters, and 33 step counts.
    assert rows["aten::_fused_adam_", 660 * 28 + 33 * 4].flops == 660 * 13
    # Without it none of these has bytes.
    unsized = {k.name for k in ops(REAL / "trace.json.gz") if k.bytes is None}
    assert {"aten::cat", "aten::index", "aten::_fused_sgd_", "aten::_fused_adam_"} <= unsized
    assert {k.name for k in found if k.bytes is None} == {"aten::to"}


def test_what_both_record_is_the_same() -> None:
    """The columns made of the nodes are those that the profiler recorded, wherever it recorded them."""
    trace, told = read(REAL / "trace.json.gz"), read_execution(REAL / "et.json.gz")
    number = {int(r): i for i, r in enumerate(trace.host.record) if r > 0}
    compared = 0
    for record, call in zip(told.record.tolist(), told.call.tolist(), strict=True):
        # Annotations have an id there too.
        args = int(trace.host.args[number[record]]) if record in number else -1
        if args < 0:
            continue
        dims, types, strides, concrete, _ = trace.op_args[args].decoded()
        theirs = told.calls[call]
        for i, kind in enumerate(types):
            # An empty list has no type there.
            if kind not in ("", "TensorList") and concrete[i] != "[]":
                assert (theirs.dims[i], theirs.types[i], theirs.strides[i]) == (dims[i], kind, strides[i])
                if theirs.concrete[i] != concrete[i]:
                    # The observer writes six decimals, the profiler seventeen digits.
                    assert float(theirs.concrete[i]) == pytest.approx(float(concrete[i]), abs=5e-7)
                compared += 1
    assert compared > 100


def test_a_trace_and_its_execution_trace_are_told_by_their_content() -> None:
    document = analyze_files([REAL / "et.json.gz", REAL / "trace.json.gz"]).document
    assert document.source == "trace.json.gz with et.json.gz"
    assert any(k.cost_reason == "execution trace" for k in document.ranks[0].cpu.ops)  # type: ignore[union-attr]


# -- whose it is -------------------------------------------------------------------------------------


def three_ops(rank: int | None = None, pid: int = 9, source: str = "a.json") -> Timeline:
    rows = [
        op(n, name, ["float"], [[4]]) | {"pid": pid}
        for n, name in enumerate(("aten::relu", "aten::abs", "aten::neg"), 1)
    ]
    meta = {} if rank is None else {"distributedInfo": {"rank": rank, "world_size": 4}}
    timeline = timeline_from_events(rows, **meta)
    return Timeline(**{**{f: getattr(timeline, f) for f in timeline.__dataclass_fields__}, "source": source})


RELU, ABS, NEG = (node(n, f"aten::{name}", (tensor(4),)) for n, name in enumerate(("relu", "abs", "neg"), 1))


def test_ops_that_it_does_not_hold_are_counted() -> None:
    [flag] = joined(three_ops(), recorded(RELU, ABS)).flags
    assert (flag.code, flag.count) == ("field_unavailable", 1)
    assert flag.detail == "ops that et.json does not tell of, among 3 with a record id"


def test_an_id_that_stands_twice_says_nothing() -> None:
    [flag] = joined(three_ops(), recorded(RELU, ABS, NEG, NEG)).flags
    assert flag.count == 1


@pytest.mark.parametrize(
    "strangers", [[node(1, "aten::add"), node(2, "aten::mul"), NEG], [node(77, "aten::relu")]]
)
def test_the_execution_trace_of_another_program_is_refused(strangers: list[dict[str, Any]]) -> None:
    with pytest.raises(
        Refused, match=r"et.json is no execution trace of a.json: of \d record ids in both, [01] name"
    ):
        joined(three_ops(), recorded(*strangers))


def test_a_trace_that_was_recorded_without_one_says_so() -> None:
    rows = [op(0, "aten::relu", ["float"], [[4]])]
    with pytest.raises(Refused, match="the ops of the trace have no record ids"):
        joined(timeline_from_events(rows), recorded(RELU))


def nameless(*nodes: dict[str, Any], source: str = "et.json") -> Execution:
    """An execution trace that does not tell its process."""
    return replace(recorded(*nodes, source=source), pid="")


def test_ranks_are_told_by_process_then_by_what_fits_then_by_name() -> None:
    a, b = three_ops(0, pid=11, source="a"), three_ops(1, pid=12, source="b")
    ours = recorded(RELU, ABS, NEG, pid=12)
    assert [t.source for t in all_joined([a, b], [ours])] == ["a", "b with et.json"]
    fewer = timeline_from_events([op(1, "aten::relu", ["float"], [[4]])])
    most = all_joined([fewer, b], [nameless(RELU, ABS, NEG)])
    assert [t.source for t in most] == ["drawn.json", "b with et.json"]
    named = all_joined([a, b], [nameless(RELU, ABS, NEG, source="et_rank_0.json")])
    assert [t.source for t in named] == ["a with et_rank_0.json", "b"]


def test_that_of_another_process_is_refused_though_its_ops_are_the_same() -> None:
    with pytest.raises(Refused, match=r"et.json is no .* of a.json: it is of process 5, which"):
        all_joined([three_ops()], [recorded(RELU, ABS, NEG, pid=5)])


def test_what_cannot_be_told_is_refused() -> None:
    a, b = three_ops(0, source="a"), three_ops(1, source="b")
    with pytest.raises(Refused, match="fits several traces alike: a, b"):
        all_joined([a, b], [recorded(RELU, ABS, NEG)])
    with pytest.raises(Refused, match=r"both x and y are execution traces of a"):
        all_joined([a], [recorded(RELU, source="x"), recorded(RELU, source="y")])


def test_alone_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "et.json").write_text(json.dumps(document(RELU)))
    for act in (lambda: read(tmp_path / "et.json"), lambda: analyze_files([tmp_path / "et.json"])):
        with pytest.raises(NotATrace, match="an execution trace alone has no times"):
            act()


def test_a_trace_is_no_execution_trace(tmp_path: Path) -> None:
    """Not even one whose metadata has a schema and nodes."""
    rows = [op(1, "aten::relu", ["float"], [[4]])]
    (tmp_path / "t.json").write_text(json.dumps({"schema": 1, "nodes": [{}], "traceEvents": rows}))
    assert len(read(tmp_path / "t.json").host) == 1
    with pytest.raises(NotATrace, match="not an execution trace"):
        read_execution(tmp_path / "t.json")


# -- foreign and hostile documents -------------------------------------------------------------------


def test_nodes_of_another_shape_are_passed_over_and_counted() -> None:
    odd = [{"id": 1}, {"id": 2, "name": 7, "inputs": {}, "outputs": {}, "attrs": []}, node(0, "no id")]
    found = recorded(*odd, RELU)
    assert (found.record.tolist(), found.unread) == ([1], 2)


def test_a_name_with_quotes_and_lines_in_it_is_mended() -> None:
    text = json.dumps(document(RELU, node(2, "NAME"), NEG)).replace("NAME", 'we"ird\nname')
    found = execution.read([text.encode()], "et.json")
    assert found.names == ("aten::relu", 'we"ird\nname', "aten::neg")
    assert found.record.tolist() == [1, 2, 3]


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_the_pieces_in_which_it_comes_change_nothing(size: int) -> None:
    text = json.dumps(document(RELU, ABS, NEG)).encode()
    pieces = [text[i : i + size] for i in range(0, len(text), size)]
    assert execution.read(pieces, "x").record.tolist() == [1, 2, 3]


def test_many_nodes_come_in_chunks() -> None:
    """6,000 nodes of about 500 bytes are three chunks of a MiB."""
    found = recorded(*(node(n, "aten::relu", (tensor(4),)) for n in range(1, 6_001)))
    assert found.record.tolist() == list(range(1, 6_001))
    assert len(found.calls) == 1


def test_a_truncated_one_is_refused() -> None:
    with pytest.raises((Truncated, Malformed)):
        execution.read([json.dumps(document(RELU, ABS)).encode()[:-40]], "x")


def test_one_of_an_older_torch_is_refused_by_its_schema() -> None:
    old = {"name": "aten::relu", "id": 3, "rf_id": 1, "inputs": [[1, 2]], "input_shapes": [[4]]}
    with pytest.raises(NotATrace, match=r"no ops|without ops that are understood \(schema '1.0.1'\)"):
        execution.read([json.dumps({"schema": "1.0.1", "pid": 1, "nodes": [old]}).encode()], "x")


def test_more_nodes_than_the_limit_are_refused() -> None:
    with pytest.raises(TooLarge, match="limit of 2 nodes"):
        execution.read([json.dumps(document(RELU, ABS, NEG)).encode()], "x", limits=Limits(max_events=2))


@pytest.mark.parametrize(
    "bad",
    [
        ([1], "GenericList[" + "(" * 100_000, [[4]], [[1]]),
        ([1], FLOAT, "[" * 50, None),
        ([1], FLOAT, [-4], [1]),
        ([1], FLOAT, [2**70], [1]),
        ([1], FLOAT, [[4]], [1]),
        (10**30, "Int", [], []),
        (1e300, "Double", [], []),
        ([[1], [2]], f"GenericList[{FLOAT},{FLOAT}]", [[4]], [[1]]),
        ([[1], [2]], f"GenericList[{FLOAT},Int]", [[4], []], [[1], []]),
        ({"a": 1}, "Dict", {"a": []}, []),
    ],
)
def test_arguments_that_no_torch_writes_leave_costs_unknown_or_right(bad: Arg) -> None:
    told = recorded(node(1, "aten::cat", (bad, (0, "Int", [], [])), (bad,)))
    for kind in ("TensorList", "", "float"):
        trace = op(1, "aten::cat", [kind, "Scalar"], [[], []], ["", "0"])
        k = cost_of(joined(timeline_from_events([trace]), told))
        assert k.bytes is None or k.bytes >= 0


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 10_000), st.binary(min_size=1, max_size=9))
def test_any_damage_is_refused_or_harmless(at: int, junk: bytes) -> None:
    data = bytearray(json.dumps(document(RELU, ABS, NEG)).encode())
    at %= len(data)
    data[at : at + len(junk)] = junk
    try:
        analyze(joined(three_ops(), execution.read([bytes(data)], "x")))
    except Refused:
        return
