"""What-if of several ranks: a step is that of the slowest, and waiting is no transfer."""

from __future__ import annotations

import pytest

from rooflight import Scenario, whatif
from rooflight.analysis import analyze_files
from rooflight.errors import Malformed
from rooflight.hardware import ceilings, find
from rooflight.protocol import DeviceFigures, Document, Kernel, Parts, Rank, Step
from rooflight.scenarios.model import Range, exactly
from rooflight.scenarios.target import roofs_of
from rooflight.scenarios.world import MOST_RANKS, RankStep, together, without_waiting
from tests.shared import traces_dir


def rank(
    number: int, compute: float, communication: float, wait: float | None, *, input_: float = 0.0
) -> Rank:
    """One step of a H100 with so many µs of a matrix product at its roof, of exposed communication, of which
    so much is waiting, and of waiting for input."""
    gpu = find("h100-sxm")
    assert gpu is not None
    parts = Parts(compute=compute, communication=communication, input=input_)
    wall = compute + communication + input_
    roofs = ceilings(gpu)
    peak = roofs.compute["bf16"].practical or 0.0
    product = Kernel(
        name="gemm", op="aten::mm", time_us=compute, p50_us=compute, flops=round(peak * compute / 1e6),
        bytes=1, dtype="bf16", matrix=True, regime="compute", origin="modelled", bound_us=compute,
    )  # fmt: skip
    reduce = Kernel(name="nccl", time_us=communication, regime="communication")
    device = DeviceFigures(
        name="H100", n_gpu_events=2, kernels=2, span_us=wall, busy_us=wall, idle_us=0, busy_pct=100,
        kernel_sum_us=wall, compute_us=compute, comm_us=communication, mem_us=0,
        exposed_comm_us=communication, overlap_pct=0, exposed_mem_us=0, unlinked_kernels=0, unlinked_us=0,
    )  # fmt: skip
    step = Step(n=1, step_time_us=wall, device="0", parts_us=parts, wait_us=wait)
    return Rank(
        rank=number, grade="complete", devices={"0": device}, roofs={"0": roofs}, kernels=[product, reduce],
        steps=[step], parts_us={"0": parts},
    )  # fmt: skip


def run(*ranks: Rank) -> Document:
    return Document(schema_version=1, source="run", ranks=list(ranks))


def step(document: Document, gpu: str | None = None, **scenario: bool) -> Range:
    found = whatif(document, gpu, Scenario(**scenario)).step_time_us  # type: ignore[arg-type]
    assert found is not None
    return found


#: Rank 1 computes 900 of 1000 µs, rank 0 400: it waits 500 in the all-reduce of 100.
UNEVEN = (rank(0, 400, 600, 500), rank(1, 900, 100, 0))


def test_two_steps_of_one_number_are_two() -> None:
    """30 and 10 µs on the first rank, 20 and 40 on the other: the first takes 30, the second 40."""
    first, other = (
        [RankStep(3, t, 0.0, exactly(t)) for t in times] for times in ((30.0, 10.0), (20.0, 40.0))
    )
    assert [s.predicted_us for s in together([first, other])] == [exactly(30.0), exactly(40.0)]
    assert [s.recorded_us for s in together([first])] == [30.0, 10.0]


def test_unchanged_a_step_is_as_recorded() -> None:
    w = whatif(run(*UNEVEN))
    assert (w.recorded_step_time_us, w.step_time_us, w.ranks) == (1000, exactly(1000), 2)


def test_the_slowest_rank_is_moved_not_the_first() -> None:
    """Rank 1's 900 µs at the roof take the ratio of the roofs; the all-reduce of 100 somewhat more or less,
    and rank 0's waiting is gone with the reason for it."""
    r, n = (
        _rate("h100-sxm") / _rate("a100-sxm4-80"),
        (roofs_of("h100-sxm").link.practical or 0) / (roofs_of("a100-sxm4-80").link.practical or 1),  # type: ignore[union-attr]
    )
    found = step(run(*UNEVEN), "a100-sxm4-80")
    assert found.mid == pytest.approx(900 * r + 100 * n**0.5, abs=0.01)
    assert found.high == pytest.approx(900 * r * 1.15 + 100 * n, abs=0.01)


def _rate(gpu: str) -> float:
    return roofs_of(gpu).compute["bf16"].practical or 0.0


