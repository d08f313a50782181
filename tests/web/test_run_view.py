"""What the Run page shows of a document: the arithmetic of its headline."""

from __future__ import annotations

import pytest

from app.pages.kernel_view import kernel_rows
from app.pages.run_view import ROWS_OF_STEPS, run_view
from app.pages.steps import step_time
from rooflight.protocol import Ceiling, Coverage, Cpu, CpuStep, Flag, Kernel, Parts, Roofs
from tests.factories import a_document, a_rank, a_step


def test_the_headline_is_that_of_the_mean_step() -> None:
    document = a_document(steps=6)
    v = run_view(document)
    assert v.wall_us == pytest.approx(174_800.0)
    assert v.attainable_us == 68_400.0
    assert v.step_time.p50 == 174_800.0
    assert v.regime == "input"
    assert v.verdict.us == 58_700.0
    assert v.verdict.share_pct == pytest.approx(33.58, abs=0.005)  # 58.7 / 174.8
    assert "58.7\u00a0ms of 174.8\u00a0ms" in v.verdict.text
    assert v.second == ("compute", 40_000.0)  # latency: 20 + 3.3 launch + 12.2 dispatch = 35.5
    assert v.agreeing == 6


def test_parts_are_means_over_the_steps() -> None:
    document = a_document(steps=2)
    first, second = document.ranks[0].steps
    assert first.parts_us
    assert second.parts_us
    first.parts_us.input, second.parts_us.input = 10_000.0, 30_000.0
    assert run_view(document).parts["input"] == 20_000.0


def test_a_chosen_step_has_its_own_waterfall() -> None:
    document = a_document(steps=3)
    step = document.ranks[0].steps[1]
    assert step.parts_us
    step.parts_us.input, step.regime = 0.0, "memory"
    v = run_view(document, step_n=6)
    assert v.parts["input"] == 0.0
    assert v.wall_us == pytest.approx(174_800.0 - 58_700.0)
    assert v.regime == "memory"
    assert v.basis == "step 6"
    assert [s.n for s in v.steps if s.selected] == [6]


def test_no_such_rank_or_step() -> None:
    with pytest.raises(KeyError, match="rank 7"):
        run_view(a_document(), 7)
    with pytest.raises(KeyError, match="step 99"):
        run_view(a_document(), 0, 99)


def test_tails_of_four_steps_are_not_known() -> None:
    few = step_time([1.0, 2.0, 3.0, 4.0])
    assert (few.p50, few.p95, few.p99) == (2.5, None, None)
    enough = step_time([1.0, 2.0, 3.0, 4.0, 5.0])
    assert enough.p95 == pytest.approx(4.8)  # 1 + 0.95 x 4


def test_steps_differ_from_the_median_by() -> None:
    document = a_document(steps=3)
    document.ranks[0].steps[2].step_time_us = 349_600.0  # twice the others
    assert [s.vs_p50 for s in run_view(document).steps] == ["0", "0", "+100"]


def test_without_steps_the_whole_recording_is_shown() -> None:
    document = a_document()
    rank = document.ranks[0]
    rank.steps, rank.n_steps, rank.parts_us = [], 0, {"0": Parts(memory=600.0, input=400.0)}
    v = run_view(document)
    assert v.basis == "whole recording"
    assert v.wall_us == 1_000.0
    assert v.attainable_us is None
    assert v.step_time.count == 0
    assert "in all" in v.verdict.text


def test_inferred_steps_say_so() -> None:
    document = a_document()
    rank = document.ranks[0]
    rank.inferred_steps, rank.steps = [a_step(1), a_step(2)], []
    v = run_view(document)
    assert v.inferred
    assert v.basis == "mean of 2 inferred steps"


@pytest.mark.parametrize(("unknown", "shown"), [(400.0, True), (600.0, False)])
def test_what_is_attainable_is_not_told_where_most_work_has_no_bound(unknown: float, shown: bool) -> None:
    """Of 1,000 µs in kernels 400 without a bound leave 600 that say something; of 600 the rest does not."""
    document = a_document(steps=1)
    step = document.ranks[0].steps[0]
    step.parts_us, step.attainable_us = Parts(memory=1_000.0 - unknown, unknown=unknown), 900.0
    v = run_view(document)
    assert v.unbounded_pct == pytest.approx(unknown / 10)
    assert (v.attainable_us is not None) is shown
    assert ("attainable" in [r.key for r in v.falls.rows]) is shown


