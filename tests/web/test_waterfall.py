"""The waterfall's lines add up to the wall, and its bars hang where the numbers say."""

from __future__ import annotations

import itertools
import random

import pytest

from app.pages.waterfall import LOSSES, axis, stack, waterfall
from rooflight.protocol import KERNEL_PARTS, PARTS

PARTS_OF_STEP = {
    "compute": 40_000.0, "memory": 30_000.0, "latency": 20_000.0, "unknown": 5_000.0, "copy": 1_800.0,
    "input": 58_700.0, "dispatch": 12_200.0, "launch": 3_300.0, "host": 1_000.0, "dependency": 2_800.0,
}  # fmt: skip


def rows_of(parts: dict[str, float], attainable: float | None = None) -> dict[str, float]:
    falls = waterfall(parts, attainable, longest_us=sum(parts.values()))
    return {r.key: r.us for r in falls.rows}


def test_from_the_wall_to_the_attainable_time() -> None:
    rows = rows_of(PARTS_OF_STEP, 68_400.0)
    assert rows["wall"] == 174_800.0  # 40 + 30 + 20 + 5 + 1.8 + 58.7 + 12.2 + 3.3 + 1 + 2.8 ms
    assert rows["kernel"] == 95_000.0  # 40 + 30 + 20 + 5
    assert rows["excess"] == pytest.approx(26_600.0)  # 95 - 68.4
    assert rows["attainable"] == 68_400.0


def test_every_part_has_its_line_once() -> None:
    assert {*LOSSES, *KERNEL_PARTS} == set(PARTS)
    assert len(LOSSES) + len(KERNEL_PARTS) == len(PARTS)


def test_lines_add_up_to_the_wall_whatever_the_parts() -> None:
    rng = random.Random(4)
    for _ in range(200):
        parts = {p: rng.choice([0.0, rng.uniform(0, 1e5)]) for p in PARTS}
        falls = waterfall(parts, None, longest_us=sum(parts.values()))
        lost = sum(r.us for r in falls.rows if r.kind in ("part", "zero"))
        kernel = next(r.us for r in falls.rows if r.key == "kernel")
        assert lost + kernel == pytest.approx(sum(parts.values()))


def test_a_bar_begins_where_the_one_above_ends() -> None:
    falls = waterfall(PARTS_OF_STEP, 68_400.0, longest_us=174_800.0)
    at = 174_800.0
    for row in falls.rows[1:]:
        if row.kind != "part":
            continue
        (piece,) = row.pieces
        assert piece.x + piece.w == pytest.approx(100 * at / falls.top_us)
        at -= row.us
    assert at == pytest.approx(95_000.0)


def test_without_a_roof_nothing_is_said_of_the_attainable() -> None:
    assert "attainable" not in rows_of(PARTS_OF_STEP)
    assert "excess" not in rows_of(PARTS_OF_STEP)


def test_idle_without_a_cause_is_shown_only_where_there_is_some() -> None:
    assert "unknown_idle" not in rows_of(PARTS_OF_STEP)
    assert rows_of({**PARTS_OF_STEP, "unknown_idle": 7.0})["unknown_idle"] == 7.0
    assert rows_of(PARTS_OF_STEP)["sync"] == 0.0


def test_the_parts_of_a_step_stand_side_by_side() -> None:
    pieces = stack(PARTS_OF_STEP, 200_000.0)
    for left, right in itertools.pairwise(pieces):
        assert left.x + left.w == pytest.approx(right.x)
    assert sum(p.us for p in pieces) == pytest.approx(174_800.0)
    assert [p.part for p in pieces if p.idle] == ["input", "dispatch", "launch", "host", "dependency"]


@pytest.mark.parametrize(
    ("longest", "ticks", "top"),
    [
        (181_300.0, [0, 50_000, 100_000, 150_000, 200_000], 200_000),
        (100.0, [0, 25, 50, 75, 100], 100),
        (0.9, [0, 0.25, 0.5, 0.75, 1.0], 1.0),
    ],
)
def test_the_axis_has_round_ticks(longest: float, ticks: list[float], top: float) -> None:
    found, end = axis(longest)
    assert [t for t, _ in found] == pytest.approx(ticks)
    assert end == pytest.approx(top)
    assert found[-1][1] == pytest.approx(100)


def test_an_empty_recording_has_an_axis_and_no_bars() -> None:
    falls = waterfall({}, None, longest_us=0.0)
    assert all(not r.us for r in falls.rows)
    assert falls.rows[0].share_pct is None
