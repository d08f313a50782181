"""The total over findings: the time that those with a saving speak of, each instant once (§18)."""

from __future__ import annotations

from copy import deepcopy

from hypothesis import given, settings
from hypothesis import strategies as st

from rooflight import analyze
from rooflight.analysis import Options, combine
from rooflight.protocol import Rank
from rooflight.results.rank import analyse_rank
from rooflight.results.result import decode, encode
from rooflight.results.stages import Stages
from rooflight.trace.timeline import Timeline
from tests.identities import broken
from tests.recording import Recording

ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>"
ALONE = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def test_two_findings_of_the_same_time_count_it_once() -> None:
    """The device waits 300 of 1000 for input, of which two rules speak: 300 and not 600.  100 of copies that
    nothing hides, 50 of them from pageable memory, are other instants: 400 in all."""
    scene = Recording().step(0, 0, 1000).host(ALONE, 0, 300, cat="user_annotation")
    scene.gpu("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", 300, 300, 50, bytes=64)
    scene.gpu("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 300, 350, 50, bytes=64)
    rank = scene.kernel("gemm", 310, 400, 600).rank()
    savings = {f.code: f.saving_us for f in rank.findings if f.saving_us is not None}
    assert savings == {
        "input-starved": 300,
        "dataloader-workers": 300,
        "exposed-copies": 100,
        "pageable-copies": 50,
    }
    assert rank.findings_total_us == 400


def test_without_a_saving_there_is_no_total() -> None:
    assert Recording().kernel("gemm", 0, 1, 100).rank().findings_total_us is None


@st.composite
def recordings(draw: st.DrawFn) -> Recording:
    """Steps with waits, small and large kernels, copies and calls that wait, at any times."""
    scene, at = Recording(), 0.0
    for n in range(draw(st.integers(0, 6))):
        length = draw(st.integers(50, 400))
        scene.step(n, at, length)
        for _ in range(draw(st.integers(1, 6))):
            start, dur = at + draw(st.integers(0, length - 1)), draw(st.integers(0, 150))
            kind = draw(st.sampled_from(["add", "copy", "wait", "item", "memset", "nccl"]))
            if kind == "add":
                elements = draw(st.sampled_from([64, 1 << 20]))
                scene.op("aten::add", start, [[elements], [elements], []]).kernel(
                    ADD, start + 1, start + 2, dur
                )
            elif kind == "copy":
                name = "Memcpy HtoD (Pageable -> Device)"
                scene.gpu("gpu_memcpy", name, start, start + 1, dur, stream=9, bytes=64)
            elif kind == "memset":
                scene.gpu("gpu_memset", "Memset (Device)", start, start + 1, dur, stream=9, bytes=64)
            elif kind == "nccl":
                scene.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", start, start + 1, dur, stream=20)
            else:
                scene.host({"wait": ALONE, "item": "aten::item"}[kind], start, dur)
        at += length + draw(st.integers(0, 50))
    return scene.kernel("gemm", at, at + 1, draw(st.integers(1, 50)))


@settings(max_examples=40, deadline=None)
@given(recordings())
def test_the_total_lies_between_the_largest_saving_and_the_wall(scene: Recording) -> None:
    rank = scene.rank()
    savings = [f.saving_us for f in rank.findings if f.saving_us is not None]
    total = rank.findings_total_us
    if not savings:
        assert total is None
        return
    assert total is not None
    # Rounded to the nanosecond each.
    assert max(savings) <= total + 0.001
    if rank.steps:
        # Steps do not overlap here.
        assert total <= sum(s.step_time_us for s in rank.steps) / len(rank.steps) + 0.001


# --- with the other ranks ------------------------------------------------------------------------------


def reduced(rank: int, scene: Recording, late: float, dur: float = 150, n: int = 4) -> Timeline:
    """``n`` all-reduces of two ranks from 300 on, one in every ``dur``, to which this rank comes so late."""
    group = {"Collective name": "allreduce", "Process Group Name": "dp", "Process Group Ranks": "[0, 1]"}
    for i in range(n):
        at = 300 + dur * i + late
        scene.kernel("ncclDevKernel_AllReduce_Sum_f32", at, at, dur - late, stream=20, **group)
    return scene.timeline(distributedInfo={"rank": rank, "world_size": 2})


def starved(computes: int = 0) -> Recording:
    """A step of 1000 whose first 300 wait for input, of which at their end this much is computed."""
    scene = Recording().step(0, 0, 1000).host(ALONE, 0, 300 - computes, cat="user_annotation")
    return scene.kernel("gemm", 300 - computes, 300 - computes, computes) if computes else scene


def savings(rank: Rank) -> dict[str, float]:
    return {f.code: f.saving_us for f in rank.findings if f.saving_us is not None}


def test_waiting_for_a_rank_is_other_time_than_waiting_for_input() -> None:
    """Rank 0 waits 300 for input and four times 100 for rank 1; nothing is left to run beside its
    communication.  300 + 400, and not the larger of them."""
    waiting, _ = analyze([reduced(0, starved(), 0), reduced(1, starved(), 100)]).document.ranks
    found = savings(waiting)
    assert "exposed-communication" not in found
    assert (found["input-starved"], found["straggler"]) == (300, 400)
    assert waiting.findings_total_us == 700


def test_what_is_waited_is_exposed_communication_already() -> None:
    """200 are computed, which could hide as much of the 600 that are exposed: all 600 are spoken of, and the
    400 of waiting are among them.  With 100 of input they are 700."""
    waiting, _ = analyze([reduced(0, starved(200), 0), reduced(1, starved(200), 100)]).document.ranks
    found = savings(waiting)
    assert (found["input-starved"], found["exposed-communication"], found["straggler"]) == (100, 200, 400)
    assert waiting.findings_total_us == 700


def test_without_steps_the_whole_recording_stands_for_one() -> None:
    """Four times 100 of the 900 from the first kernel to the last; they are among the 600 that are exposed,
    of which the 100 of the product could hide as much."""
    timelines = [reduced(r, Recording().kernel("gemm", 0, 0, 100), 100.0 * r) for r in (0, 1)]
    waiting, late = analyze(timelines).document.ranks
    assert savings(waiting) == {"straggler": 400, "exposed-communication": 100}
    assert waiting.findings_total_us == 600
    assert next(f for f in waiting.findings if f.code == "straggler").evidence[0].text == (
        "rank 1 came last in 4 of 4 collectives; 0.4 ms, 44 %, wait"
    )
    assert "straggler" not in savings(late)


def test_a_comparison_takes_what_an_earlier_one_added() -> None:
    """Once its other rank is gone, what the first waited for it is, too."""
    alone, other = (
        analyse_rank(Stages(reduced(r, starved(), 100.0 * r), Options(), None, ())) for r in (0, 1)
    )
    together = combine([alone, other]).ranks[0]
    assert together.findings_total_us == 700
    assert combine([decode(encode(alone))]).ranks[0].findings_total_us == 300


@settings(max_examples=40, deadline=None)
@given(recordings(), recordings(), st.integers(0, 149), st.integers(1, 8))
def test_with_the_other_rank_it_is_no_more_than_the_wall(
    first: Recording, second: Recording, late: int, n: int
) -> None:
    """And no less than what any one saves, nor than the total of the rank alone."""
    timelines = [reduced(0, first, 0, n=n), reduced(1, second, late, n=n)]
    alone = [analyze(deepcopy(t)).document.ranks[0].findings_total_us for t in timelines]
    document = analyze(timelines).document
    assert not broken(document)
    for rank, before in zip(document.ranks, alone, strict=True):
        assert (rank.findings_total_us or 0) >= (before or 0)
