"""What a comparison says: parts, groups, calls, noise, what speaks against it."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import msgspec
import pytest

from rooflight.comparison import GroupChange, compare
from rooflight.comparison.rounding import apportioned
from rooflight.errors import Malformed, Refused
from rooflight.protocol import (
    Ceiling,
    Cpu,
    CpuStep,
    Document,
    Parts,
    Rank,
    Roofs,
    Step,
)
from tests import shared

# ---- the difference and its parts ----
from tests.rooflight.comparing import a_device, a_group, a_rank, a_run, a_step, matches, one, timed, us


def test_the_difference_of_the_mean_step_is_that_of_its_parts():
    """A: 100 + 20, 110 + 10 and 90 + 30: mean 100 + 20.  B: 90 + 50 and 100 + 60: mean 95 + 55.  So the step
    is 150 - 120 = 30 longer: 35 of input, and 5 of compute less."""
    a = a_run(
        a_rank([a_step(n, compute=c, input=i) for n, c, i in ((1, 100, 20), (2, 110, 10), (3, 90, 30))])
    )
    b = a_run(a_rank([a_step(1, compute=90, input=50), a_step(2, compute=100, input=60)]))
    c = compare(a, b)
    assert (us(c.total.a), us(c.total.b), us(c.total.difference)) == (120, 150, 30)
    assert {p: us(x.difference) for p, x in c.parts.items() if x.difference} == {"compute": -5, "input": 35}


def test_a_third_of_a_nanosecond_is_not_lost():
    """A: 1 ns over three steps; B: nothing.  The difference is a third of a nanosecond, three of them one."""
    c = compare(
        a_run(a_rank([a_step(1, host=0.001), a_step(2, host=0), a_step(3, host=0)])),
        a_run(a_rank([a_step(1, host=0)])),
    )
    assert c.total.difference == c.parts["host"].difference == Fraction(-1, 3)
    assert c.document.parts["host"].difference_us == 0.0, "printed to the nearest nanosecond"


def test_thirds_of_a_nanosecond_add_up_in_the_json_too():
    """Means of 1/3, 1/3 and 4/3 ns are 2 together: each is rounded down to 0, 0 and 1, and the first gets the
    one that is left."""
    thirds = {p: Fraction(n, 3) for p, n in (("x", 1), ("y", 1), ("z", 4))}
    assert apportioned(thirds, 2) == {"x": 1, "y": 0, "z": 1}
    assert apportioned({"x": Fraction(2, 3), "y": Fraction(4)}, 5) == {"x": 1, "y": 4}
    assert apportioned({}, 0) == {}


def test_every_rank_weighs_the_same_whatever_number_of_steps_it_has():
    """Rank 0: steps of 10 and 20, mean 15; rank 1: one of 30.  The run: (15 + 30) / 2 = 22.5.  Its group has
    30 of its own in rank 0 (15 a step) and 30 in rank 1: the same, 22.5; calls 4 / 2 and 1: 1.5."""
    ranks = (
        a_rank([a_step(1, compute=10), a_step(2, compute=20)], [a_group(us=30, calls=4)]),
        a_rank([a_step(1, compute=30)], [a_group(us=30, calls=1)], 1),
    )
    c = compare(a_run(*ranks), one([]))
    [g] = c.groups
    assert us(c.total.a) == 22.5
    assert g.pair.a is not None
    assert (us(g.pair.a.ns), g.pair.a.calls) == (22.5, 1.5)
    assert set(c.rest.values()) == {0}


def test_steps_of_one_number_are_one_sample():
    """Step 1: 10 on rank 0 and 20 on rank 1, mean 15; step 2: 40 and 20, mean 30."""
    times = enumerate([(10, 40), (20, 20)])
    ranks = [a_rank([a_step(1, compute=x), a_step(2, compute=y)], rank=r) for r, (x, y) in times]
    c = compare(a_run(*ranks), a_run(*ranks))
    assert c.a.steps == (15_000, 30_000)


def test_the_device_is_the_headline_of_the_steps():
    """Groups of the other device belong to its own parts, not to those of the headline."""
    kernels = [a_group("mine", 10), a_group("other", 99, device="1")]
    c = compare(one(kernels, compute=10), one([], compute=0))
    assert [g.pair.shown.key.name for g in c.groups] == ["mine"]
    assert set(c.rest.values()) == {0}


def test_the_six_parts_are_cut_by_group_and_a_regime_that_moves_is_in_two():
    """k takes 30 under compute in A, 20 under memory in B: compute loses 30, memory gains 20."""
    a, b = one([a_group(us=30)]), one([a_group(us=20, regime="memory")], compute=0, memory=20)
    c = compare(a, b)
    [g] = c.groups
    assert (g.pair.match, us(g.difference)) == ("same", -10)
    assert {p: us(x) for p, x in g.by_part.items()} == {"compute": -30, "memory": 20}
    assert set(c.rest.values()) == {0}


def test_what_no_group_has_is_the_rest():
    c = compare(one([a_group(us=30)], compute=50), one([a_group(us=30)], compute=30))
    assert {p: us(x) for p, x in c.rest.items() if x} == {"compute": -20}


def test_without_steps_the_recordings_are_compared():
    runs = [a_run(a_rank([], parts_us={"0": Parts(memory=x, host=5)})) for x in (10, 30)]
    c = compare(*runs)
    assert not c.by_step
    assert c.document.basis == "recording"
    assert us(c.total.difference) == 20
    assert c.total.significance.verdict == "cannot_say"
    assert [n.code for n in c.notes] == ["no_steps"]


def test_without_steps_the_device_is_the_one_with_most_kernel_time():
    devices = {"0": a_device(kernel_sum_us=5), "1": a_device(kernel_sum_us=7)}
    parts = {"0": Parts(memory=1), "1": Parts(memory=2)}
    c = compare(a_run(a_rank([], parts_us=parts, devices=devices)), one([]))
    assert us(c.total.a) == 2


def test_a_cpu_is_compared_by_its_ops():
    def on_cpu(own: float) -> Document:
        cpu_step = CpuStep(1, own + 5, Parts(memory=own, host=5))
        row = a_group("aten::add", own, 2, "aten::add", kind="op", device="cpu", regime="memory")
        cpu = Cpu(Roofs(), [cpu_step], [row], Parts(memory=own, host=5), name="a CPU")
        return a_run(Rank(0, "complete", steps=[Step(1, own + 5)], cpu=cpu))

    c = compare(on_cpu(10), on_cpu(16))
    assert us(c.total.difference) == 6
    assert [us(g.difference) for g in c.groups] == [6]
    assert c.notes == ()


def test_a_run_that_says_nothing_of_its_time_is_refused_by_name():
    with pytest.raises(Refused, match="B says nothing of where its time went"):
        compare(one([]), a_run(Rank(0, "usable", kernels=[a_group(us=1)])))


@pytest.mark.parametrize("time", [-1.0, 1e300, float("nan")])
def test_an_impossible_time_is_refused(time: float):
    with pytest.raises(Malformed, match="not a time"):
        compare(one([]), timed(time))


# ---- groups ----


def test_the_same_group_is_found_whatever_its_device():
    a, b = one([a_group(us=5)]), one([a_group(us=5)])
    b.ranks[0].kernels[0].device = b.ranks[0].steps[0].device = "3"
    b.ranks[0].devices = {"3": a_device()}
    b.ranks[0].parts_us = {"3": Parts(compute=5)}
    assert matches(compare(a, b)) == {("k", "k"): "same"}


@pytest.mark.parametrize(
    ("match", "a", "b"),
    [
        ("same", {}, {}),
        ("renamed", {"name": "gemm_v1"}, {"name": "gemm_v2"}),
        ("renamed", {"name": "sgemm"}, {"name": "winograd", "family": "conv"}),
        ("retyped", {"name": "sgemm"}, {"name": "hgemm", "input_types": '["half"]'}),
        ("moved", {"module": "Linear_1"}, {"module": "Linear_2"}),
        ("reshaped", {}, {"input_dims": "[[8, 4]]"}),
        ("reshaped", {"name": "gemm_v1"}, {"name": "gemm_v2", "input_dims": "[[8, 4]]"}),
        ("reshaped", {"module": "Linear_1"}, {"module": "Linear_2", "input_dims": "[[8, 4]]"}),
    ],
)
def test_a_pair_is_called_by_what_changed(match: str, a: dict[str, Any], b: dict[str, Any]):
    c = compare(one([a_group(us=5, **a)]), one([a_group(us=7, **b)]))
    assert [g.pair.match for g in c.groups] == [match]
    assert us(c.groups[0].difference) == 2


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ({"op": None}, {"op": None, "name": "other"}),
        ({}, {"op": "aten::addmm"}),
        ({}, {"family": "reduction", "name": "r", "input_dims": "[[8, 4]]"}),
        ({"input_dims": None}, {"input_dims": None, "family": "conv", "name": "c"}),
        ({"family": "other", "input_dims": None}, {"family": "other", "name": "x", "input_dims": None}),
        ({"kind": "memset", "name": "m"}, {}),
    ],
)
def test_what_is_not_known_to_be_the_same_is_new_and_vanished(a: dict[str, Any], b: dict[str, Any]):
    c = compare(one([a_group(us=5, **a)]), one([a_group(us=7, **b)]))
    assert sorted(g.pair.match for g in c.groups) == ["new", "vanished"]


def test_of_several_leftovers_the_longest_go_together_and_the_surest_first():
    """Of A's p, q, r B has p; q 9 and r 4 were renamed to x 3 and y 8: q is y, r is x; z of another family
    is left over."""
    a = [a_group("p", 1), a_group("q", 9), a_group("r", 4)]
    b = [a_group("p", 20), a_group("x", 3), a_group("y", 8), a_group("z", 50, family="reduction")]
    found = matches(compare(one(a), one(b)))
    assert found == {
        ("p", "p"): "same", ("q", "y"): "renamed", ("r", "x"): "renamed", (None, "z"): "new",
    }  # fmt: skip


def test_the_order_of_rows_changes_nothing():
    rows = [a_group(f"k{i}", 10 - i, op=f"aten::{'ab'[i % 2]}", input_dims=f"[[{i % 3}]]") for i in range(8)]
    others = [a_group(f"n{i}", 3 + i, op=f"aten::{'ab'[i % 2]}", input_dims=f"[[{i % 4}]]") for i in range(7)]
    first = compare(one(rows), one(others))
    second = compare(one(rows[::-1]), one(others[3:] + others[:3]))
    assert msgspec.json.encode(first.document) == msgspec.json.encode(second.document)


def test_a_document_without_exclusive_times_has_parts_and_no_groups():
    a, b = one([a_group(us=5)]), one([a_group(us=9)])
    b.ranks[0].kernels[0].steps_exclusive_us = None
    c = compare(a, b)
    assert us(c.total.difference) == 4
    assert c.groups == ()
    [note] = c.notes
    assert (note.code, note.words.partition(";")[0]) == (
        "no_exclusive",
        "kernel groups are not compared: B lacks their exclusive time",
    )


# ---- calls apart from time per call ----


def the_group(a: Document, b: Document) -> GroupChange:
    [g] = compare(a, b).groups
    return g


def test_other_calls_and_another_time_per_call_are_told_apart():
    """4 calls of 10 become 5 of 12: 40 to 60.  Calls: (5 - 4) x (10 + 12) / 2 = 11; time: (12 - 10) x (4 + 5)
    / 2 = 9."""
    g = the_group(one([a_group(us=40, calls=4)]), one([a_group(us=60, calls=5)]))
    assert (us(g.difference), us(g.count_effect), us(g.duration_effect)) == (20, 11, 9)


def test_a_new_group_is_all_calls():
    g = the_group(one([]), one([a_group(us=60, calls=5)]))
    assert (us(g.difference), us(g.count_effect), us(g.duration_effect)) == (60, 60, 0)


def test_a_launch_from_before_the_steps_has_time_and_no_call():
    """Its time has no call to divide by: where both have none it is the time that changed, else the calls."""
    both = the_group(one([a_group(us=40, calls=0)]), one([a_group(us=60, calls=0)]))
    assert (us(both.count_effect), us(both.duration_effect)) == (0, 20)
    one_side = the_group(one([a_group(us=40, calls=0)]), one([a_group(us=60, calls=2)]))
    assert (us(one_side.count_effect), us(one_side.duration_effect)) == (20, 0)


def test_flops_and_bytes_are_of_a_launch_and_unknown_when_any_is():
    """600 FLOPs in 3 launches of rank 0, 200 in 1 of rank 1: 800 / 4; bytes are known in one rank only."""
    rows = [a_group(us=9, calls=3, flops=600, bytes=30), a_group(us=3, calls=1, flops=200)]
    ranks = [a_rank([a_step(1, compute=9)], [rows[0]]), a_rank([a_step(1, compute=3)], [rows[1]], 1)]
    [g] = compare(a_run(*ranks), a_run(*ranks)).document.kernels
    assert g.a is not None
    assert (g.a.flops, g.a.bytes, g.a.calls, g.a.launch_us) == (200, None, 2.0, 3.0)


def test_regime_and_roof_before_and_after():
    a, b = one([a_group(us=9, roof_fraction=0.8)]), one([a_group(us=20, roof_fraction=0.3, regime="latency")])
    [g] = compare(a, b).document.kernels
    assert g.a is not None
    assert g.b is not None
    assert (g.a.regime, g.a.roof_fraction) == ("compute", 0.8)
    assert (g.b.regime, g.b.roof_fraction) == ("latency", 0.3)


# ---- noise ----


def test_six_steps_against_six_that_do_not_overlap_are_significant():
    c = compare(timed(10, 11, 12, 13, 14, 15), timed(20, 21, 22, 23, 24, 25))
    s = c.total.significance
    assert (s.verdict, s.words) == ("significant", "larger than the noise of 6 and 6 steps (p = 0.0022)")
    assert s.shift is not None
    assert us(s.shift.ns) == 10


def test_three_against_three_are_likely_at_best_and_two_cannot_say():
    """2 of C(6, 3) = 20 arrangements are as uneven: p = 0.1."""
    assert compare(timed(1, 2, 3), timed(7, 8, 9)).total.significance.verdict == "likely"
    s = compare(timed(1, 2, 3), timed(7, 8)).total.significance
    assert (s.verdict, s.p, s.words) == (
        "cannot_say", None, "cannot say: it takes 3 steps on each side, B has 2"
    )  # fmt: skip


def test_steps_that_overlap_are_noise():
    c = compare(timed(10, 20, 30, 40), timed(12, 22, 32, 42))
    assert c.total.significance.verdict == "within_noise"


def test_parts_are_tested_together():
    """Five steps against five: the least p is 2 / 252 = 0.0079.  Compute moves, seven other parts do not: it
    is corrected by eight, 0.063.  A part that takes no time is none of the tests."""
    others = ("memory", "latency", "copy", "input", "sync", "host", "launch")
    noise = [3, 1, 4, 2, 5]
    runs = [
        a_run(a_rank([a_step(n, compute=x + n, **dict.fromkeys(others, noise[n])) for n in range(5)]))
        for x in (10, 90)
    ]
    c = compare(*runs)
    compute = c.parts["compute"].significance
    assert compute.p == pytest.approx(8 * 2 / 252)
    assert compute.verdict == "likely"
    assert c.parts["memory"].significance.verdict == "within_noise"
    assert c.parts["dispatch"].significance.p is None


def test_four_steps_cannot_tell_one_of_four_parts():
    """2 / C(8, 4) = 0.0286, times four parts is 0.114: no part could be claimed, whatever it did."""
    runs = [
        a_run(a_rank([a_step(n, compute=x + n, memory=n, host=n, copy=n) for n in range(4)])) for x in (1, 90)
    ]
    found = compare(*runs).parts["compute"].significance
    assert (found.verdict, found.words) == (
        "cannot_say", "cannot say: 4 and 4 steps are too few to tell one of 4 parts from noise"
    )  # fmt: skip


def test_a_mean_that_a_few_steps_make_is_said():
    """B's steps are shorter but for one of 1000: the mean is longer, the typical step is not."""
    c = compare(timed(10, 11, 12, 13, 14, 15), timed(1, 2, 3, 4, 5, 1000))
    assert c.total.difference > 0
    assert c.total.significance.words.endswith("the typical step moves the other way")


