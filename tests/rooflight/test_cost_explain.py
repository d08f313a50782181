"""`rooflight cost --explain`: the words add up to the figures, for every recorded call."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rooflight.cli.explained import lines
from rooflight.cli.main import main
from rooflight.cli.operands import call_of
from rooflight.cost import OpCall, estimate, registry
from rooflight.cost.derivation import named, numbers, remembering, symbols, where
from rooflight.cost.explain import explain
from rooflight.errors import Refused
from rooflight.hardware import ceilings, find
from tests.rooflight.test_cost_oracle import CASES
from tests.rooflight.test_cost_oracle import call_of as recorded


def told(op: str, arguments: str, dtype: str | None = None) -> dict[str, list[str]]:
    """The explanation of an op, by its blocks."""
    return blocks(lines(explain(call_of(op, arguments, dtype))))


def blocks(text: Any) -> dict[str, list[str]]:
    head, *rest = text
    found: dict[str, list[str]] = {"": [head]}
    for line in rest:
        if label := line[:14].strip():
            found[label] = []
        found[label if label else list(found)[-1]].append(line[14:])
    return found


# --- one op, by hand -----------------------------------------------------------------------------


def test_a_product_is_told_to_the_byte() -> None:
    assert told("aten::mm", "[[64, 128], [128, 32]]", "fp32") | {
        "rule": [],
        "not counted": [],
        "source": [],
    } == {
        "": ["aten::mm  (gemm, matrix units)"],
        "arguments": ["A  [64, 128] fp32", "B  [128, 32] fp32"],
        "rule": [],
        "not counted": [],
        "FLOPs": ["2 x A[0] x B[1] x A[1]", "= 2 x 64 x 32 x 128", "= 524,288 FLOP"],
        "read": [
            "A  64 x 128 = 8,192 elements x 4 B (fp32) = 32,768 B",
            "B  128 x 32 = 4,096 elements x 4 B (fp32) = 16,384 B",
            "= 49,152 B",
        ],
        "written": ["A[0] x B[1] = 64 x 32 = 2,048 elements x 4 B (fp32) = 8,192 B"],
        "total": ["524,288 FLOP, 57,344 B, 9.143 FLOP/B"],
        "origin": ["modelled: from shapes and types"],
        "source": [],
    }


def test_an_expanded_operand_is_said_to_be_one() -> None:
    call = OpCall("aten::add", ([4, 8], [4, 8]), ("float", "float"), ([8, 1], [0, 1]))
    found = blocks(lines(explain(call)))
    assert found["arguments"] == ["A  [4, 8] fp32", "B  [4, 8] fp32, strides [0, 1], expanded along dim 0"]
    assert found["read"][1] == "B  8 elements x 4 B (fp32) = 32 B, the different ones of 32"


def test_of_hundreds_of_parameters_the_sum_is_told() -> None:
    """AdamW over 70 tensors of 2 x 3: 14 FLOPs for each of 420; four lists of 1,680 bytes are read."""
    many = [[2, 3]] * 70
    found = told("aten::_fused_adamw_", json.dumps([many, many, many, many]), "fp32")
    assert found["FLOPs"] == ["14 x (sum of 70 terms)", "= 14 x 420", "= 5,880 FLOP"]
    assert found["read"][0] == "A  420 elements x 4 B (fp32) = 1,680 B, 70 tensors"
    assert found["read"][-1] == "= 6,720 B"


def test_a_layout_is_told_in_the_order_of_its_dims() -> None:
    """Transposed, but dense: [4, 8] with strides [1, 4] holds 4 x 8 different elements."""
    found = blocks(lines(explain(OpCall("aten::neg", ([4, 8],), ("float",), ([1, 4],)))))
    assert found["arguments"] == ["A  [4, 8] fp32, strides [1, 4]"]
    assert found["read"] == ["A  4 x 8 = 32 elements x 4 B (fp32) = 128 B"]


def test_many_arguments_are_counted_and_not_all_told() -> None:
    """24 of 30 are told; of 200 nobody looks at more than 96, and 176 are left."""
    for count, hidden in ((30, 6), (200, 176)):
        rows = blocks(lines(explain(OpCall("my::op", tuple([1] for _ in range(count))))))["arguments"]
        assert (len(rows), rows[-1]) == (25, f"… and {hidden} more")


def test_without_work_there_is_no_bound() -> None:
    roofs = ceilings(find("NVIDIA A100-SXM4-80GB"))
    for op, arguments in (("my::op", "[[4]]"), ("aten::view", "[[4]]"), ("aten::mm", "[[0, 4], [4, 4]]")):
        told_bound = blocks(lines(explain(call_of(op, arguments, "fp32")), roofs))["bound"]
        assert told_bound[-1] == "no bound: no work is known, or no roof for it"


def test_a_figure_with_a_word_of_its_own_is_told_apart() -> None:
    """16 queries under a causal mask keep 16 * 17 / 2 pairs; 2 * 2 * 4 * 136 * (8 + 8) FLOPs."""
    found = told(
        "aten::scaled_dot_product_attention",
        "[[2, 4, 16, 8], [2, 4, 16, 8], [2, 4, 16, 8], null, 0.0, true]",
        "fp16",
    )
    assert found["FLOPs"] == [
        "2 x q[0] x q[1] x kept pairs x (q[3] + v[3])",
        "  where kept pairs = q[2] x (q[2] + 1) // 2",
        "        = 16 x (16 + 1) // 2 = 136",
        "= 2 x 2 x 4 x 136 x (8 + 8)",
        "= 34,816 FLOP",
    ]


def test_a_list_is_one_piece_and_a_long_sum_one_number() -> None:
    """Seven tensors of 2 x 3 in bf16: 42 elements, 84 bytes; of two the terms are told."""
    found = told("aten::cat", f"[{[[2, 3]] * 7}, 0]", "bf16")
    assert found["read"] == ["A  42 elements x 2 B (bf16) = 84 B, 7 tensors"]
    assert found["written"] == ["(sum of 7 terms) = 42 elements x 2 B (bf16) = 84 B"]
    assert told("aten::cat", "[[[2, 3], [5]], 0]", "bf16")["read"] == [
        "A  2 x 3 + 5 = 11 elements x 2 B (bf16) = 22 B, 2 tensors"
    ]


def test_an_unknown_says_what_is_missing_and_where_it_is_had() -> None:
    found = told("aten::mm", "[]")
    assert found["FLOPs"] == found["read"] == found["written"] == ["unknown"]
    assert "record_shapes=True" in " ".join(found["reason"])
    untyped = told("aten::mm", "[[64, 128], [128, 32]]")
    assert untyped["FLOPs"][-1] == "= 524,288 FLOP"
    assert untyped["read"][-1] == "unknown in all"
    assert untyped["reason"][0].startswith("dtype_unknown: ")


def test_an_empty_result_is_free() -> None:
    found = told("aten::mm", "[[0, 128], [128, 32]]", "fp32")
    assert found["FLOPs"] == ["0 FLOP: the result is empty, nothing runs"]
    assert "read" not in found


def test_a_message_crosses_the_link_by_its_factor() -> None:
    """all_gather of 8 ranks: 8192 bf16 elements come out, 7/8 of their 16,384 bytes over the link."""
    comm = {
        "Collective name": "all_gather_into_tensor",
        "In msg nelems": 1024,
        "Out msg nelems": 8192,
        "dtype": "BFloat16",
        "Group size": 8,
    }
    found = blocks(lines(explain(OpCall("record_param_comms", comm=comm))))
    assert found["arguments"][0].split(maxsplit=2) == ["Collective", "name", "all_gather_into_tensor"]
    assert found["read"] == ["In msg nelems = 1,024 elements x 2 B (bf16) = 2,048 B"]
    assert found["link"] == ["16,384 x 7/8", "= 14,336 B cross the link"]


def test_the_bound_under_a_device() -> None:
    """An A100's practical roofs are the ones the catalogue gives; AI 9.143 is far left of its ridge."""
    gpu = find("NVIDIA A100-SXM4-80GB")
    roofs = ceilings(gpu)
    assert roofs.memory is not None
    found = blocks(lines(explain(call_of("aten::mm", "[[64, 128], [128, 32]]", "fp16")), roofs))["bound"]
    least_us = 2 * (64 * 128 + 128 * 32 + 64 * 32) / roofs.memory.practical * 1e6  # type: ignore[operator]
    assert found[-1].startswith(f"at least {least_us:,.4g} us: memory side, intensity 18.29, ridge ")


