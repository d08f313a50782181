"""Every event of tests/data/costs.jsonl: recorded calls with the FLOPs and bytes that are right for them.

``flops_kind`` and ``bytes_kind`` say how a figure is graded.  The score is printed; it may not fall.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rooflight.cost import Cost, OpCall, estimate

_DATA = Path(__file__).parent.parent / "data" / "costs.jsonl"
CASES = [json.loads(line) for line in _DATA.read_text().splitlines()]
EQUAL = {"exact", "zero", "exact_matrix_part", "convention"}
EQUAL_BYTES = {"exact", "algorithmic_min", "bound", "inferred", "local_hbm_min"}


def call_of(case: dict[str, Any]) -> OpCall:
    columns = (
        tuple(case.get(k) or ()) for k in ("input_dims", "input_types", "input_strides", "concrete_inputs")
    )
    return OpCall(case["op"], *columns, case.get("gpu_args") or {}, case.get("comm") or {})


def flops_fault(case: dict[str, Any], cost: Cost) -> str | None:
    kind = case["flops_kind"]
    if kind in EQUAL and cost.flops != case["flops"]:
        return f"flops {cost.flops}, not {case['flops']} ({kind})"
    if kind == "unknown" and cost.flops is not None:
        return f"flops {cost.flops}, not unknown"
    return None


def bytes_fault(case: dict[str, Any], cost: Cost) -> str | None:
    kind, got = case["bytes_kind"], (cost.bytes_read, cost.bytes_written)
    reads = [case["bytes_read"], *([case["bytes_read_no_alias"]] if "bytes_read_no_alias" in case else [])]
    right = got[0] in reads and got[1] == case["bytes_written"]
    if kind in EQUAL_BYTES and not right:
        return f"bytes {got}, not {reads[0]}, {case['bytes_written']} ({kind})"
    if kind == "composite" and not right and not (got == (None, None) and cost.reason == "composite"):
        return f"bytes {got}, neither {reads[0]}, {case['bytes_written']} nor unknown as a composite"
    if kind == "unknown" and got != (None, None):
        return f"bytes {got}, not unknown"
    if kind == "dtype_unknown" and (got != (None, None) or cost.reason != "dtype_unknown"):
        return f"bytes {got}, reason {cost.reason!r}, not dtype_unknown"
    return None


def faults(case: dict[str, Any]) -> list[str]:
    cost = estimate(call_of(case))
    return [f for f in (flops_fault(case, cost), bytes_fault(case, cost)) if f]


@pytest.mark.parametrize("case", CASES, ids=[f"{c['id']}-{c['op']}" for c in CASES])
def test_a_recorded_call_costs_what_it_costs(case: dict[str, Any]) -> None:
    assert faults(case) == []


def test_the_score_is_printed_and_is_full(capsys: pytest.CaptureFixture[str]) -> None:
    right = sum(not faults(case) for case in CASES)
    with capsys.disabled():
        print(f"\ncosts: {right} of {len(CASES)} recorded calls are right")
    assert len(CASES) == 214
    assert right == len(CASES)


@pytest.mark.parametrize("case", [c for c in CASES if c.get("bus_bytes") is not None], ids=lambda c: c["id"])
def test_link_bytes_of_a_collective_are_its_bus_bytes(case: dict[str, Any]) -> None:
    assert estimate(call_of(case)).link_bytes == int(case["bus_bytes"])


@pytest.mark.parametrize("case", [c for c in CASES if "link_bytes" in c], ids=lambda c: c["id"])
def test_copies_are_measured_and_cross_the_link(case: dict[str, Any]) -> None:
    cost = estimate(call_of(case))
    assert (cost.link_bytes, cost.origin) == (case["link_bytes"], "measured")
