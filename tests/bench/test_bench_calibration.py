"""bench/calibration.py holds both sides to the bar that it tells."""

from __future__ import annotations

import re
import sys

import pytest

from bench import calibration
from bench.calibration import Round, report, spread, verdict


def test_the_spread_is_highest_over_lowest() -> None:
    assert spread([4.0, 5.0, 4.5]) == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("ours", "plain", "held"),
    [
        ([100, 108], [100, 104], True),  # 8 % is twice 4 %
        ([100, 109], [100, 104], False),
        ([90, 90], [100, 100], True),  # 0.9 of the best
        ([89, 89], [100, 100], False),
        ([100, 101.9], [100, 100.5], True),  # 0.5 % counts as 1 %
        ([100, 103], [100, 100.5], False),
    ],
)
def test_the_bar_is_twice_the_spread_and_nine_tenths_of_the_best(
    ours: list[float], plain: list[float], held: bool
) -> None:
    assert verdict("copy", ours, plain).held is held


def test_one_figure_that_misses_fails_it_all(capsys: pytest.CaptureFixture[str]) -> None:
    plain = {"fp32 product": 0.2, "copy": 40.0, "triad": 40.0}
    assert report([Round(dict(plain), plain, "0 %")] * 2) == 0
    assert report([Round(plain | {"triad": t}, plain, "0 %") for t in (40.0, 44.0)]) == 1
    told = capsys.readouterr().out.splitlines()
    assert [line.rsplit("; ", 1)[1] for line in told] == ["held"] * 5 + ["MISSED"]
    # 44 over 40 less 1 is 10 %, and 44 over 40 is 1.1.
    assert told[-1].startswith(
        "triad         42 GB/s beside 40; spread 10.0 % beside 0.0 %; best over best 1.100"
    )


def test_a_spread_needs_two_rounds() -> None:
    with pytest.raises(SystemExit):
        calibration.main(["-n", "1"])


@pytest.mark.torch
def test_both_sides_are_measured_in_turns(capsys: pytest.CaptureFixture[str]) -> None:
    """Two rounds in earnest; whether the bar is held is the machine's, not this test's, to say."""
    assert calibration.main(["-n", "2", "--seconds", "0.05"]) in (0, 1)
    first, second, *figures = capsys.readouterr().out.splitlines()
    pair = r"fp32 product [\d.]+ beside [\d.]+, copy [\d.]+ beside [\d.]+, triad [\d.]+ beside [\d.]+"
    for n, line in enumerate((first, second), start=1):
        assert re.fullmatch(rf"{n}: {pair} \(others used .+\)", line), line
    assert [line.split("  ")[0] for line in figures] == list(calibration.FIGURES)


def test_a_side_that_fails_ends_it_with_its_words() -> None:
    with pytest.raises(SystemExit, match="no such thing"):
        calibration._run([sys.executable, "-c", "raise SystemExit('no such thing')"], {})
