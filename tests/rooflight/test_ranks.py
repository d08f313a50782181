"""Collectives over ranks: matching, clocks, waits (DEFINITIONS §8)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooflight import Options, analyze
from rooflight.protocol import Document
from rooflight.results.rank import analyse_rank
from rooflight.results.result import decode, encode
from rooflight.results.stages import Stages
from rooflight.trace.timeline import Timeline
from tests.drawing import timeline_from_events

Call = tuple[float, float, dict[str, Any]]


def rank(
    number: int,
    calls: list[Call],
    *,
    world: int = 2,
    host: str | None = None,
    step: tuple[float, float] | None = None,
) -> Timeline:
    """A rank whose communication kernels start and last so long, in µs, with these further args."""
    events = [
        {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "pid": 0, "tid": 20,
         "ts": start, "dur": dur, "args": {"device": 0, "stream": 20, "Collective name": "allreduce", **more}}
        for start, dur, more in calls
    ]  # fmt: skip
    if step is not None:
        events.append(
            {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 9, "tid": 9,
             "ts": step[0], "dur": step[1], "args": {}}
        )  # fmt: skip
    meta: dict[str, Any] = {"distributedInfo": {"rank": number, "world_size": world}}
    if host:
        meta["host_name"] = host
    return timeline_from_events(events, **meta)


def dp(start: float, dur: float, **more: Any) -> Call:
    return start, dur, {"Process Group Name": "dp", "Process Group Ranks": "[0, 1]", **more}


def run(*ranks: Timeline) -> Document:
    return analyze(list(ranks)).document


def test_a_clock_that_is_ahead_is_set_back_before_anyone_is_called_late() -> None:
    """Rank 1's ends are 850 µs later in all three, so its clock is 850 ahead.  Set back, it arrives at
    1060, 1990 and 3120 where rank 0 arrives at 1000, 2000 and 3000."""
    doc = run(
        rank(0, [dp(1000, 100), dp(2000, 100), dp(3000, 150)]),
        rank(1, [dp(1910, 40), dp(2840, 110), dp(3970, 30)]),
    )
    assert doc.clock_offset_us == {"1": 850}
    assert [(c.straggler, c.transfer_us, c.wait_us) for c in doc.collectives] == [
        (1, 40, {"0": 60, "1": 0}),
        (0, 100, {"0": 0, "1": 10}),
        (1, 30, {"0": 120, "1": 0}),
    ]
    assert [(f.code, f.detail) for f in doc.flags] == [("clock_aligned", "rank 1 +850 us")]


@pytest.mark.parametrize(
    ("ends", "why"),
    [((8, 9, 10), "the median of 9 µs is not over 10"), ((0, 40, 200), "40 is not over 5 x its MAD of 40")],
)
def test_a_doubtful_offset_is_none(ends: tuple[float, ...], why: str) -> None:
    doc = run(
        rank(0, [dp(1000 * i, 100) for i in range(1, 4)]),
        rank(1, [dp(1000 * i, 100 + e) for i, e in zip(range(1, 4), ends, strict=True)]),
    )
    assert doc.clock_offset_us == {}, why


def test_ranks_of_one_host_share_its_clock() -> None:
    """Ranks 2 and 3 are on b: 500 and 520 ahead, the median of both is 510."""
    members = {"Process Group Name": "all"}
    doc = run(
        *(
            rank(r, [(1000 + ahead, 100, members)] * 1, world=4, host=host)
            for r, host, ahead in ((0, "a", 0), (1, "a", 0), (2, "b", 500), (3, "b", 520))
        )
    )
    assert doc.clock_offset_us == {"2": 510, "3": 510}
    assert [(f.count, f.detail) for f in doc.flags] == [(2, "b (ranks 2, 3) +510 us")]


def shared(name: str, start: float, dur: float) -> list[Call]:
    """Two collectives of a group, a millisecond apart."""
    return [(start + 1000 * i, dur, {"Process Group Name": name}) for i in (0, 1)]


def test_clocks_are_set_one_by_the_other_where_no_collective_has_both() -> None:
    """0-1 ends at 1100 for rank 0 and at 1600 for rank 1, which is 500 ahead; 1-2 at 9300 for rank 1 and
    at 9600 for rank 2, which is 300 ahead of it and 800 ahead of rank 0."""
    doc = run(
        rank(0, shared("0-1", 1000, 100), world=3),
        rank(1, [*shared("0-1", 1000, 600), *shared("1-2", 9200, 100)], world=3),
        rank(2, shared("1-2", 9000, 600), world=3),
    )
    assert doc.clock_offset_us == {"1": 500, "2": 800}


def test_ranks_that_never_meet_the_lowest_have_a_clock_among_them() -> None:
    """2 and 3 meet each other alone: 3 is 700 ahead of 2, and waits for nobody."""
    doc = run(
        *(rank(r, shared("a", 1000, 100), world=4) for r in (0, 1)),
        rank(2, shared("b", 1000, 100), world=4),
        rank(3, shared("b", 1700, 100), world=4),
    )
    assert doc.clock_offset_us == {"3": 700}
    assert {w for c in doc.collectives for w in c.wait_us.values()} == {0}


def test_more_ranks_than_the_group_has_are_several_groups() -> None:
    """No group is named: calls of two groups of two on one stream look like one of four."""
    nameless = {"Group size": 2}
    doc = run(*(rank(r, [(r, 10, nameless)], world=4) for r in range(4)))
    assert doc.collectives == []
    assert doc.clock_offset_us == {}
    assert [(f.code, f.detail) for f in doc.flags] == [
        ("collectives_unaligned", "ranks disagree: stream 20, 2 ranks")
    ]


def test_calls_are_matched_by_number_even_when_one_is_missing() -> None:
    doc = run(rank(0, [dp(0, 10, Seq=1), dp(100, 10, Seq=2)]), rank(1, [dp(101, 9, Seq=2)]))
    [c] = doc.collectives
    assert (c.straggler, c.wait_us) == (1, {"0": 1, "1": 0})


def test_different_sequences_give_no_verdict() -> None:
    other = {"Process Group Name": "dp", "Process Group Ranks": "[0, 1]", "Collective name": "broadcast"}
    doc = run(rank(0, [dp(0, 10), dp(100, 10)]), rank(1, [dp(0, 10), (100, 10, other)]))
    assert doc.collectives == []
    assert [f.code for f in doc.flags] == ["collectives_unaligned"]


def of_three(number: int, start: float, world: int = 3, **more: Any) -> Timeline:
    """A rank of ``world`` with an all-reduce of a group of three that ends at 1200."""
    members = {"Process Group Name": "all", "Group size": 3}
    return rank(number, [(start, 1200 - start, members | more)], world=world)


@pytest.mark.parametrize("more", [{}, {"Seq": 7}], ids=["by place", "by number"])
def test_a_group_of_all_ranks_that_one_lacks_gives_no_verdict(more: dict[str, int]) -> None:
    """When the third one came nobody knows: it may have been the last."""
    idle = rank(2, [], world=3, step=(1000, 10))
    doc = run(of_three(0, 1000, **more), of_three(1, 1100, **more), idle)
    assert doc.collectives == []
    assert [(f.code, f.detail) for f in doc.flags] == [("collectives_unaligned", "ranks disagree: all")]
    assert len(run(*(of_three(r, 1000, **more) for r in range(3))).collectives) == 1


def test_of_a_rank_that_was_not_given_the_others_are_compared() -> None:
    """They say how many they are."""
    doc = run(of_three(0, 1000), of_three(1, 1100))
    assert [(c.straggler, c.wait_us) for c in doc.collectives] == [(1, {"0": 100, "1": 0})]
    assert doc.missing_ranks == [2]
    # In a run of four nothing tells which three the group has.
    idle = [rank(n, [], world=4, step=(1000, 10)) for n in (2, 3)]
    assert len(run(of_three(0, 1000, 4), of_three(1, 1100, 4), *idle).collectives) == 1


def test_messages_between_two_of_all_ranks_leave_the_collectives_aligned() -> None:
    def one(number: int) -> Timeline:
        everyone = {"Process Group Name": "all", "Group size": 3}
        message = everyone | {"Collective name": "send", "Seq": 0}
        calls = [(1000.0 + number, 100.0 - number, everyone | {"Seq": 0})]
        return rank(number, calls + [(2000.0, 10.0, message)] * (number < 2), world=3)

    doc = run(*map(one, range(3)))
    assert "collectives_unaligned" not in [f.code for f in doc.flags]
    assert 2 in [c.straggler for c in doc.collectives]


def test_send_and_receive_set_no_clock() -> None:
    message = {"Process Group Name": "pp", "Collective name": "send"}
    doc = run(rank(0, [(0, 10, message)]), rank(1, [(900, 10, message)]))
    assert doc.clock_offset_us == {}


def test_exposed_communication_is_split_into_wait_and_transfer() -> None:
    """Rank 0 arrives at 100 and leaves at 180, rank 1 arrives at 150: 50 of its 80 µs are waiting."""
    doc = run(rank(0, [dp(100, 80)], step=(0, 200)), rank(1, [dp(150, 30)], step=(0, 200)))
    first, second = (r.steps[0] for r in doc.ranks)
    assert (first.wait_us, first.transfer_us) == (50, 30)
    assert (second.wait_us, second.transfer_us) == (0, 30)
    assert first.parts_us is not None
    assert first.parts_us.communication == 80


def test_a_rank_that_is_absent_is_listed_and_takes_the_best_grade_away() -> None:
    doc = run(rank(0, [dp(0, 10)], world=3), rank(1, [dp(0, 10)], world=3))
    assert doc.missing_ranks == [2]
    assert all(r.grade != "complete" for r in doc.ranks)


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50), st.integers(1, 40)), min_size=3, max_size=8),
    st.integers(-5_000, 5_000).filter(lambda d: abs(d) > 500),
)
def test_any_offset_is_found_and_changes_no_wait(calls: list[tuple[int, int, int]], ahead: int) -> None:
    """Both ranks end together; whoever's clock is off, the waits are those of the true clock."""

    def ranks(offset: int) -> tuple[Timeline, Timeline]:
        ends = [10_000 + 1000 * i + max(a, b) + t for i, (a, b, t) in enumerate(calls)]
        starts = [[10_000 + 1000 * i + c[who] for i, c in enumerate(calls)] for who in (0, 1)]
        one, two = ([dp(s, e - s) for s, e in zip(st_, ends, strict=True)] for st_ in starts)
        return rank(0, one), rank(1, [(s + offset, d, args) for s, d, args in two])

    true, off = run(*ranks(0)), run(*ranks(ahead))
    assert off.clock_offset_us == {"1": ahead}
    assert off.collectives == true.collectives


