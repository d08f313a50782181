"""Small messages, and a rank that the others wait for.  All times are us."""

from __future__ import annotations

from typing import Any

import pytest

from rooflight import analyze
from rooflight.analysis import combine
from rooflight.protocol import Finding
from rooflight.results.rank import analyse_rank
from rooflight.results.stages import Options, Stages
from rooflight.trace.timeline import Timeline
from tests.recording import Recording

REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"


def shown(finding: Finding) -> str:
    return finding.evidence[0].text


COUNTS = ("In msg nelems", "Out msg nelems")


def reduced(n: int, elements: int, steps: int = 1, **more: Any) -> Recording:
    """``n`` all_reduces of so many floats in each step of 1000, 10 us each, 5 of them beside a kernel."""
    scene = Recording()
    for s in range(steps):
        at = 1000.0 * s
        scene.step(s, at, 1000)
        for i in range(n):
            message = {"Collective name": "allreduce", "dtype": "Float", "Group size": 8}
            message |= dict.fromkeys(COUNTS, elements) | more
            begin = at + 20 * i + 10
            scene.kernel(REDUCE, begin, begin, 10, stream=20, **message)
            scene.kernel("gemm", begin + 1, begin + 5, 10)
    return scene


def test_small_collectives() -> None:
    """Eight of 262,143 floats, 4 B under 1 MiB; each runs 5 us alone: 40 of each step of 1000."""
    found = reduced(8, (1 << 18) - 1, steps=2).findings()["small-collectives"]
    assert found.saving_us == 40
    assert shown(found) == "8 per step, the largest of 1,048,572 bytes; 0.04 ms per step, 4 %, only they run"


def test_each_launch_has_its_own_message() -> None:
    """Two of 4 MiB by the same kernel, after eight of 4 KiB."""
    scene = reduced(8, 1 << 10)
    message = {"Collective name": "allreduce", "dtype": "Float", "Group size": 8}
    for at in (500, 600):
        scene.kernel(REDUCE, at, at, 50, stream=20, **message | dict.fromkeys(COUNTS, 1 << 20))
    found = scene.findings()["small-collectives"]
    assert shown(found) == "8 per step, the largest of 4,096 bytes; 0.04 ms per step, 4 %, only they run"


@pytest.mark.parametrize(
    "scene",
    [
        reduced(8, 1 << 18),  # 1 MiB each
        reduced(7, 1 << 10),  # seven
        reduced(8, 0),  # barriers carry nothing
        reduced(8, 1 << 10, dtype="unheard of"),  # of unknown size
    ],
    ids=["large", "few", "empty", "unknown"],
)
def test_no_small_collectives(scene: Recording) -> None:
    assert "exposed-communication" in scene.findings()
    assert "small-collectives" not in scene.findings()


def arrivals(*late: int) -> list[Timeline]:
    """Two ranks and a collective in every 200 us of a step of 1000, which ends at the same time for both; the
    late one of each arrives 100 after the other and takes 50."""
    ranks = []
    for number in (0, 1):
        scene = Recording().step(1, 0, 1000)
        for i, who in enumerate(late):
            behind = 100 * (who == number)
            group = {
                "Collective name": "allreduce",
                "Process Group Name": "dp",
                "Process Group Ranks": "[0, 1]",
            }
            begin = 200 * i + behind
            scene.kernel(REDUCE, begin, begin, 150 - behind, stream=20, **group)
        ranks.append(scene.timeline(distributedInfo={"rank": number, "world_size": 2}))
    return ranks


def stragglers(*late: int) -> list[Finding | None]:
    """The finding of each rank."""
    document = analyze(arrivals(*late)).document
    return [next((f for f in r.findings if f.code == "straggler"), None) for r in document.ranks]


def test_straggler() -> None:
    """Rank 1 is late three times of four: rank 0 waits 3 x 100 of 1000.  Rank 1 waits for nobody else's sake:
    its own 100 are no finding."""
    waiting, late = stragglers(1, 1, 0, 1)
    assert waiting is not None
    assert waiting.saving_us == 300
    assert shown(waiting) == "rank 1 came last in 3 of 4 collectives; 0.3 ms per step, 30 %, wait"
    assert waiting.evidence[0].steps == [1]
    assert late is None


@pytest.mark.parametrize("late", [(1, 1, 0, 0), (1, 1, 1)], ids=["half", "few"])
def test_no_straggler(late: tuple[int, ...]) -> None:
    assert stragglers(*late) == [None, None]


def test_ranks_that_come_together_are_not_late() -> None:
    """Three all_reduces begin together, for two rank 1 is 100 late: 2 of 5 are no straggler, though rank 0 is
    the lowest of those that came last in the other three."""
    assert stragglers(2, 2, 2, 1, 1) == [None, None]


def test_only_what_is_waited_for_the_straggler_would_go() -> None:
    """Rank 0 waits three times for rank 1 and rank 1 twice for rank 0: each saves its own."""
    waiting, late = stragglers(1, 1, 1, 0, 0)
    assert waiting is not None
    assert waiting.saving_us == 300
    assert late is None, "two of five"


def test_a_run_that_is_compared_again_says_it_once_and_a_rank_alone_does_not() -> None:
    results = [analyse_rank(Stages(t, Options())) for t in arrivals(1, 1, 1, 1)]
    codes = [
        [f.code for f in combine(several).ranks[0].findings] for several in (results, results, results[:1])
    ]
    assert [found.count("straggler") for found in codes] == [1, 1, 0]
