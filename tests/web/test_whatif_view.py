"""The what-if of the Run page: its figures are those of `rooflight.whatif`, its money that of the price."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from msgspec.structs import replace as copy

from app.advice.price import Pricing
from app.advice.question import Question
from app.pages.run_view import run_view
from app.pages.whatif_view import WhatIfView, whatif_view
from rooflight.prices import Instance
from rooflight.protocol import Ceiling, Document, Roofs
from rooflight.scenarios import Scenario, whatif
from tests.factories import a_document

NOTHING, AS_RECORDED = Pricing(()), Scenario()
LISTED = (
    Instance("AWS", "p5", "h100-sxm", 8, usd_per_hour=Decimal(32), region="us", date="2026-12-01"),
    Instance("AWS", "p3", "v100-sxm2-32", 8, usd_per_hour=Decimal(24), region="us"),
)


def view(
    asked: Scenario = AS_RECORDED, document: Document | None = None, here: Pricing = NOTHING, **more: Any
) -> WhatIfView:
    document = document or a_document()
    v = run_view(document)
    return whatif_view(document, v.parts, v.unit, Question(LISTED, asked, **more), here)


def test_nothing_is_predicted_before_somebody_asks() -> None:
    found = view()
    assert not found.asked
    assert found.answer is None
    assert not any(o.selected for options in found.gpus.values() for o in options)
    assert found.instances == []


def test_input_that_never_waits_takes_its_part_away() -> None:
    """174.8 ms without 58.7 of input are 116.1 ms: 174.8 / 116.1 = 1.5 times the speed, for certain."""
    answer = view(Scenario(input_ready=True)).answer
    assert answer
    assert answer.lead == "Faster: 1.5 times the speed."
    step = answer.lines[0]
    assert (step.recorded, step.low, step.mid, step.high) == ("174.8", "116.1", "116.1", "116.1")
    assert step.change == "−34"  # 58.7 / 174.8
    assert step.at == pytest.approx((100.0, 66.4, 66.4, 66.4), abs=0.05)
    assert "input never waits: a step takes 116.1\xa0ms; recorded 174.8\xa0ms." in answer.said


def test_the_boxes_say_what_is_at_stake() -> None:
    stakes = {c.name: c.stake for c in view().changes}
    assert stakes == {
        "roofs_reached": "", "fused": "", "overlapped": "none", "input_ready": "58.7\xa0ms",
    }  # fmt: skip


def test_another_gpu_gives_a_range_with_its_middle() -> None:
    document, asked = a_document(), Scenario("h100-sxm", "bf16")
    answer = view(asked, document).answer
    w = whatif(document, scenario=asked)
    assert answer
    assert w.step_time_us
    step = answer.lines[0]
    for text, us in zip(
        (step.low, step.mid, step.high),
        (w.step_time_us.low, w.step_time_us.mid, w.step_time_us.high),
        strict=True,
    ):
        assert float(text) == pytest.approx(us / 1000, abs=0.051)
    assert answer.said.startswith("On H100")
    assert ", in bf16: a step takes " in answer.said
    assert answer.query == "gpu=h100-sxm&dtype=bf16"
    assert answer.assumptions == w.assumptions


def test_the_money_is_that_of_the_gpu_that_is_asked_for() -> None:
    """Steps of 116.1 ms: 1,000 of them at 3.60 an hour cost 116.1 s / 3,600 s x 3.60 = 0.116."""
    same = view(Scenario(input_ready=True), here=Pricing((), price="3.60")).answer
    assert same
    assert "1,000 steps cost $0.116 to $0.116" in same.cost
    assert same.cost.endswith("1 GPU; as recorded $0.175 at $3.60.")  # 174.8 s / 3,600 s x 3.60
    other = view(Scenario("h100-sxm"), here=Pricing((), price="3.60")).answer
    assert other
    assert other.cost == ""  # what an H100 costs was not said
    rented = view(Scenario("h100-sxm"), there="p5@us").answer
    assert rented
    assert "at $4.00 per GPU and hour (AWS p5 us, 2026-12-01), 1 GPU." in rented.cost  # 32 / 8


def test_the_instances_are_those_with_the_gpu_that_is_asked_for() -> None:
    options = view(Scenario("h100-sxm"), there="p5@us").instances
    assert [(o.value, o.selected) for o in options] == [("p5@us", True)]


def test_a_price_of_another_gpu_is_refused_in_words() -> None:
    found = view(Scenario("h100-sxm"), there="p3@us")
    assert found.answer is None
    assert found.problem == "'p3' has a v100-sxm2-32, not h100-sxm: choose it again."


@pytest.mark.parametrize(
    ("asked", "more"),
    [
        (Scenario("gtx-9999"), {}),
        (Scenario(dtype="fp7"), {}),
        (Scenario("h100-sxm"), {"there_price": "free"}),
        (Scenario("h100-sxm"), {"there": "<img src=x>"}),
    ],
)
def test_what_cannot_be_is_said_beside_the_form(asked: Scenario, more: dict[str, str]) -> None:
    found = view(asked, **more)
    assert found.answer is None
    assert found.problem
    assert found.gpus


def test_without_a_verdict_there_is_no_prediction() -> None:
    document = a_document()
    document.ranks[0].verdict_withheld = "most steps hold no GPU work"
    found = view(Scenario("h100-sxm"), document)
    assert found.answer is None
    assert found.withheld == "No prediction where there is no verdict: most steps hold no GPU work."


def test_without_gpu_work_there_is_none_to_move() -> None:
    document = a_document()
    document.ranks[0].devices = {}
    assert view(Scenario("h100-sxm"), document).withheld.startswith("No GPU work was recorded")


def test_an_answer_that_rests_on_unknowns_says_so_in_its_sentence() -> None:
    document = a_document()
    document.ranks[0].roofs["0"] = Roofs(compute={"fp32": Ceiling(1e12, 1e12, "assumed")})
    for k in document.ranks[0].kernels:
        k.regime, k.flops, k.bytes = "unknown", None, None
    answer = view(Scenario("h100-sxm"), document).answer
    assert answer
    assert "Most of it is open: of 100\xa0% cost, roof or link are unknown." in answer.said


def test_of_several_ranks_the_kernels_are_those_of_the_first() -> None:
    document = a_document()
    document.ranks.append(copy(document.ranks[0], rank=1))
    answer = view(Scenario(input_ready=True), document).answer
    assert answer
    assert [x.label for x in answer.lines] == ["Mean step", "Kernel time, rank 0", "Recording, rank 0"]
    assert "the step is that of the slowest of 2 ranks, kernels are those of the first" in answer.rests