def test_messages_and_collectives_of_one_group_are_numbered_apart() -> None:
    """The group's first message and its first all-reduce both carry Seq 1; rank 1 made them in the
    other order."""
    message = {"Process Group Name": "dp", "Process Group Ranks": "[0, 1]", "Collective name": "send"}
    doc = run(
        rank(0, [(0, 10, {**message, "Seq": 1}), dp(100, 10, Seq=1)]),
        rank(1, [dp(105, 5, Seq=1), (200, 10, {**message, "Seq": 1})]),
    )
    assert [(c.straggler, c.wait_us) for c in doc.collectives] == [
        (1, {"0": 200, "1": 0}),
        (1, {"0": 5, "1": 0}),
    ]


def test_each_collective_counts_once_for_the_clock_of_a_host() -> None:
    """Ends of b's ranks 2 and 3 against those of a's 0 and 1, which are 100 + 1000 i: 500 and 520 ahead
    in two collectives (middle 510), 600 and 620 in a third (610): the median of 510, 510, 610 is 510."""
    members = {"Process Group Name": "all"}

    def calls(*ends: float) -> list[Call]:
        return [(1000 * i, 100 + ahead, members) for i, ahead in enumerate(ends)]

    doc = run(
        rank(0, calls(0, 0, 0), world=4, host="a"),
        rank(1, calls(0, 0, 0), world=4, host="a"),
        rank(2, calls(500, 500, 600), world=4, host="b"),
        rank(3, calls(520, 520, 620), world=4, host="b"),
    )
    assert doc.clock_offset_us == {"2": 510, "3": 510}