# ---- what speaks against comparing ----


def noted(a: Document, b: Document) -> dict[str, str]:
    return {n.code: n.weight for n in compare(a, b).notes}


def with_rank(**changes: Any) -> Document:
    return timed(10, 11, 12, **changes)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"devices": {"0": a_device("AMD MI300X")}}, {"gpu_model": "not_comparable"}),
        ({"devices": {"0": a_device(None)}}, {"gpu_unknown": "caution"}),
        ({"software": {"cuda": "13.0"}}, {"software.cuda": "caution"}),
        ({"software": {}}, {"software_unknown": "remark"}),
        ({"software": {"cuda": "12.4", "trace_id": "another"}}, {}),
        ({"host": "node-2"}, {"host": "remark"}),
        ({"grade": "unreliable", "verdict_withheld": "cut off"}, {"unreliable": "caution"}),
        ({"rank": 3}, {"ranks": "caution"}),
        ({"steps": []}, {"no_steps": "not_comparable"}),
        ({"kernels": [a_group(dtype="bf16", us=33)]}, {"dtype": "not_comparable"}),
        ({}, {}),
    ],
)
def test_what_differs_is_said_with_its_weight(changes: dict[str, Any], expected: dict[str, str]):
    software = {"cuda": "12.4", "trace_id": "one"}
    told = {"software": software, "host": "node-1", "kernels": [a_group(dtype="tf32", us=33)]}
    a, b = with_rank(**told), with_rank(**told)
    for field, value in changes.items():
        setattr(b.ranks[0], field, value)
    assert noted(a, b) == expected
    assert noted(b, a) == expected