# --- every op ------------------------------------------------------------------------------------


def value(text: str) -> float:
    """What the arithmetic of a line comes to."""
    plain = re.sub(r"log2\(([\d,]+)\)", lambda m: str(math.log2(int(m[1].replace(",", "")))), text)
    plain = re.sub(r"(?<=\d),(?=\d{3})", "", plain).replace(" x ", " * ")
    assert re.fullmatch(r"[\d\s.()*/+-]+", plain), text
    return float(eval(plain))


def amount(line: str, unit: str) -> int:
    found = re.search(rf"(?:^|= )([\d,]+) {unit}", line)
    assert found, line
    return int(found[1].replace(",", ""))


@pytest.mark.parametrize("case", CASES, ids=[f"{c['id']}-{c['op']}" for c in CASES])
def test_the_words_multiply_out_to_the_figures(case: dict[str, Any]) -> None:
    call = recorded(case)
    cost, found = estimate(call), blocks(lines(explain(call)))
    for line in found["FLOPs"] + found.get("link", []):
        # "= 2 x 64 x 32 x 128" and "= 16 x 17 // 2 = 136"
        sides = [
            s for s in line.strip().removeprefix("= ").split(" = ") if not re.search("[a-zA-Z]{2}|\\[", s)
        ]
        assert len({value(s) for s in sides}) <= 1, line
    steps = [line for line in found["FLOPs"] if line.startswith("= ") and "FLOP" not in line]
    if cost.flops is not None:
        assert (
            amount(found["FLOPs"][-1] if len(found["FLOPs"]) > 1 else found["FLOPs"][0], "FLOP") == cost.flops
        )
        assert all(value(step[2:]) == cost.flops for step in steps)
    for label, size in (("read", cost.bytes_read), ("written", cost.bytes_written)):
        rows = found.get(label, [])
        if size is None or not rows:
            continue
        pieces = [row for row in rows if " elements " in row]
        assert sum(amount(row, "B") for row in pieces) == size
        for row in pieces:
            made, weight = re.split(r" elements x ", row)
            elements = {value(s) for s in made.split("  ")[-1].split(" = ") if not re.search("[a-zA-Z]", s)}
            assert len(elements) == 1, row
            assert elements.pop() * value(weight.split(" B ")[0]) == amount(row, "B")


