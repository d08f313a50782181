"""Phases, modules and percentiles on the Run page: their bars, their rows, their links."""

from __future__ import annotations

import pytest

from app.pages.cuts_view import module_lines, phase_bars, spread
from rooflight.protocol import Kernel, Parts, Percentiles, Rank
from rooflight.report.summary import summarise
from tests.factories import a_document


def a_rank_of(paths: list[str | None]) -> Rank:
    """Kernels of 6 ms in all, 1 in each of six steps; ``paths`` are their modules."""
    rank = a_document(steps=6).ranks[0]
    rank.kernels = [
        Kernel(name=f"k{i}", device="0", module_path=p, count=6, time_us=6_000.0, steps_exclusive_us=6_000.0)
        for i, p in enumerate(paths)
    ]
    return rank


def test_phases_are_bars_on_one_axis_and_shares_of_the_wall() -> None:
    """Over six steps 240 + 120 ms forward and 180 backward: 60 and 30 of 174.8 ms a step."""
    rank = a_document(steps=6).ranks[0]
    rank.phase_parts_us = {
        "forward": Parts(compute=240_000, memory=120_000), "backward": Parts(latency=180_000),
    }  # fmt: skip
    forward, backward = phase_bars(rank, summarise(rank))
    assert (forward.name, forward.us, backward.us) == ("forward", 60_000.0, 30_000.0)
    assert forward.share_pct == pytest.approx(34.32, abs=0.005)
    assert [(p.part, round(p.x, 3), round(p.w, 3)) for p in forward.pieces] == [
        ("compute", 0.0, 66.667), ("memory", 66.667, 33.333),
    ]  # fmt: skip
    assert [(p.part, p.w) for p in backward.pieces] == [("latency", 50.0)]


def test_one_phase_tells_nothing() -> None:
    rank = a_document(steps=6).ranks[0]
    rank.phase_parts_us = {"forward": Parts(compute=240_000)}
    assert phase_bars(rank, summarise(rank)) == []


def test_a_module_links_to_its_rows_and_those_inside_it() -> None:
    rank = a_rank_of(["Net", "Net > Block", "Netting", "Net > Block", None, "Net > Head"])
    found = {m.row.module.path: m for m in module_lines(rank, summarise(rank))}
    assert found["Net"].picks == "0-1.3.5"
    assert found["Net > Block"].picks == "1.3"
    assert found["Net > Block"].name == "Block"
    assert found["Net > Block"].row.us == 2_000.0  # two rows of 6 ms over six steps
    assert found["Netting"].picks == "2"


def test_a_module_of_too_many_scattered_rows_has_no_link() -> None:
    rank = a_rank_of([("Net" if i % 2 else "Other") for i in range(400)])
    assert [m.picks for m in module_lines(rank, summarise(rank))] == ["", ""]


def test_a_name_from_outside_is_cut() -> None:
    rank = a_rank_of(["x" * 10_000, "y"])
    assert all(len(m.name) <= 120 and len(m.path) <= 600 for m in module_lines(rank, summarise(rank)))


def test_percentiles_stand_on_the_axis_of_the_longest() -> None:
    rank = a_document(steps=6).ranks[0]
    rank.percentiles_us = {
        "input": Percentiles(10.0, 40.0, 50.0), "step_time": Percentiles(150.0, 190.0, 200.0),
    }  # fmt: skip
    step, waits = spread(rank)
    assert (step.label, step.x50, step.x95, step.x99) == ("Step time", 75.0, 95.0, 100.0)
    assert (waits.key, waits.label, waits.x50, waits.x99) == ("input", "Input", 5.0, 25.0)


def test_fewer_than_five_steps_have_no_tails_to_show() -> None:
    rank = a_document(steps=4).ranks[0]
    rank.percentiles_us = {"step_time": Percentiles(150.0)}
    assert spread(rank) == []
