"""Which launches of a recording the counted launches are."""

from __future__ import annotations

from typing import Any

import pytest

from rooflight.attribution.launches import link
from rooflight.counters.join import Joined, Kernels, agreed, join
from rooflight.counters.names import canonical
from rooflight.counters.work import NOTHING, Counted, Moved
from rooflight.trace.counters import CountedLaunch, CounterFile
from rooflight.trace.timeline import Timeline
from tests.drawing import timeline_from_events

A, B = ((8, 1, 1), (256, 1, 1)), ((16, 1, 1), (256, 1, 1))
Geometry = tuple[tuple[int, ...], tuple[int, ...]] | None


def recording(*kernels: tuple[str, Geometry], device: Any = 0) -> Timeline:
    """Kernels one after the other, 10 us each."""
    events = []
    for i, (name, geometry) in enumerate(kernels):
        args: dict[str, Any] = {"device": device, "context": 1, "stream": 7, "correlation": i + 1}
        if geometry:
            args |= {"grid": geometry[0], "block": geometry[1]}
        events.append({"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": 10 * i, "dur": 9,
                       "args": args})  # fmt: skip
    return timeline_from_events(events)


def counted(name: str, geometry: Geometry, total: int, **where: Any) -> CountedLaunch:
    grid, block = geometry or (None, None)
    return CountedLaunch(name, {"dram__bytes.sum": total}, grid=grid, block=block, **where)


def derived(launch: CountedLaunch, _: int) -> Counted:
    """As many bytes as the metrics add up to."""
    total = int(sum(launch.values.values()))
    return Counted(moved=Moved(total, None, None, "sum")) if total else NOTHING


def joined(timeline: Timeline, *launches: CountedLaunch) -> tuple[dict[int, int], Joined]:
    """Bytes by row, and the whole."""
    (found,) = join(Kernels(timeline, link(timeline)), [CounterFile("x.csv", launches)], derived)
    return {row: c.moved.total for row, c in found.rows.items() if c.moved}, found


def test_equally_many_launches_are_joined_in_their_order() -> None:
    timeline = recording(("k", A), ("k", A), ("k", B))
    rows, found = joined(timeline, counted("k", A, 10), counted("k", B, 99), counted("k", A, 20))
    assert rows == {0: 10, 1: 20, 2: 99}
    assert (found.launches, found.unknown, found.ambiguous, found.silent) == (3, 0, 0, 0)


def test_the_median_stands_for_launches_of_another_number_when_they_agree() -> None:
    """100, 104, 108: the spread of 8 is within a tenth of 104."""
    timeline = recording(("k", A), ("k", A))
    rows, found = joined(timeline, *(counted("k", A, n) for n in (108, 100, 104)))
    assert rows == {0: 104, 1: 104}
    assert found.ambiguous == 0


def test_launches_that_differ_are_left_out_and_counted() -> None:
    """One grid, two sizes: 100 and 200 bytes have no median that any launch had."""
    timeline = recording(("k", A), ("k", A), ("k", A))
    rows, found = joined(timeline, counted("k", A, 100), counted("k", A, 200))
    assert (rows, found.ambiguous) == ({}, 2)


def test_another_grid_is_another_kernel() -> None:
    rows, found = joined(recording(("k", A)), counted("k", B, 10))
    assert (rows, found.unknown) == ({}, 1)


def test_a_name_that_means_two_kernels_means_none() -> None:
    """Nsight Compute may print the function's name alone."""
    two = recording(("void k<float>(int)", A), ("void k<double>(int)", A))
    rows, found = joined(two, counted("k", A, 10))
    assert (rows, found.ambiguous) == ({}, 1)
    one = recording(("void ns::k<float>(int)", A), ("void ns::k<double>(int)", B))
    assert joined(one, counted("k", A, 10))[0] == {0: 10}


def test_the_same_name_goes_before_one_that_is_alike() -> None:
    timeline = recording(("void k<4>(int)", A))
    rows, found = joined(timeline, counted("void k<4>(int)", A, 10), counted("void k<(int)4>(T1)", A, 20))
    assert (rows, found.ambiguous) == ({0: 10}, 1)


def test_two_names_that_are_alike_are_told_apart_by_nothing() -> None:
    timeline = recording(("void k<4>(int)", A))
    rows, found = joined(
        timeline, counted("void k<(int)4>(T1)", A, 10), counted("void k<(int)4>(T2 *)", A, 20)
    )
    assert (rows, found.ambiguous) == ({}, 2)


