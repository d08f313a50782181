"""Energy over the steps of a run: counters and power between looks, by the wall clock."""

from __future__ import annotations

import pytest

from rooflight import analyze, read
from rooflight.cli.markdown import markdown
from rooflight.cli.table import table
from rooflight.hardware.catalogue import by_id
from rooflight.hardware.roofs import ceilings
from rooflight.protocol import Rank, Step, StepEnergy
from rooflight.report.html import report
from rooflight.results.energy import Look, energy_in_words, join, step_energy
from tests.cases import FOLDER
from tests.recording import Recording

BASE_S = 1_764_500_000
UUID = "GPU-1"


def a_rank(*spans: tuple[float, float], base: str | None = str(BASE_S * 10**9)) -> Rank:
    """A rank whose steps start and end at seconds after the recording's zero."""
    rank = Rank(rank=0, grade="complete", clock_base_ns=base)
    for n, (start, end) in enumerate(spans):
        rank.steps.append(Step(n=n, step_time_us=(end - start) * 1e6, start_us=start * 1e6))
    return rank


def counters(*joules: float | None, every: float = 0.25) -> list[Look]:
    """Looks at a counter, from the recording's zero on."""
    return [Look(BASE_S + every * i, counter_j=j) for i, j in enumerate(joules)]


def energy(rank: Rank, looks: list[Look]) -> StepEnergy:
    found = step_energy(rank, "0", UUID, looks)
    assert found is not None
    return found


def codes(found: StepEnergy) -> list[str]:
    return [flag.code for flag in found.flags]


def test_the_counter_between_the_ends_of_the_steps() -> None:
    # 0, 100, 200, ... J every 0.25 s; steps from 0.5 to 1.25 s: 500 J - 200 J.  0.875 s is at 350 J.
    looks = counters(*range(0, 900, 100))
    found = energy(a_rank((0.5, 0.875), (0.875, 1.25)), looks)
    assert (found.energy_j, found.per_step_j) == (pytest.approx(300), pytest.approx(150))
    assert found.power_w == pytest.approx(300 / 0.75)
    assert (found.steps, found.wall_us, found.looks, found.reason, found.flags) == (2, 750_000, 4, "", [])


def test_what_lies_between_steps_is_not_theirs_and_overlaps_count_once() -> None:
    looks = counters(*range(0, 1300, 100))
    # [0.25, 0.5) and [2.0, 2.25): 100 J each; the 600 J between belong to no step.
    assert energy(a_rank((0.25, 0.5), (2.0, 2.25)), looks).energy_j == pytest.approx(200)
    # [0.5, 1.5) and [1.0, 2.0) are one time, [0.5, 2.0): 600 J
    apart = energy(a_rank((0.5, 1.5), (1.0, 2.0)), looks)
    assert (apart.energy_j, apart.wall_us, apart.steps) == (pytest.approx(600), 1_500_000, 2)


def test_without_a_counter_the_power_is_the_estimate() -> None:
    # 100, 200, 300, ... W each 0.25 s; from 0 to 1 s: (150 + 250 + 350 + 450) W x 0.25 s
    looks = [Look(BASE_S + 0.25 * i, power_w=100.0 * (i + 1)) for i in range(5)]
    found = energy(a_rank((0.0, 1.0)), looks)
    assert (found.energy_j, codes(found)) == (pytest.approx(300), ["energy_estimated"])


def test_a_counter_that_went_backwards_is_a_gap_and_never_negative() -> None:
    found = energy(a_rank((0.25, 1.25)), counters(0, 100, 200, 50, 150, 250))
    assert (found.energy_j, found.per_step_j, codes(found)) == (None, None, ["energy_gap"])
    assert found.flags[0].count == 1
    outside = energy(a_rank((0.5, 1.5)), counters(900, 0, 100, 200, 300, 400, 500, 600))
    assert (outside.energy_j, outside.flags) == (pytest.approx(400), []), (
        "a gap before the steps is none of theirs"
    )


def test_an_unknown_look_is_a_gap() -> None:
    found = energy(a_rank((0.0, 1.25)), counters(0, 100, None, 300, 400, 500))
    assert (found.energy_j, codes(found), found.flags[0].count) == (None, ["energy_gap"], 2)