def test_a_host_that_is_called_like_a_rank_has_its_own_clock() -> None:
    members = {"Process Group Name": "all"}
    doc = run(
        rank(0, [(1000, 100, members)], world=3),
        rank(1, [(1000, 200, members)], world=3),
        rank(2, [(1000, 400, members)], world=3, host="rank 1"),
    )
    assert doc.clock_offset_us == {"1": 100, "2": 300}


def test_clocks_that_are_decades_apart_lose_no_nanosecond() -> None:
    """Rank 1 counts from the epoch, rank 0 from 0: 1.7e9 s and 7 ns apart."""
    ahead = 1_700_000_000 * 10**9 + 7
    doc = run(
        rank(0, [dp(1000 * i, 100) for i in (1, 2)]),
        timeline_at(ahead, rank(1, [dp(1000 * i + i, 100 - i) for i in (1, 2)])),
    )
    assert doc.clock_offset_us == {"1": ahead / 1000}
    assert doc.flags[0].detail == "rank 1 +1,700,000,000,000,000 us"
    assert [c.wait_us for c in doc.collectives] == [{"0": 1, "1": 0}, {"0": 2, "1": 0}]


def timeline_at(base_ns: int, timeline: Timeline) -> Timeline:
    """The same recording, whose clock stands at ``base_ns``."""
    return replace(timeline, meta=replace(timeline.meta, base_ns=base_ns))