def test_without_geometry_the_order_decides_where_the_number_is_right() -> None:
    timeline = recording(("k", A), ("k", B), ("other", A))
    assert joined(timeline, counted("k", None, 10), counted("k", None, 20))[0] == {0: 10, 1: 20}
    rows, found = joined(timeline, counted("k", None, 10))
    assert (rows, found.ambiguous) == ({}, 1)


def test_a_recording_without_geometry_is_joined_by_order_too() -> None:
    timeline = recording(("k", None), ("k", None))
    assert joined(timeline, counted("k", A, 10), counted("k", B, 20))[0] == {0: 10, 1: 20}


def test_a_lost_name_is_found_by_its_place() -> None:
    """Kineto writes __missing__ where it lost a name; the others say that the sequence is the same."""
    timeline = recording(("a", A), ("b", A), ("c", A))
    rows, _ = joined(timeline, counted("a", None, 1), counted("__missing__", None, 2), counted("c", None, 3))
    assert rows == {0: 1, 1: 2, 2: 3}
    rows, found = joined(timeline, counted("__missing__", None, 2), counted("c", None, 3))
    assert (rows, found.unknown) == ({2: 3}, 1)


def test_launches_of_several_processes_have_no_common_order() -> None:
    """Two of one kernel in the recording, one from each process: only what agrees is taken."""
    timeline = recording(("k", A), ("k", A))
    apart = [counted("k", A, 100, process="1"), counted("k", A, 200, process="2")]
    assert joined(timeline, *apart)[0] == {}
    alike = [counted("k", A, 100, process="1"), counted("k", A, 101, process="2")]
    assert joined(timeline, *alike)[0] == {0: 100, 1: 100}


@pytest.mark.parametrize("grid", [(4096, 1, 1), (1_048_576, 1, 1)])
def test_hip_counts_a_grid_in_blocks_or_in_threads(grid: tuple[int, ...]) -> None:
    """4096 blocks of 256 = 64 x 4 are 1,048,576 work-items."""
    timeline = recording(("k", (grid, (64, 4, 1))))
    launch = CountedLaunch("k", {"x": 7.0}, block=(256,), threads=1_048_576)
    assert joined(timeline, launch)[0] == {0: 7}
    assert joined(timeline, CountedLaunch("k", {"x": 7.0}, block=(128,), threads=1_048_576))[0] == {}


def test_passes_in_files_of_their_own_tell_together_what_none_tells_alone() -> None:
    timeline = recording(("k", A), ("k", A))
    files = [
        CounterFile(metric, tuple(CountedLaunch("k", {metric: n}, grid=A[0], block=A[1]) for n in counts))
        for metric, counts in (("read", (1.0, 2.0)), ("write", (10.0, 20.0)))
    ]
    found = join(Kernels(timeline, link(timeline)), files, derived)
    assert [{row: c.moved.total for row, c in f.rows.items() if c.moved} for f in found] == [
        {0: 11, 1: 22},
        {0: 11, 1: 22},
    ]


def test_metrics_that_tell_nothing_are_counted_as_such() -> None:
    rows, found = joined(recording(("k", A)), counted("k", A, 0))
    assert (rows, found.silent, found.ambiguous) == ({}, 1, 0)


def test_unknown_of_one_is_unknown_of_all() -> None:
    assert agreed([derived(counted("k", A, 5), 0), NOTHING]) == NOTHING
    assert agreed([]) == NOTHING


@pytest.mark.parametrize(
    ("nsight", "profiler"),
    [
        ("void k<(int)4, (bool)1>(T1 *)", "void k<4, true>(float*)"),
        ("void ns::k<float, (unsigned long)4>(const T1 *)", "void ns::k<float, 4ul>(float const*)"),
        (
            "e<(int)4, f(T &)::[lambda() (instance 1)]::operator ()() const::[lambda(C) (instance 2)]>()",
            "e<4, f(T&)::{lambda()#1}::operator()() const::{lambda(C)#2} >(int)",
        ),
        ("<unnamed>::k(int)", "(anonymous namespace)::k(int)"),
        ("k(double*, int) (.kd)", "k(double*, int)"),
        ("k.kd", "k"),
    ],
)
def test_tools_print_one_name_in_several_ways(nsight: str, profiler: str) -> None:
    assert canonical(nsight) == canonical(profiler)


@pytest.mark.parametrize(
    ("one", "other"),
    [("void k<4>(int)", "void k<8>(int)"), ("a::k(int)", "b::k(int)"), ("k<float>(int)", "k<double>(int)")],
)
def test_other_kernels_have_other_names(one: str, other: str) -> None:
    assert canonical(one) != canonical(other)
