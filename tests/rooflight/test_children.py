"""Which op was called by which, against DEFINITIONS §5."""

from __future__ import annotations

from typing import Any

import pytest

from rooflight import read
from tests.drawing import timeline_from_events
from tests.shared import cases_dir


def op(name: str, ts: float, dur: float, tid: int = 1) -> dict[str, Any]:
    return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 9, "tid": tid, "ts": ts, "dur": dur, "args": {}}


def test_the_innermost_op_around_is_the_parent() -> None:
    rows = [op("a", 0, 100), op("b", 10, 50), op("c", 20, 10), op("d", 70, 10), op("e", 200, 5)]
    assert timeline_from_events(rows).op_children == {"a": ["b", "d"], "b": ["c"]}


def test_another_thread_is_no_parent() -> None:
    assert timeline_from_events([op("a", 0, 100), op("b", 10, 50, tid=2)]).op_children == {}


@pytest.mark.parametrize(("end", "parent"), [(100, "b"), (101, "b"), (101.001, "a")])
def test_a_child_may_end_one_microsecond_after_its_parent(end: float, parent: str) -> None:
    rows = [op("a", 0, 500), op("b", 10, 90), op("c", 50, end - 50)]
    assert "c" in timeline_from_events(rows).op_children[parent]


@pytest.mark.traces
def test_the_shared_case_of_a_child_that_ends_a_hair_later() -> None:
    timeline = read(cases_dir() / "36-child-ends-a-hair-later" / "input.json")
    assert timeline.op_children == {"aten::linear": ["aten::addmm"], "nn.Module: Mlp": ["aten::gelu"]}
