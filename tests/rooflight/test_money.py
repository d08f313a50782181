"""Money: saving / wall x price per GPU and hour x GPUs, and in a thousand steps (DEFINITIONS §18)."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from rooflight import analyze
from rooflight.cli.main import main
from rooflight.errors import Refused
from rooflight.prices import Instance
from rooflight.prices.money import amount
from rooflight.prices.rate import Rate, instance_meant, rate_given, rate_of
from rooflight.protocol import Document, encode
from rooflight.report.money import money_of, priced, together_us
from tests.factories import a_document
from tests.recording import Recording


def starved(steps: bool = True) -> Document:
    """Two steps of 1000 us, of which 250 wait for input; or the same without marks."""
    scene = Recording()
    for n in (0, 1):
        at = 1000.0 * n
        if steps:
            scene.step(n, at, 1000)
        scene.host("DataLoader.__next__", at, 250, cat="user_annotation")
        scene.kernel("gemm", at + 250, at + 250, 750)
    return analyze(scene.timeline()).document


def of(document: Document, code: str) -> Any:
    return next(f for f in document.ranks[0].findings if f.code == code)


def test_a_saving_as_money() -> None:
    """A quarter of the wall at 3.60 an hour: 0.90.  250 us x 1,000 steps are 0.25 s: 3.60 x 0.25 / 3600."""
    found = priced(starved(), Rate(Decimal("3.60")))
    saving = of(found, "input-starved").money
    assert saving.per_hour == pytest.approx(0.90)
    assert saving.per_1000_steps == pytest.approx(3.60 * 0.25 / 3600)
    assert found.price is not None
    assert (found.price.per_gpu_hour, found.price.currency, found.price.devices) == (3.6, "USD", 1)


def test_nothing_costs_anything_without_a_price() -> None:
    assert of(starved(), "input-starved").money is None
    assert starved().price is None
    found = priced(priced(starved(), Rate(Decimal(2))), None)
    assert (found.price, of(found, "input-starved").money) == (None, None)


def test_without_steps_there_are_no_thousand_of_them() -> None:
    """1750 us are recorded from the first kernel on, of which 250 wait for input."""
    saving = of(priced(starved(steps=False), Rate(Decimal(7))), "input-starved").money
    assert saving.per_hour == pytest.approx(1.0)
    assert saving.per_1000_steps is None


def test_a_finding_without_a_figure_has_no_money() -> None:
    found = priced(starved(), Rate(Decimal(7)))
    assert of(found, "recording-options").money is None


def test_every_gpu_of_the_run_costs() -> None:
    """One rank of eight was recorded: the others run, too."""
    document = starved()
    document.world_size = 8
    assert of(priced(document, Rate(Decimal("3.60"))), "input-starved").money.per_hour == pytest.approx(7.2)


def test_what_findings_save_together() -> None:
    document = starved()
    rank = document.ranks[0]
    # One finding with a saving: 250, of the 250 that it speaks of.
    assert (rank.findings_total_us, together_us(rank)) == (250, 250)
    of(document, "input-starved").saving_us = 100.0
    assert together_us(rank) == 100


# --- the rate -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "currency", "rate"),
    [
        ("3.60", None, Rate(Decimal("3.60"))),
        ("3.60/h", "usd", Rate(Decimal("3.60"))),
        (" 2/hour", "EUR", Rate(Decimal(2), "EUR")),
        ("1500", "JPY", Rate(Decimal(1500), "JPY")),
    ],
)
def test_a_price_that_is_given(text: str, currency: str | None, rate: Rate) -> None:
    assert rate_given(text, currency) == rate


@pytest.mark.parametrize(
    ("text", "currency"),
    [("0", None), ("-1", None), ("1500", None), ("nan", None), ("2/d", None), ("2", "euro"), ("2", "E1R")],
)
def test_what_is_no_price(text: str, currency: str | None) -> None:
    with pytest.raises(Refused):
        rate_given(text, currency)


LISTED = (
    Instance("AWS", "p5", "h100-sxm-80", 8, usd_per_hour=Decimal(80), region="us", date="2026-11-30"),
    Instance("AWS", "p5", "h100-sxm-80", 8, usd_per_hour=Decimal(96), region="eu"),
    Instance("AWS", "p9", "h100-sxm-80", 8),
)


def test_an_instance_is_one_or_refused() -> None:
    """80 USD for eight GPUs are 10 for each; p5 alone may be two prices."""
    rate = rate_of(instance_meant("P5@us", among=LISTED))
    assert rate == Rate(Decimal(10), "USD", "AWS p5 us, 2026-11-30")
    assert rate_of(instance_meant("p5", region="eu", among=LISTED)).per_gpu_hour == 12
    for name, why in [
        ("p5", "several prices: AWS eu, AWS us"),
        ("p6", "unknown instance"),
    ]:
        with pytest.raises(Refused, match=why):
            instance_meant(name, among=LISTED)
    with pytest.raises(Refused, match="no price of 'p9' is known"):
        rate_of(instance_meant("p9", among=LISTED))


def test_amounts_name_their_currency() -> None:
    assert [amount(2.5, c) for c in ("USD", "EUR", "CHF")] == ["$2.50", "€2.50", "CHF\u00a02.50"]


# --- the command line ---------------------------------------------------------------------------------


def test_analyze_with_a_price(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = tmp_path / "run.json"
    saved.write_bytes(encode(starved()))
    assert main(["analyze", str(saved), "--price", "3.60/h", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    (one,) = [f for f in found["ranks"][0]["findings"] if f["code"] == "input-starved"]
    assert one["money"]["per_hour"] == pytest.approx(0.9)
    for fmt in ("table", "md"):
        assert main(["analyze", str(saved), "--price", "3.60", "--currency", "EUR", "--format", fmt]) == 0
        out = capsys.readouterr().out
        assert "€0.900 per hour" in out
        assert "together at most" in out
        assert main(["analyze", str(saved), "--format", fmt]) == 0
        assert "per hour" not in capsys.readouterr().out


def test_a_document_keeps_the_money_that_it_was_made_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = tmp_path / "run.json"
    saved.write_bytes(encode(priced(starved(), Rate(Decimal("3.60")))))
    assert main(["analyze", str(saved)]) == 0
    assert "$0.900 per hour" in capsys.readouterr().out


def test_a_price_that_cannot_be_is_no_money() -> None:
    document = priced(a_document(), Rate(Decimal(2)))
    assert document.price is not None
    for wrong in (-1.0, 0.0, float("nan"), float("inf")):
        document.price.per_gpu_hour = wrong
        assert money_of(document) is None


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["--price", "free"], "no price of a GPU hour"),
        (["--currency", "EUR"], "--currency is that of --price"),
        (["--instance", "nowhere.large"], "unknown instance 'nowhere.large'"),
        (["--price", "2", "--instance", "p5.48xlarge"], "both give a price"),
    ],
)
@pytest.mark.parametrize("command", ["analyze", "report"])
def test_a_price_is_answered_before_the_traces_are_read(
    command: str, argv: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, "absent.json", *argv]) == 2
    assert says in capsys.readouterr().err
