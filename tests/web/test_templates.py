"""Every page renders for every kind of recording, and text from outside stays text.

The environment is strict: a name that a template asks for and nobody gives fails here.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from app.advice.price import Pricing
from app.advice.question import Question
from app.errors import Problem
from app.pages.kernel_view import Cell
from app.pages.list_view import list_rows
from app.pages.money_view import money_view
from app.pages.query import carried
from app.pages.run_view import run_view
from app.pages.templates import render
from app.pages.whatif_view import whatif_view
from app.runs.schemas import RunSummary
from rooflight.collectives import Collective, Communication, Contention
from rooflight.prices import Instance
from rooflight.protocol import (
    Ceiling,
    Cpu,
    CpuStep,
    Document,
    Evidence,
    Finding,
    Kernel,
    Parts,
    Rank,
    Roofs,
    StepEnergy,
)
from rooflight.scenarios import Scenario
from tests.factories import a_document, a_rank

EVIL = "</script><img src=x onerror=alert(1)><4, float> & \"quoted\" 'single'"
NOTHING_ASKED = Pricing(())
NO_QUESTION = Question()
SHELL = {"csrf": "token", "page": "runs", "origin": "http://127.0.0.1:8585"}


def a_run(**more: Any) -> RunSummary:
    given: dict[str, Any] = {
        "id": "6f0e", "project": "vision", "name": "resnet50", "number": 4, "state": "ready",
        "source": "a.json", "created_at": datetime(2026, 12, 1, 14, 2, tzinfo=UTC), "host": "gpu-node-01",
        "device_name": "Tesla V100",
        "n_steps": 6, "step_time_p50_us": 174_800.0, "regime": "input", "regime_confidence": "high",
        "grade": "usable", "parts_us": {"compute": 60.0, "input": 40.0}, "job_id": None, "problem": None,
    }  # fmt: skip
    return RunSummary(**{**given, **more})


def run_page(
    document: Document,
    run: RunSummary | None = None,
    asked: Pricing = NOTHING_ASKED,
    question: Question = NO_QUESTION,
) -> str:
    view = run_view(document)
    return render(
        "run.html", **SHELL, run=run or a_run(), v=view, money=money_view(document, view, asked),
        whatif=whatif_view(document, view.parts, view.unit, question, asked), kept=carried({}),
        hidden=False, rate_unit="TFLOP/s",
        created="1 Dec 2026", created_iso="2026-12-01T14:02:00Z", world_size=document.world_size,
        missing=document.missing_ranks,
    )  # fmt: skip


def with_rank(change: Callable[[Rank], None]) -> Document:
    document = a_document()
    change(document.ranks[0])
    return document


def no_steps(r: Rank) -> None:
    r.steps, r.n_steps = [], 0


def nothing(r: Rank) -> None:
    r.steps, r.kernels, r.devices, r.roofs, r.parts_us, r.regime = [], [], {}, {}, {}, None


def withheld(r: Rank) -> None:
    r.regime, r.grade, r.verdict_withheld = None, "unreliable", "most steps hold no GPU work"
    r.grade_reasons, r.invalid_events = ["GPU events are missing"], {"zero_timestamp": 3}


def no_roof(r: Rank) -> None:
    r.roofs = {}
    for step in r.steps:
        step.attainable_us = step.bound_us = None


def on_cpu(r: Rank) -> None:
    parts = Parts(memory=900.0, host=100.0)
    roof = Roofs(
        kind="cpu", compute={"fp32": Ceiling(None, 1e11, "measured")}, memory=Ceiling(None, 2e10, "measured")
    )
    op = Kernel(name="aten::add", op="aten::add", time_us=900.0, flops=10**6, bytes=10**7, regime="memory")
    r.cpu = Cpu(roof, [CpuStep(1, 1_000.0, parts)], [op], parts, 1_000.0, {"main": 1_000.0}, "EPYC")
    nothing(r)


def advised(r: Rank) -> None:
    evidence = [Evidence("6 idle gaps", [], [5, 6]), Evidence("2 groups", [0, 1])]
    known = Finding(
        "RF-I01",
        "The loader runs on the training thread",
        58_700.0,
        "all gaps vanish",
        evidence,
        "num_workers=4",
    )
    r.findings = [known, Finding("RF-X01", "Copies are pageable", None, "unknown", [], "", "copy")]


def communicates(r: Rank) -> None:
    fast = {"message_bytes": 52_428_800, "basis": "transfer", "wait_us": 6000.0, "bus_gbs": 262.1}
    known = Communication(kind="allreduce", group=EVIL, dtype="bf16", count=4, time_us=12_000.0, **fast)
    bound = Communication(kind="broadcast", time_us=1.0, count=1, bus_gbs=0.5, reason="a lower bound")
    r.communication, r.communication_rows = [known, bound, Communication(kind="sendrecv", count=1)], 5
    r.contention = [Contention(0, 100.0, 50.0, 5, 5, 14.0, 7.0, 2.0)]


def test_communication_is_told_per_step_and_lower_bounds_are_marked() -> None:
    """12,000 µs and 6,000 of waiting over six steps are 2 and 1 ms."""
    html = run_page(with_rank(communicates))
    section = html[html.index('id="communication"') :].partition("</section>")[0]
    assert "allreduce bf16 52.4 MB" in section
    cells = re.findall(r'<td class="num[^"]*"[^>]*>([^<]+)</td>', section)
    assert cells[:3] == ["2.000", "1.000", "4"]
    assert "≥0.5" in section
    assert "and 2 more" in section
    assert "14.0 µs, alone 7.0 µs" in section
    assert EVIL not in html


@pytest.mark.parametrize(
    "change", [no_steps, nothing, withheld, no_roof, on_cpu, advised, communicates, lambda r: None]
)
def test_the_run_page_of_every_kind_of_recording(change: Callable[[Rank], None]) -> None:
    html = run_page(with_rank(change), question=Question(scenario=Scenario("h100-sxm", fused=True)))
    assert html.count("<h1>") == 1
    assert "None" not in re.sub(r"<[^>]+>", "", html)
    assert "nan" not in re.sub(r"<[^>]+>", "", html)


def test_a_cpu_says_so_in_the_title() -> None:
    html = run_page(with_rank(on_cpu))
    assert "(CPU) · Rooflight</title>" in html
    assert "on the CPU" in html


def test_a_cpu_without_a_roof_says_how_to_measure_it() -> None:
    def without_roof(r: Rank) -> None:
        on_cpu(r)
        assert r.cpu
        r.cpu.roof = Roofs(kind="cpu")

    command = 'data-copy="rooflight-agent calibrate --server http'
    assert command in run_page(with_rank(without_roof))
    assert command not in run_page(with_rank(on_cpu))


def test_an_unreliable_recording_says_so_before_its_numbers() -> None:
    html = run_page(with_rank(withheld))
    assert html.index("Unreliable recording") < html.index('aria-label="Headline"')
    assert "Most steps hold no GPU work" in html


def test_ranks_and_collectives() -> None:
    document = a_document()
    document.ranks = [a_rank(kernels=3, steps=2, rng=random.Random(i)) for i in range(2)]
    document.ranks[1].rank = 3
    document.world_size, document.missing_ranks = 4, [1, 2]
    document.collectives = [
        Collective(7, "default_pg", 3, 12.5, {"0": 4_000.0, "3": 0.0}),
        Collective(8, "tp", None, None),
    ]
    html = run_page(document)
    assert "missing: 1, 2" in html
    assert "default_pg" in html
    assert "4.000" in html  # the longest wait in ms
    assert ">Usable<" in html
    assert ">usable<" not in html


def test_text_from_outside_stays_text() -> None:
    document = a_document()
    k = document.ranks[0].kernels[0]
    k.name = k.short_name = k.op = k.reason = k.cost_reason = EVIL
    rank = document.ranks[0]
    rank.grade_reasons, rank.software = [EVIL], {"torch": EVIL}
    rank.flags[0].detail = rank.flags[0].code = EVIL
    run = a_run(name=EVIL, project=EVIL, source=EVIL, host=EVIL)
    fragments = [
        run_page(document, run),
        run_page(document, run, question=Question(scenario=Scenario(EVIL), there=EVIL, there_price=EVIL)),
        run_page(document, run, question=Question(scenario=Scenario("h100-sxm"))),
        render("kernel.html", k=k, cost=EVIL, bars="", said=EVIL),
        render("runs.html", **SHELL, rows=list_rows([run]), next_cursor=EVIL, search=EVIL, cursor=None),
        render("run_state.html", **SHELL, run=a_run(state="empty", project=EVIL)),
        render("not_found.html", **SHELL, title=EVIL, text=EVIL, back="/"),
    ]
    for html in fragments:
        assert "<img" not in html
        assert html.count("</script>") == html.count("<script ")
        assert "&lt;4, float&gt;" in html


def test_an_empty_list_says_what_to_do_next() -> None:
    html = render("runs.html", **SHELL, rows=[], next_cursor=None, search="", cursor=None)
    assert "No runs yet" in html
    assert 'data-copy="rooflight upload trace.json.gz --server http://127.0.0.1:8585' in html
    assert html.count("data-copy=") == 2
    assert "<span>--server</span> <span>http" in html  # no line breaks inside an option
    assert "ROOFLIGHT_TOKEN" in html
    assert "--token" not in html  # arguments are seen by every user of the machine


def test_a_search_without_a_hit_is_no_empty_list() -> None:
    html = render("runs.html", **SHELL, rows=[], next_cursor=None, search="gpt", cursor=None)
    assert "No run matches" in html
    assert "No runs yet" not in html


@pytest.mark.parametrize("state", ["empty", "analyzing", "failed", "refused"])
def test_a_run_without_an_analysis_says_why(state: str) -> None:
    problem = Problem(
        type="t", title="the file ends early", status=400, detail="d", where="byte 9", hint="send all of it"
    )
    html = render("run_state.html", **SHELL, run=a_run(state=state, problem=problem, job_id="j"))
    assert ("The file ends early" in html) == (state in ("failed", "refused"))
    if state == "refused":
        assert "(byte 9)" in html
        assert "Send all of it" in html
    if state == "analyzing":
        assert 'data-wait="j"' in html


def test_the_list_shows_states_and_numbers() -> None:
    runs = [
        a_run(),
        a_run(
            id="b",
            state="analyzing",
            regime=None,
            step_time_p50_us=None,
            parts_us=None,
            n_steps=None,
            grade=None,
        ),
    ]
    html = render("runs.html", **SHELL, rows=list_rows(runs), next_cursor="next", search="", cursor=None)
    assert "Step p50, ms" in html
    assert '<td class="num">174.80</td>' in html  # one number of decimals in the column
    assert 'title="no step was recorded">–' in html
    assert "being analysed" in html
    assert 'href="/?cursor=next"' in html


@pytest.mark.parametrize(("unknown", "shown"), [(30_000, True), (61_000, False)])
def test_a_share_that_rests_on_unknown_work_is_not_shown(unknown: float, shown: bool) -> None:
    """Of 95 ms of kernel time in each step, 30 (32 %) or 61 (64 %) have no bound."""

    def change(r: Rank) -> None:
        for step in r.steps:
            assert step.parts_us is not None
            step.parts_us.compute = 95_000 - unknown - 5_000
            step.parts_us.memory, step.parts_us.latency, step.parts_us.unknown = 3_000, 2_000, unknown

    html = run_page(with_rank(change))
    assert ("64\xa0% of kernel time has no bound" in html) is not shown
    assert ("68.4 of 174.8" in html.replace("\xa0", " ")) is shown


# ---- money ----


def with_a_finding() -> Document:
    """A tenth of 174.8 ms in each step may go."""
    document = a_document()
    document.ranks[0].findings = [Finding("input-starved", "Waits", 17_480.0, "", [], "Feed it.")]
    return document


def test_money_stands_beside_a_finding_once_a_price_is_chosen() -> None:
    """A tenth of 3.60 an hour; 17.48 ms x 1,000 x 3.60 / 3,600 s."""
    page = run_page(with_a_finding(), asked=Pricing((), price="3.60"))
    assert "$0.360 per hour" in page
    assert "$0.017 per 1,000 steps" in page
    assert "$3.60 per GPU and hour (as given), 1 GPU; above attainable $2.19 per hour" in page
    assert "per hour" not in run_page(with_a_finding())


def test_no_instance_is_chosen_before_somebody_does() -> None:
    listed = (
        Instance("AWS", "p3", "v100-sxm2-32", 8, usd_per_hour=Decimal(24), region="us"),
        Instance("AWS", "p5", "h100-sxm-80", 8, usd_per_hour=Decimal(80), region="us"),
    )
    document = with_a_finding()
    document.ranks[0].roofs["0"].name = "Tesla V100-SXM2-32GB"
    page = run_page(document, asked=Pricing(listed))
    assert '<option value="p3@us">AWS p3 us, $3.00 per GPU</option>' in page
    assert "p5@us" not in page
    assert "per hour" not in page
    assert '<option value="p3@us" selected>' in run_page(document, asked=Pricing(listed, instance="p3@us"))


@pytest.mark.parametrize("wrong", [Pricing((), price="free"), Pricing((), instance=EVIL)])
def test_a_price_that_is_none_is_said_beside_the_form(wrong: Pricing) -> None:
    page = run_page(with_a_finding(), asked=wrong)
    assert 'role="alert"' in page
    assert "<img src=x" not in page


def test_the_energy_of_a_step_stands_under_the_step_time() -> None:
    document = a_document()
    assert "data-energy" not in run_page(document)
    document.ranks[0].energy = StepEnergy("0", "GPU-1", 3, 3e6, 12, 900.0, 300.0, 300.0, 1550.4)
    assert "Energy 300 J per step at 300 W, SM clock 1550 MHz" in run_page(document)
    document.ranks[0].energy = StepEnergy("0", "GPU-1", 3, 3e6, reason=EVIL * 100)
    page = run_page(document)
    assert "<img" not in page
    assert page.count("Energy unknown: ") == 1


def test_units_per_second_stand_under_the_step_time() -> None:
    """8192 in each median step of 174.8 ms are 46,865 a second: 168.7 million for 3.60."""
    document = a_document()
    for step in document.ranks[0].steps:
        step.step_time_us = 174_800.0
    assert "data-throughput" not in run_page(document)
    document.units_per_step = {EVIL[:40]: 1.0, "tokens": 8192.0}
    page = run_page(document, asked=Pricing((), price="3.60"))
    assert "46,865 tokens/s; $0.021 per million tokens" in page
    assert "8,192 per step" in page
    assert "<img" not in page
    assert "per million tokens" not in run_page(document)


def test_where_a_verdict_is_withheld_the_page_and_the_list_say_no_verdict() -> None:
    html = run_page(with_rank(withheld))
    strip = html[html.index('<dl class="strip"') :].partition("</dl>")[0]
    assert "No verdict" in strip
    assert "Most steps hold no GPU work" in strip
    runs = render(
        "runs.html", **SHELL, rows=list_rows([a_run(regime=None)]), next_cursor=None, search="", cursor=None
    )
    assert "No verdict" in runs


def test_an_unknown_figure_beside_the_chart_has_no_unit() -> None:
    row = run_view(a_document(kernels=4)).rows[-1]
    unknown = replace(row, ai=Cell("–", None, "no bytes are known"))
    html = render("point.html", r=unknown, rate_unit="TFLOP/s")
    assert '<span class="mute" title="no bytes are known">–</span></dd>' in html