@pytest.mark.parametrize(
    ("span", "says"),
    [
        ((0.1, 0.9), "3 looks fell within"),
        ((0.0, 1.3), "until after them"),
        ((-0.1, 1.0), "from before the steps"),
    ],
)
def test_too_few_looks_or_not_throughout_is_unknown(span: tuple[float, float], says: str) -> None:
    found = energy(a_rank(span), counters(0, 100, 200, 300, 400, 500))
    assert found.energy_j is None
    assert says in found.reason
    assert energy_in_words(found).startswith("unknown: ")


def test_without_steps_or_a_wall_clock_nothing_is_said() -> None:
    looks = counters(*range(0, 600, 100))
    assert step_energy(a_rank(), "0", UUID, looks) is None
    assert step_energy(a_rank((0.0, 1.0), base=None), "0", UUID, looks) is None
    assert energy(a_rank((0.0, 1.0)), []).reason == "the steps lasted 1 s: 0 looks fell within"


def test_the_clock_is_that_of_the_looks_that_saw_work() -> None:
    """1500 and 1600 MHz at work within the steps, 210 MHz idle, 1980 MHz before them: 1550."""
    seen = [(0, 1980, True), (1, 1500, True), (2, 210, False), (3, 1600, True), (4, 210, False)]
    looks = [Look(BASE_S + t, counter_j=100.0 * t, sm_mhz=mhz, working=w) for t, mhz, w in seen]
    rank = a_rank((1.0, 4.0))
    rank.roofs["0"] = ceilings(by_id()["h100-sxm"])
    join(rank, "0", UUID, looks)
    assert rank.energy is not None
    assert rank.energy.sm_clock_mhz == 1550
    # The datasheet states bf16 at 1830 MHz.
    assert rank.roofs["0"].compute["bf16"].observed == pytest.approx(989.4e12 * 1550 / 1830)
    # Its boost clock is 1980 MHz.
    assert energy_in_words(rank.energy) == "300 J per step at 100 W, SM clock 1550 of 1980 MHz"
    rank.roofs["0"].gpu_id = "nothing-of-ours"
    join(rank, "0", UUID, looks)
    assert rank.energy.boost_mhz is None


def test_words_say_what_rests_on_the_power() -> None:
    looks = [Look(BASE_S + i / 4, power_w=50.0) for i in range(6)]
    assert energy_in_words(energy(a_rank((0.0, 1.0)), looks)) == "50 J per step at 50 W (from the power)"


def test_the_zero_of_a_recordings_clock() -> None:
    """Case 45: rank 0 is on the wall clock itself, rank 1 has a base; one without either is on no clock."""
    files = [FOLDER / f"45-base-time-and-absolute-mixed/input-rank{n}.json" for n in (0, 1)]
    document = analyze([read(file) for file in files]).document
    assert [r.clock_base_ns for r in document.ranks] == ["0", "1764288000000000000"]
    scene = Recording().step(0, 100, 50).kernel("gemm", 110, 120, 5)
    [rank] = analyze(scene.timeline()).document.ranks
    assert rank.clock_base_ns is None
    [rank] = analyze(scene.timeline(baseTimeNanoseconds=BASE_S * 10**9)).document.ranks
    looks = [Look(BASE_S + 1e-4 + 1e-5 * i, counter_j=float(i)) for i in range(-1, 7)]
    found = energy(rank, looks)
    # The step is 5 of the looks' intervals long.  Doubles of today's seconds are good to 0.24 us.
    assert found.energy_j == pytest.approx(5, abs=0.1)


def test_table_markdown_and_report_show_it() -> None:
    scene = Recording().step(0, 100, 50).kernel("gemm", 110, 120, 5)
    document = analyze(scene.timeline()).document
    shown = [table(document), markdown(document), report(document)]
    assert not any("J per step" in page for page in shown)
    document.ranks[0].energy = StepEnergy("0", UUID, 3, 3e6, 12, 900.0, 300.0, 300.0, 1550.4, 1980.0)
    line = "300 J per step at 300 W, SM clock 1550 of 1980 MHz"
    for page in (table(document), markdown(document), report(document)):
        assert line in page.replace("\\", "")
    document.ranks[0].energy = StepEnergy("0", UUID, 3, 3e6, reason="<img src=x>\x1b")
    assert "<img" not in report(document)
    assert "\x1b" not in table(document) + markdown(document)
