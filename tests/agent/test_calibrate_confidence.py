"""How sure a calibration is, from what was seen."""

from __future__ import annotations

import pytest

from agent.measure.confidence import Circumstances, confidence
from agent.measure.timing import Timing
from rooflight.calibration import Clock

GOOD = Timing(1.0, 0.012, "fast decile of 40", 40)
IDLE = Circumstances(others=0.02)


def a_timing(**changes: float) -> Timing:
    given = {"spread": GOOD.spread, "samples": GOOD.samples, "disturbed": False, **changes}
    return Timing(1.0, float(given["spread"]), "", int(given["samples"]), bool(given["disturbed"]))


def test_without_a_doubt_it_says_what_it_rests_on() -> None:
    word, [reason] = confidence({"stream": GOOD, "copy": a_timing(samples=25, spread=0.03)}, IDLE)
    assert word == "high"
    assert reason == "25 or more undisturbed samples of each figure, scattering by 3.0 % at most"


@pytest.mark.parametrize(
    ("timing", "word", "reason"),
    [
        (a_timing(spread=0.05), "high", "40 or more"),
        (a_timing(spread=0.051), "medium", "stream: samples scatter by 5 %"),
        (a_timing(spread=0.20), "medium", "stream: samples scatter by 20 %"),
        (a_timing(spread=0.21), "low", "stream: samples scatter by 21 %"),
        (a_timing(samples=10), "high", "10 or more"),
        (a_timing(samples=9), "medium", "stream: no more than 9 samples"),
        (a_timing(samples=4), "low", "stream: there was time for 4 samples"),
        (a_timing(samples=4, disturbed=True), "low", "stream: other programs left 4 samples"),
    ],
)
def test_scatter_and_few_samples_are_doubts(timing: Timing, word: str, reason: str) -> None:
    found, [why] = confidence({"stream": timing}, IDLE)
    assert (found, why[: len(reason)]) == (word, reason)


def test_the_hosts_microseconds_do_not_make_ceilings_unsure() -> None:
    assert confidence({"launch": a_timing(spread=0.6)}, IDLE)[0] == "medium"


@pytest.mark.parametrize(
    ("around", "word", "reason"),
    [
        (Circumstances(0.15), "high", "40 or more"),
        (Circumstances(0.16), "medium", "other programs used 16 % of the CPUs"),
        (Circumstances(None), "high", "40 or more"),
        # 90 % of 2000 MHz are 1800.
        (Circumstances(None, {"sm": Clock(900, 1800, 2000)}), "high", "40 or more"),
        (
            Circumstances(None, {"sm": Clock(900, 1799, 2000)}),
            "medium",
            "the sm clock was at 1799 of 2000 MHz",
        ),
        (Circumstances(None, {"sm": Clock(900, 1400, 2000)}, limits=["power cap"]), "high", "40 or more"),
        (Circumstances(None, slowdowns=["power brake"]), "low", "the device slowed down: power brake"),
    ],
)
def test_load_and_clocks_are_doubts(around: Circumstances, word: str, reason: str) -> None:
    found, [why] = confidence({"stream": GOOD}, around)
    assert (found, why[: len(reason)]) == (word, reason)


def test_the_worst_doubt_is_the_word_and_all_are_reasons() -> None:
    word, reasons = confidence(
        {"stream": a_timing(spread=0.3), "copy": a_timing(samples=7)}, Circumstances(0.5)
    )
    assert word == "low"
    assert len(reasons) == 3