def test_another_number_of_processes_is_not_comparable():
    ranks = [a_rank([a_step(1, compute=1)], rank=r) for r in range(2)]
    assert noted(a_run(*ranks, world_size=2), a_run(ranks[0], world_size=1)) == {
        "world_size": "not_comparable"
    }
    assert noted(a_run(*ranks, world_size=2), a_run(ranks[0], world_size=2)) == {"ranks": "caution"}


def test_other_roofs_of_one_device_are_said():
    """3.35 TB/s by the datasheet's factor, 3.1 measured: the same kernels stand elsewhere under them."""
    a, b = (with_rank(roofs={"0": Roofs("h100-sxm", memory=Ceiling(practical=x))}) for x in (3.35e12, 3.1e12))
    assert noted(a, b) == {"roofs": "caution"}
    assert noted(a, a) == {}


def test_a_gpu_against_a_cpu_is_not_comparable():
    cpu = Cpu(Roofs(), [CpuStep(1, 5, Parts(host=5))], [], Parts(host=5), name="a CPU")
    found = compare(one([]), a_run(Rank(0, "complete", cpu=cpu)))
    assert [n.code for n in found.notes] == ["device_kind"]
    assert found.document.comparable is False
    assert found.document.words[0].startswith("Not comparable: one run worked on a GPU")


def test_inferred_steps_are_said():
    a, b = timed(1, 2, 3), timed(1, 2, 3)
    b.ranks[0].inferred_steps, b.ranks[0].steps = b.ranks[0].steps, []
    assert noted(a, b) == {"inferred_steps": "caution"}
    assert compare(a, b).document.basis == "inferred_steps"


def test_a_step_far_above_the_median_is_said():
    """10, 10, 10, 15: none is over 1.5 x 10; 10, 10, 10, 16: one is."""
    assert noted(timed(10, 10, 10, 15), timed(10, 10, 10)) == {}
    assert noted(timed(10, 10, 10, 16), timed(10, 10, 10)) == {"slow_steps": "caution"}


def test_every_code_of_a_note_is_on_the_page():
    page = (shared.CHECKOUT / "docs/compare.md").read_text()
    source = (shared.CHECKOUT / "rooflight/comparison/comparability.py").read_text()
    codes = re.findall(r'Note\(f?"([a-z_.]+)', source)
    assert len(codes) > 12
    assert [c for c in codes if f"`{c}`" not in page] == []