@pytest.mark.parametrize("base_ns", [2**63 - 1, 2**62])
def test_a_clock_beyond_all_reason_ends_in_an_answer(base_ns: int) -> None:
    far = timeline_at(base_ns, rank(1, [dp(0, 10), dp(9e12, 10)]))
    doc = run(rank(0, [dp(-9e12, 10), dp(0, 10)]), far)
    assert len(doc.collectives) == 2


def test_long_lists_are_cut() -> None:
    doc = run(rank(0, [dp(0, 10)], world=100), rank(60, [dp(0, 10)], world=100))
    [missing] = doc.flags
    assert missing.detail.endswith("49, 50, and 48 more] of 100")
    assert len(doc.missing_ranks) == missing.count == 98


def test_numbers_beyond_int64_are_none() -> None:
    doc = run(rank(0, [dp(0, 10, Seq=2**70)]), rank(1, [dp(3, 7, Seq=1)]))
    [c] = doc.collectives
    assert c.wait_us == {"0": 3, "1": 0}


def test_groups_of_one_rank_are_no_collectives() -> None:
    alone = {"Process Group Name": "alone"}
    doc = run(rank(0, [(0, 10, alone), dp(20, 10)]), rank(1, [dp(20, 10)]))
    assert [c.group for c in doc.collectives] == ["dp [0, 1]"]
    assert doc.flags == []


def test_a_result_travels_as_bytes() -> None:
    s = Stages(rank(1, [dp(100, 80, Seq=4)], step=(0, 200)), Options())
    result = analyse_rank(s)
    back = decode(encode(result))
    assert back.rank == result.rank
    assert (back.source, back.world_size, back.base_ns, back.facts) == ("drawn.json", 2, 0, result.facts)
    for kept, want in ((back.calls, result.calls), (back.exposed, result.exposed)):
        for name in want.__slots__:
            assert list(getattr(kept, name)) == list(getattr(want, name))
    assert (back.calls.seq.tolist(), back.calls.start.tolist()) == ([4], [100_000])
    assert (back.exposed.start.tolist(), back.exposed.step_end.tolist()) == ([100_000], [200_000])


def test_steps_that_were_inferred_are_split_too() -> None:
    """Steps end with the optimizer's calls, at 10, 110 and 210; rank 0 waits from 30 to 50 in the first."""

    def with_optimizer(number: int, calls: list[Call]) -> Timeline:
        marks = [
            {"ph": "X", "cat": "user_annotation", "name": "Optimizer.step#SGD.step", "pid": 9, "tid": 9,
             "ts": ts, "dur": 10}
            for ts in (0, 100, 200)
        ]  # fmt: skip
        kernels = [
            {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce", "pid": 0, "tid": 20, "ts": ts,
             "dur": dur, "args": {"device": 0, "stream": 20, **args}}
            for ts, dur, args in calls
        ]  # fmt: skip
        return timeline_from_events([*marks, *kernels], distributedInfo={"rank": number, "world_size": 2})

    doc = run(with_optimizer(0, [dp(30, 50), dp(150, 10)]), with_optimizer(1, [dp(50, 30), dp(150, 10)]))
    assert [[(s.wait_us, s.transfer_us) for s in r.inferred_steps] for r in doc.ranks] == [
        [(20, 30), (0, 10)],
        [(0, 30), (0, 10)],
    ]
