"""How the parts of a step are spread over the steps."""

from __future__ import annotations

import pytest

from rooflight.cli.markdown import markdown
from rooflight.protocol import Percentiles
from rooflight.report.html import report
from tests.factories import a_document
from tests.recording import Recording


def steps(*busy: int) -> dict[str, Percentiles]:
    """Steps of 100 us whose kernel runs for so long, from 10 us on."""
    recording = Recording()
    for i, us in enumerate(busy):
        recording.step(i, 100 * i, 100).kernel("k", 100 * i, 100 * i + 10, us)
    return recording.rank().percentiles_us


def test_they_are_by_linear_interpolation() -> None:
    """Of 10, 20, 30, 40, 80: p50 is the third; p95 is at 3.8: 40 + 0.8 x 40; p99 at 3.96: 40 + 0.96 x 40."""
    found = steps(40, 10, 80, 20, 30)
    assert found["unknown"] == Percentiles(30, 72, 78.4)
    assert found["step_time"] == Percentiles(100, 100, 100)
    # The launch to its start is 10 us in each; parts that no step has are not there.
    assert found["launch"].p50 == 10
    assert "input" not in found


def test_few_steps_have_no_tails() -> None:
    assert steps(10, 20, 30, 40)["unknown"] == Percentiles(25, None, None)


def test_without_steps_there_are_none() -> None:
    assert Recording().kernel("k", 0, 5, 5).rank().percentiles_us == {}


def test_a_recording_of_the_cpu_has_those_of_its_steps() -> None:
    rank = Recording().step(1, 0, 50).host("aten::foo", 0, 20).rank()
    assert rank.percentiles_us["step_time"] == Percentiles(50)
    assert rank.percentiles_us["host"] == Percentiles(30)


@pytest.mark.parametrize("given", [True, False])
def test_markdown_shows_them_where_they_are_known(given: bool) -> None:
    document = a_document(steps=6)
    if given:
        document.ranks[0].percentiles_us = {"input": Percentiles(58_000, 60_000, None)}
    row = next(line for line in markdown(document).splitlines() if line.startswith("| input |"))
    assert row == "| input | 58.700 | 33.6 |" + (" 58.000 | 60.000 | – |" if given else "")


def test_the_report_tells_them_on_hover() -> None:
    document = a_document(steps=6)
    document.ranks[0].percentiles_us = {"input": Percentiles(58_000, 60_000, 61_000)}
    assert "Over the steps: p50 58.00 ms, p95 60.00 ms, p99 61.00 ms." in report(document)