def test_waiting_does_not_scale_with_the_link() -> None:
    """Alone, rank 0 still waits its 500 µs on the other device."""
    r = _rate("h100-sxm") / _rate("a100-sxm4-80")
    n = (roofs_of("h100-sxm").link.practical or 0) / (roofs_of("a100-sxm4-80").link.practical or 1)  # type: ignore[union-attr]
    found = step(run(UNEVEN[0]), "a100-sxm4-80")
    assert found.mid == pytest.approx(400 * r + 100 * n**0.5 + 500, abs=0.01)


def test_overlapped_the_slowest_rank_still_computes() -> None:
    """Rank 1 hides its 100 behind 900, rank 0 its 100 behind 400: the step is 900."""
    assert step(run(*UNEVEN), overlapped=True) == exactly(900)


def test_another_rank_may_set_the_pace_then() -> None:
    """Rank 0 waits for input for 700 of its 1000 and computes 300; rank 1 computes 900.  Without waiting for
    input the step is rank 1's."""
    document = run(rank(0, 300, 0, 0, input_=700), rank(1, 900, 100, 100))
    assert step(document, input_ready=True) == exactly(900)


def test_what_ranks_wait_in_turns_stays() -> None:
    """Each computes 600 and waits 300 of its 1000 for the other, and transfers 100: 700 of its own, and 300
    that nothing explains.  Overlapped the 100 go."""
    document = run(rank(0, 600, 400, 300), rank(1, 600, 400, 300))
    assert step(document) == exactly(1000)
    assert step(document, overlapped=True) == exactly(900)


def test_waiting_that_is_not_known_is_none() -> None:
    assert step(run(rank(0, 400, 600, None), rank(1, 900, 50, None))) == exactly(1000)


def test_steps_of_one_number_go_together() -> None:
    steps = [
        [RankStep(1, 10, 0, exactly(10)), RankStep(2, 20, 0, exactly(20))],
        [RankStep(2, 25, 5, exactly(18)), RankStep(3, 99, 0, exactly(99))],
    ]
    # 25 as recorded, of which 20 are somebody's own: 5 stay.
    assert [(s.n, s.recorded_us, s.predicted_us) for s in together(steps)] == [
        (1, 10, exactly(10)),
        (2, 25, exactly(25)),
    ]
    assert together([]) == []


def test_no_more_waits_than_communicates() -> None:
    assert without_waiting(Parts(compute=1, communication=5), 9) == (Parts(compute=1), 5)
    assert without_waiting(Parts(communication=5), None) == (Parts(communication=5), 0)


def test_of_many_ranks_those_with_most_to_do_are_moved() -> None:
    """The last of twenty is the slowest."""
    many = [rank(i, 100 + i, 0, 0) for i in range(20)]
    w = whatif(run(*many))
    assert w.ranks == MOST_RANKS
    assert w.step_time_us == exactly(119)
    assert len([a for a in w.assumptions if a.startswith("A step takes as long as the rank")]) == 1


def test_ranks_without_gpu_work_are_left_out() -> None:
    w = whatif(run(UNEVEN[1], Rank(rank=2, grade="usable")))
    assert (w.ranks, w.step_time_us) == (1, exactly(1000))


def test_times_of_any_rank_that_cannot_be_are_refused() -> None:
    bad = rank(1, 100, 0, 0)
    bad.steps[0].step_time_us = -1.0
    with pytest.raises(Malformed):
        whatif(run(rank(0, 100, 0, 0), bad))


@pytest.mark.traces
def test_eight_ranks_overlapped() -> None:
    """Each rank of DLRM: its step less its waiting, and less its transfer as far as kernels that hide none
    yet are long enough; the largest of these, and what even the busiest waited."""
    document = analyze_files(sorted((traces_dir() / "dlrm_8ranks").glob("*.json")), jobs=1).document
    own, left, walls = [], [], []
    for r in document.ranks:
        [s], [d] = r.steps, r.devices.values()
        assert s.parts_us is not None
        assert s.wait_us is not None
        kernels = s.parts_us.compute + s.parts_us.memory + s.parts_us.latency + s.parts_us.unknown
        free = 1 - (d.comm_us - d.exposed_comm_us) / d.compute_us
        transfer = s.parts_us.communication - s.wait_us
        walls.append(s.step_time_us)
        own.append(s.step_time_us - s.wait_us)
        left.append(own[-1] - min(transfer, kernels * free))
    w = whatif(document, None, Scenario(overlapped=True))
    assert w.step_time_us is not None
    assert w.step_time_us.mid == pytest.approx(max(left) + max(walls) - max(own), abs=0.01)
    assert w.recorded_step_time_us == max(walls)