def test_a_reason_of_a_cost_is_told_in_words() -> None:
    document = a_document(kernels=1)
    document.ranks[0].kernels[0].cost_reason = "as aten::add of the same kernel; aux_kernel"
    (row,) = run_view(document).rows
    assert row.cost_reason.startswith("as aten::add of the same kernel; a helper beside")


def test_a_withheld_verdict_gives_its_reason() -> None:
    document = a_document()
    rank = document.ranks[0]
    rank.regime, rank.verdict_withheld = None, "more than half of the steps hold no GPU work"
    v = run_view(document)
    assert v.verdict.regime is None
    assert v.verdict.text == "more than half of the steps hold no GPU work"


def test_a_recording_without_gpu_work_is_shown_over_its_cpu() -> None:
    document = a_document()
    rank = document.ranks[0]
    step = CpuStep(3, 1_000.0, Parts(compute=700.0, host=300.0), "compute", "high", None, 650.0)
    roof = Roofs(kind="cpu", name="EPYC", compute={"fp32": Ceiling(None, 1e12, "measured")})
    op = Kernel(
        name="aten::mm",
        count=2,
        time_us=700.0,
        flops=10**9,
        bytes=10**6,
        dtype="fp32",
        origin="modelled",
        achieved_tflops=0.0014,
    )
    rank.cpu = Cpu(roof, [step], [op], name="EPYC 7B13", regime="compute", regime_confidence="high")
    rank.devices, rank.steps, rank.kernels = {}, [], []
    v = run_view(document)
    assert v.cpu
    assert v.device_name == "EPYC 7B13"
    assert v.kernels == [op]
    assert v.origins == [("measured", 0.0), ("modelled", 100.0), ("inferred", 0.0), ("unknown", 0.0)]
    assert v.rows[0].flops.text == "1.40"  # GFLOP/s: 0.0014 TFLOP/s
    assert v.parts["host"] == 300.0
    assert v.attainable_us == 650.0
    assert v.regime == "compute"
    assert [r.name for r in v.roof_rows] == ["fp32"]
    assert "launch" not in [r.key for r in v.falls.rows]  # only a GPU has that
    assert "input" in [r.key for r in v.falls.rows]


def test_rows_are_the_longest_first_and_keep_their_place_in_the_document() -> None:
    document = a_document(kernels=3)
    a, b, c = document.ranks[0].kernels
    a.time_us, b.time_us, c.time_us = 1.0, 3.0, 2.0
    v = run_view(document)
    assert [r.index for r in v.rows] == [1, 2, 0]
    assert [r.bar_pct for r in v.rows] == pytest.approx([100, 200 / 3, 100 / 3])


def test_an_unknown_number_is_a_dash_with_its_reason() -> None:
    document = a_document(kernels=4)
    unknown = next(r for r in run_view(document).rows if r.regime == "unknown")
    assert unknown.roof.text == unknown.flops.text == unknown.ai.text == "–"
    assert unknown.roof.value is None
    assert unknown.roof.why


def test_more_than_a_screen_of_steps_is_counted() -> None:
    v = run_view(a_document(steps=450))
    assert v.n_steps == 450
    assert len(v.steps) == 400
    assert len(v.steps) > ROWS_OF_STEPS


def test_coverage_lies_side_by_side() -> None:
    document = a_document()
    document.ranks[0].coverage = Coverage(measured=10.0, modelled=60.0, inferred=20.0, unknown=10.0)
    v = run_view(document)
    assert v.coverage_bar == [
        ("measured", 0.0, 10.0),
        ("modelled", 10.0, 60.0),
        ("inferred", 70.0, 20.0),
        ("unknown", 90.0, 10.0),
    ]
    assert v.costed_pct == 90.0


