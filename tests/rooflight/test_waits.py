"""What the device waited for, in words: the same on every surface."""

from __future__ import annotations

import pytest

from app.pages.run_view import run_view
from rooflight.cli.markdown import markdown
from rooflight.cli.table import table
from rooflight.protocol import Document, Idle
from rooflight.report.html import report
from rooflight.report.summary import summarise
from rooflight.report.waits import NOTHING_OPEN, TOP_WAITS, Wait, waits
from tests.factories import a_document

LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def found(document: Document) -> list[Wait]:
    return waits(document.ranks[0], summarise(document.ranks[0]))


def test_times_are_per_step_and_shares_of_the_wall() -> None:
    """58.7 of 174.8 ms are 33.58 %, 10.2 ms are 5.84 %; what is left of dispatch is not told."""
    first, second = found(a_document(steps=6))
    assert (first.us, first.what, first.where) == (58_700.0, LOADER, "train.py(42): main")
    assert first.seen == "6 gaps, at most 68.69 ms in step 5"
    assert [first.share_pct, second.share_pct] == pytest.approx([33.58, 5.84], abs=0.005)
    assert (second.what, second.where, second.seen) == (
        "aten::cudnn_convolution", "", "120 gaps, at most 0.295 ms in step 6",
    )  # fmt: skip


def test_without_steps_they_are_of_the_recording() -> None:
    document = a_document(steps=6)
    rank = document.ranks[0]
    rank.steps, rank.idle = [], [Idle("0", "input", LOADER, None, 2, 30_000.0, 20_000.0, 5.0)]
    [wait] = found(document)
    assert (wait.us, wait.seen) == (30_000.0, "2 gaps, at most 20.00 ms")


def test_small_ones_and_other_devices_are_left_out() -> None:
    """Of 174.8 ms a step, 1.7 are under a percent and 1.8 above."""
    document = a_document(steps=1)
    document.ranks[0].idle = [
        Idle("0", "host", None, None, 1, 1_800.0),
        Idle("0", "host", "a", None, 1, 1_700.0),
        Idle("1", "host", "b", None, 1, 90_000.0),
    ]
    assert [w.what for w in found(document)] == [NOTHING_OPEN]
    document.ranks[0].idle = [Idle("0", "host", f"f{i}", None, 1, 5_000.0) for i in range(TOP_WAITS + 3)]
    assert len(found(document)) == TOP_WAITS


def test_where_no_verdict_is_given_idle_time_is_no_fact() -> None:
    document = a_document()
    document.ranks[0].verdict_withheld = "graph kernels are missing"
    assert found(document) == []


@pytest.mark.parametrize("show", [table, markdown, report])
def test_each_surface_shows_them(show: object) -> None:
    text = show(a_document(steps=6))  # type: ignore[operator]
    for told in (
        LOADER,
        "train.py(42): main",
        "6 gaps, at most 68.69 ms in step 5",
        "aten::cudnn_convolution",
    ):
        assert told in text.replace("&#x27;", "'").replace("\u00a0", " ")


def test_the_run_page_has_them_of_all_steps_only() -> None:
    document = a_document(steps=6)
    assert run_view(document).waits == found(document)
    assert run_view(document, step_n=5).waits == []


def test_a_cause_that_we_do_not_know_is_shown_as_it_came() -> None:
    document = a_document(steps=1)
    document.ranks[0].idle = [Idle("0", "<b>new|cause</b>", "x", None, 1, 90_000.0)]
    assert "new" in table(document)
    assert "<b>new" not in markdown(document)
    assert "<b>new" not in report(document)