@pytest.mark.parametrize("case", CASES, ids=[f"{c['id']}-{c['op']}" for c in CASES])
def test_what_is_unknown_is_not_stated(case: dict[str, Any]) -> None:
    call = recorded(case)
    cost, found = estimate(call), blocks(lines(explain(call)))
    if cost.flops is None:
        assert found["FLOPs"] == ["unknown"]
        assert "FLOPs unknown" in found["total"][0]
    if cost.bytes is None:
        assert "bytes unknown" in found["total"][0]
        assert found["read"][-1].startswith("unknown") or found["read"] == ["nothing"]


@settings(max_examples=60)
@given(
    model=st.sampled_from(registry.models()),
    arguments=st.lists(
        st.one_of(
            st.lists(st.integers(0, 70), max_size=5),
            st.lists(st.lists(st.integers(0, 9), max_size=3), min_size=1, max_size=9),
            st.sampled_from([None, True, False, 0, 1, 2.5, "[1, 1]", "int64[8]", "\x1b[2J", "x" * 500]),
        ),
        max_size=10,
    ),
)
def test_any_arguments_are_explained_with_the_estimate_and_no_escape(
    model: Any, arguments: list[Any]
) -> None:
    op = model.names[0] if model.names else f"{model.prefixes[0]}x" if model.prefixes else "x"
    call = call_of(op, json.dumps(arguments), "fp32")
    text = list(lines(explain(call)))
    assert all(line.isprintable() for line in text)
    cost = estimate(call)
    found = blocks(text)
    if cost.flops is not None:
        assert f"{cost.flops:,} FLOP" in " ".join(found["FLOPs"])
    if cost.bytes is not None:
        assert f"{cost.bytes:,} B" in found["total"][0]


