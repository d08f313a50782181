"""The grade of a recording against DEFINITIONS §6, §7 and §17."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooflight.regimes.quality import QualityFacts, grade

CLEAN = QualityFacts(
    gpu_events=10_000, kernel_ns=1_000_000, steps=10, graph_launches=100, graph_launches_with_kernels=100
)


def with_(**changes) -> QualityFacts:
    return dataclasses.replace(CLEAN, **changes)


def test_a_clean_recording_is_complete_without_reasons():
    assert grade(CLEAN) == grade(QualityFacts())
    assert grade(CLEAN).grade == "complete"
    assert grade(CLEAN).reasons == []
    assert grade(CLEAN).withheld is None


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"salvaged": True}, "unreliable"),
        ({"graph_launches_with_kernels": 90}, "complete"),  # 90 of 100 is not under 0.9
        ({"graph_launches_with_kernels": 89}, "unreliable"),
        ({"steps_without_gpu": 5}, "complete"),  # half is not more than half
        ({"steps_without_gpu": 6}, "unreliable"),
        ({"invalid_events": 1}, "usable"),
        ({"gpu_events": 9_900, "invalid_events": 100}, "usable"),  # 1 % exactly
        ({"gpu_events": 9_899, "invalid_events": 101}, "unreliable"),
        ({"unlinked_ns": 500_000}, "usable"),  # 50 % exactly
        ({"unlinked_ns": 500_001}, "unreliable"),
        ({"unlinked_ns": 50_000}, "complete"),  # 5 % exactly
        ({"unattributed_ns": 50_001}, "usable"),
        ({"unattributed_ns": 50_000, "unlinked_ns": 50_000}, "complete"),  # the one lies within the other
        ({"unattributed_ns": 900_000}, "usable"),
        ({"cost_unknown_ns": 100_000}, "complete"),  # 10 % exactly
        ({"cost_unknown_ns": 100_001}, "usable"),
        ({"missing_ranks": 1}, "usable"),
        ({"peak_known": False}, "usable"),
        ({"overlong_clipped": 1}, "usable"),
        ({"unexplained_idle": True}, "usable"),
    ],
)
def test_each_defect_at_its_limit(changes, expected):
    result = grade(with_(**changes))
    assert result.grade == expected
    assert bool(result.reasons) == (expected != "complete")
    assert (result.withheld is not None) == (expected == "unreliable")


def test_missing_gpu_events_say_incomplete_with_their_count():
    result = grade(with_(steps_without_gpu=7))
    assert result.reasons == ["incomplete: 7 of 10 steps have no GPU events"]
    assert result.withheld == "unreliable recording: incomplete: 7 of 10 steps have no GPU events"


def test_a_recording_without_any_gpu_work_does_not_miss_it():
    cpu = QualityFacts(steps=4, steps_without_gpu=4, kernel_ns=1_000)
    assert grade(cpu).grade == "complete"
    all_invalid = QualityFacts(steps=4, steps_without_gpu=4, invalid_events=3)
    assert grade(all_invalid).grade == "unreliable"


def test_reasons_are_counted_and_the_worst_is_first():
    result = grade(with_(invalid_events=3, overlong_clipped=2, cost_unknown_ns=250_000, salvaged=True))
    assert result.reasons == [
        "the trace was cut off and salvaged",
        "the cost of 25.0 % of kernel time is unknown (more than 10 %)",
        "3 of 10003 GPU events are invalid",
        "2 kernels ran into the next one of their stream and were clipped",
    ]


ORDER = {"complete": 2, "usable": 1, "unreliable": 0}
facts = st.builds(
    QualityFacts,
    gpu_events=st.integers(0, 1000),
    invalid_events=st.integers(0, 20),
    overlong_clipped=st.integers(0, 2),
    kernel_ns=st.integers(1, 1000),
    unlinked_ns=st.integers(0, 1000),
    unattributed_ns=st.integers(0, 1000),
    cost_unknown_ns=st.integers(0, 1000),
    peak_known=st.booleans(),
    steps=st.integers(0, 10),
    steps_without_gpu=st.integers(0, 10),
    graph_launches=st.integers(0, 100),
    graph_launches_with_kernels=st.integers(0, 100),
    missing_ranks=st.integers(0, 2),
    unexplained_idle=st.booleans(),
    salvaged=st.booleans(),
)
COUNTED = (
    "invalid_events",
    "overlong_clipped",
    "unlinked_ns",
    "unattributed_ns",
    "cost_unknown_ns",
    "steps_without_gpu",
    "graph_launches",
    "missing_ranks",
)


@given(facts, st.sampled_from(COUNTED), st.integers(1, 1000))
def test_one_more_defect_never_betters_the_grade(before, field, more):
    after = dataclasses.replace(before, **{field: getattr(before, field) + more})
    assert ORDER[grade(after).grade] <= ORDER[grade(before).grade]


@given(facts, st.sampled_from([("salvaged", True), ("unexplained_idle", True), ("peak_known", False)]))
def test_a_defect_of_the_whole_never_betters_the_grade(before, defect):
    after = dataclasses.replace(before, **dict([defect]))
    assert ORDER[grade(after).grade] <= ORDER[grade(before).grade]
