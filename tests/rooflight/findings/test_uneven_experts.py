"""All-to-alls that give some ranks more than their share."""

from __future__ import annotations

from typing import Any

import pytest

from rooflight import analyze
from rooflight.protocol import Finding
from rooflight.trace.timeline import Timeline
from tests.recording import Recording

SEND = "ncclDevKernel_SendRecv"


def exchange(received: int, **more: Any) -> dict[str, Any]:
    """Args of an all-to-all of two ranks in which this one sends 1,000 floats and receives so many."""
    return {
        "Collective name": "all_to_allv",
        "dtype": "Float",
        "Group size": 2,
        "In msg nelems": 1000,
        "Out msg nelems": received,
        "Process Group Name": "ep",
        "Process Group Ranks": "[0, 1]",
    } | more


def ranks(shares: list[tuple[int, int]], *, late: int | None = 1, **more: Any) -> list[Timeline]:
    """Two ranks whose all-to-alls, one in every 200 µs of a step of 1000, give them so many floats each.  All
    end 150 after they began; in every second one the late rank arrives 100 after the other."""
    found = []
    for r in (0, 1):
        scene = Recording().step(1, 0, 1000)
        for i, share in enumerate(shares):
            behind = 100 * (i % 2 == 1 and r == late)
            at = 200 * i + behind
            scene.kernel(SEND, at, at, 150 - behind, stream=20, **exchange(share[r], **more))
        found.append(scene.timeline(distributedInfo={"rank": r, "world_size": 2}))
    return found


def uneven(timelines: list[Timeline]) -> list[Finding | None]:
    """The finding of each rank."""
    document = analyze(timelines).document
    return [next((f for f in r.findings if f.code == "uneven-experts"), None) for r in document.ranks]


def test_the_largest_share_sets_the_pace() -> None:
    """Shares of 500 and 1,500 floats: 1.5 times the mean, four times.  A mean share takes 1/1.5 of the
    transfer: of 150, 50, 150 and 50 µs, a third, 133.333, goes.  Rank 0 waits twice 100 for rank 1, which
    received most before: 333.333."""
    waiting, heavy = uneven(ranks([(500, 1500)] * 4))
    assert waiting is not None
    assert waiting.saving_us == pytest.approx(333.333, abs=0.001)
    assert [e.text for e in waiting.evidence] == [
        (
            "in 4 of 4 all-to-alls the largest share is 1.50 times the mean, most often for rank 1 (4 "
            "times); 0.133 ms per step of transfer and 0.2 ms per step of waiting rest on it"
        )
    ]
    assert waiting.assumption == "every rank gets the mean share"
    assert heavy is not None, "its transfers are as long"
    assert heavy.saving_us == pytest.approx(133.333, abs=0.001)


def test_waiting_for_a_rank_that_had_less_is_not_the_shares_doing() -> None:
    """Rank 0 is the late one, rank 1 has the largest share: only the transfer counts."""
    first, other = uneven(ranks([(500, 1500)] * 4, late=0))
    assert first is not None
    assert other is not None
    assert first.saving_us == other.saving_us == pytest.approx(133.333, abs=0.001)


@pytest.mark.parametrize(
    "shares",
    [[(760, 1240)] * 4, [(500, 1500)] * 3, [(1000, 1000)] * 5, [(0, 0)] * 4],
    ids=["1.24 times the mean", "three", "even", "nothing"],
)
def test_nearly_even_or_seldom_is_no_finding(shares: list[tuple[int, int]]) -> None:
    assert uneven(ranks(shares)) == [None, None]


def test_exactly_a_quarter_over_the_mean_is_one() -> None:
    assert None not in uneven(ranks([(750, 1250)] * 4))


def test_other_collectives_share_nothing_out() -> None:
    gathers = ranks([(500, 1500)] * 4, **{"Collective name": "allgather"})
    assert uneven(gathers) == [None, None]


def test_of_unknown_type_the_shares_are_unknown() -> None:
    assert uneven(ranks([(500, 1500)] * 4, dtype="unheard of")) == [None, None]


def alone(split: str, n: int = 4) -> Finding | None:
    """One rank with ``n`` all-to-alls of 100 µs each in a step of 1000."""
    scene = Recording().step(1, 0, 1000)
    for i in range(n):
        args = exchange(1000, **{"In split size": split, "Out split size": "[500, 500]"})
        scene.kernel(SEND, 200 * i, 200 * i, 100, stream=20, **args)
    [found] = uneven([scene.timeline(distributedInfo={"rank": 0, "world_size": 2})])
    return found


def test_a_rank_alone_is_judged_by_its_own_splits() -> None:
    """900 of a mean of 500 are 1.8 times it: of 4 x 100 µs 1 - 1/1.8 goes, 177.778."""
    found = alone("[100, 900]")
    assert found is not None
    assert found.saving_us == pytest.approx(177.778, abs=0.001)
    assert "1.80 times the mean; 0.178 ms per step of transfer and 0 ms" in found.evidence[0].text
    assert found.assumption.endswith("the others send in the proportions of this one")


@pytest.mark.parametrize("split", ["[400, 600]", "[500, 500]", "[]", "[100, 900, ...]", "nonsense"])
def test_even_or_unknown_splits_are_no_finding(split: str) -> None:
    """600 of a mean of 500 are 1.2 times it."""
    assert alone(split) is None


def test_three_of_a_rank_alone_are_too_few() -> None:
    assert alone("[100, 900]", 3) is None


def test_grouped_products_are_told_beside_it() -> None:
    """Rank 1 computes 60 µs, rank 0 20: 1.5 times the mean of 40."""
    found = []
    for r, dur in ((0, 20), (1, 60)):
        scene = Recording().step(1, 0, 1000)
        for i in range(4):
            share = exchange((500, 1500)[r])
            scene.kernel(SEND, 200 * i, 200 * i, 100, stream=20, **share)
        scene.op("aten::_grouped_mm", 110, [[8, 8], [2, 8, 8]]).kernel("grouped_gemm", 111, 120, dur)
        found.append(scene.timeline(distributedInfo={"rank": r, "world_size": 2}))
    finding, _ = uneven(found)
    assert finding is not None
    assert finding.evidence[1].text == (
        "grouped products take the slowest rank 1.50 times the mean of the ranks"
    )