# --- numbers that remember -----------------------------------------------------------------------


def test_numbers_are_plain_outside() -> None:
    assert type(named(3, "a")) is int
    explain(call_of("aten::mm", "[[64, 128], [128, 32]]", "fp32"))
    assert type(named(3, "a")) is int
    assert type(estimate(call_of("aten::mm", "[[2, 2], [2, 2]]", "fp32")).flops) is int


def test_signs_and_brackets() -> None:
    with remembering():
        a, b = named(7, "a"), named(3, "b")
        for n, by_name, by_number in (
            ((a - b) // 2 + 1, "(a - b) // 2 + 1", "(7 - 3) // 2 + 1"),
            (a - (b - 1), "a - (b - 1)", "7 - (3 - 1)"),
            (a * (b // 2), "a x (b // 2)", "7 x (3 // 2)"),
            (100 // (a * b), "100 // (a x b)", "100 // (7 x 3)"),
            (math.prod([a, b, 1, 5]), "a x b x 5", "7 x 3 x 5"),
            (sum([a, b]) - 0, "a + b", "7 + 3"),
            (2 - a, "2 - a", "2 - 7"),
            (10**6 * a, "1,000,000 x a", "1,000,000 x 7"),
        ):
            assert (symbols(n), numbers(n)) == (by_name, by_number)
            assert value(by_number) == n
        assert a * 0 == 0
        assert type(a * 0) is int
        assert symbols(a * (b > 0)) == "a"


def test_a_named_figure_hides_what_it_is_made_of() -> None:
    with remembering():
        n = 2 * named(named(8, "n") // 2 + 1, "half")
    assert (symbols(n), numbers(n)) == ("2 x half", "2 x 5")
    ((name, made),) = where(n).items()
    assert (name, symbols(made), numbers(made), int(made)) == ("half", "n // 2 + 1", "8 // 2 + 1", 5)


def test_a_sum_of_very_many_terms_is_one_number() -> None:
    with remembering():
        n = 2 * sum(named(i, f"x{i}") for i in range(1, 50_001))
    assert numbers(n) == "2 x 1,250,025,000"
    assert where(n) == {}


# --- the command ---------------------------------------------------------------------------------


def test_an_op_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cost", "--explain", "aten::mm", "[[64,128],[128,32]]", "--dtype", "bf16"]) == 0
    assert "= 524,288 FLOP" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["--explain", "aten::mm", "{"], "not JSON"),
        (["--explain", "aten::mm", "3"], "no list"),
        (["--explain", "aten::mm", '[{"a": 1}]'], "argument 1 is neither"),
        (["--explain", "aten::mm", "[[1.5]]"], "argument 1 is neither"),
        (["--explain", "aten::mm", "[]", "--dtype", "bf17"], "'bf17'"),
        (["--explain", "aten::mm", '["bf17[3]"]'], "'bf17'"),
        (["--explain", "aten::mm", "[]", "--gpu", "GeForce 256"], "no roof is assumed"),
        (["--explain", "aten::mm", "[]", "--gpu", "H100"], "h100-sxm"),
        (["--gpu", "H100"], "need --explain"),
        (["aten::mm", "[]"], "need --explain"),
        (["--explain", "--dtype", "bf16"], "--dtype is for"),
    ],
)
def test_misuse_is_one_line(argv: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cost", *argv]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1


def test_what_a_person_writes_is_what_a_recorder_writes() -> None:
    call = call_of("aten::x", '[[2, 3], "int64[4]", [[5], [6]], null, 0.5, true, "[1, 1]", []]', "bf16")
    assert call.dims == ([2, 3], [4], [[5], [6]], [], [], [], [], [])
    kinds = (
        "c10::BFloat16",
        "long",
        ["c10::BFloat16"] * 2,
        "",
        "Scalar",
        "Scalar",
        "Scalar",
        "c10::BFloat16",
    )
    assert call.types == kinds
    assert call.concrete == ("", "", "", "", "0.5", "True", "[1, 1]", "")
    with pytest.raises(Refused):
        call_of("aten::x", "[" * 100_000)