def test_ranks_stand_on_one_axis() -> None:
    import random

    document = a_document()
    document.ranks = [a_rank(kernels=3, steps=4, rng=random.Random(i)) for i in range(2)]
    document.ranks[1].rank = 5
    for step in document.ranks[1].steps:
        assert step.parts_us
        step.parts_us.input = 0.0
    v = run_view(document, 5)
    assert [r.rank for r in v.ranks if r.selected] == [5]
    ends = [r.pieces[-1].x + r.pieces[-1].w for r in v.ranks]
    assert ends == pytest.approx([100.0, 100 * (174.8 - 58.7) / 174.8])


def test_flags_of_the_run_and_of_the_rank_are_both_shown() -> None:
    document = a_document()
    document.flags = [Flag("missing_ranks", 2, "1, 3")]
    assert [f.code for f in run_view(document).flags] == ["missing_ranks", "rank_assumed"]


def test_exposed_communication_tells_wait_from_transfer() -> None:
    document = a_document(steps=2)
    for step, wait in zip(document.ranks[0].steps, (1_000.0, 3_000.0), strict=True):
        assert step.parts_us
        step.parts_us.communication, step.wait_us, step.transfer_us = 6_000.0, wait, 6_000.0 - wait
    row = next(r for r in run_view(document).falls.rows if r.key == "communication")
    assert row.us == 6_000.0
    assert (
        "2.0\u00a0ms wait for the last rank and 4.0\u00a0ms transfer" in row.meaning
    )  # (1 + 3) / 2, (5 + 3) / 2


def test_work_without_any_bound_has_no_attainable_time() -> None:
    document = a_document(steps=2)
    for step in document.ranks[0].steps:
        step.parts_us = Parts(unknown=90_000.0, host=10_000.0)
        step.attainable_us = 90_000.0
    v = run_view(document)
    assert v.unbounded_pct == 100.0
    assert v.attainable_us is None
    assert "attainable" not in [r.key for r in v.falls.rows]


def test_the_share_of_work_without_a_bound() -> None:
    v = run_view(a_document())
    assert v.unbounded_pct == pytest.approx(5.263, abs=0.001)  # 5 of 40 + 30 + 20 + 5
    assert v.attainable_us == 68_400.0


def test_a_sliver_with_a_bound_does_not_make_the_rest_attained() -> None:
    """899 of 900 ms without a bound are 99.9 %, shown as 100: no attainable time either."""
    document = a_document(steps=1)
    step = document.ranks[0].steps[0]
    step.parts_us, step.attainable_us = Parts(unknown=899_000.0, memory=1_000.0, host=9_000.0), 899_900.0
    assert run_view(document).attainable_us is None


def test_above_the_roof_counts_no_copies() -> None:
    """Copies are not on the chart, and the flag of the analysis counts kernels."""
    document = a_document(kernels=3)
    kernels = document.ranks[0].kernels
    kernels[0].above_peak = kernels[1].above_peak = True
    kernels[1].kind = "memset"
    assert run_view(document).n_above == 1


def test_a_bound_of_nothing_is_no_share_of_a_roof() -> None:
    document = a_document(kernels=1)
    document.ranks[0].kernels[0].roof_fraction = 0.0
    roof = run_view(document).rows[0].roof
    assert (roof.text, roof.value) == ("–", None)
    assert roof.why


def test_ops_of_a_cpu_are_told_apart_by_their_shapes() -> None:
    rows = kernel_rows(
        [
            Kernel(name="aten::mm", op="aten::mm", time_us=t, input_dims=d)
            for t, d in ((2.0, "[[4, 4]]"), (1.0, None))
        ],
        cpu=True,
    )
    assert [r.op for r in rows] == ["[[4, 4]]", "no shapes were recorded"]


def test_the_legend_names_only_the_roofs_that_are_known() -> None:
    document = a_document()
    assert (run_view(document).has_practical, run_view(document).has_datasheet) == (True, True)
    document.ranks[0].roofs = {"0": Roofs(compute={"fp32": Ceiling(None, 1e12)})}
    assert (run_view(document).has_practical, run_view(document).has_datasheet) == (True, False)
