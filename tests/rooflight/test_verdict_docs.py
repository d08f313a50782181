"""docs/verdicts.md is what the analysis says."""

from __future__ import annotations

import pytest

from rooflight.analysis import analyze_files
from rooflight.protocol import Rank
from scripts import verdict_docs
from tests.raw import load
from tests.shared import traces_dir


def analysed(name: str) -> Rank:
    return analyze_files([str(traces_dir() / name)]).document.ranks[0]


def prose() -> str:
    return " ".join(verdict_docs.PAGE.read_text().split())


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


@pytest.mark.traces
def test_the_table_is_current() -> None:
    """If not: ``.venv/bin/python scripts/verdict_docs.py TRACES``, and look at what changed."""
    text = verdict_docs.PAGE.read_text()
    assert verdict_docs.page(text, traces_dir()) == text


@pytest.mark.traces
def test_what_is_said_of_the_resnets() -> None:
    steps = analysed("v100_resnet50_workers0.pt.trace.json.gz").steps
    wall = mean([s.step_time_us for s in steps])
    waits = mean([s.parts_us.input for s in steps if s.parts_us])
    assert f"Its steps take {wall / 1e3:.1f} ms on average; in {waits / 1e3:.1f} ms of that" in prose()
    assert f"({100 * waits / wall:.0f} %) the device stands idle" in prose()
    four = analysed("v100_resnet50_workers4.pt.trace.json.gz")
    waits = mean([s.parts_us.input for s in four.steps if s.parts_us])
    assert f"waits {waits / 1e3:.1f} ms a step for input" in prose()
    assert four.regime == "latency"


@pytest.mark.traces
def test_what_is_said_of_checkpointing() -> None:
    rank = analysed("mi300_resnet_act_checkpoint_rank0of8.json.gz")
    wall = mean([s.step_time_us for s in rank.steps])
    exposed = mean([s.parts_us.communication for s in rank.steps if s.parts_us])
    assert f"in {exposed / 1e3:.1f} of the {wall / 1e3:.1f} ms of a step only collectives run" in prose()
    assert rank.regime_confidence != "high"


@pytest.mark.traces
def test_what_is_said_of_replayed_graphs() -> None:
    name = "mi300_xdit_flux.json.gz"
    found, rank = load(traces_dir() / name), analysed(name)
    calls = [r for r in found.rows if r.name == "hipGraphLaunch"]
    replays = [[k for k in found.kernels if k.correlation == c.correlation] for c in calls]
    assert {len(r) for r in replays} == {993}
    replayed = sum(k.dur for r in replays for k in r)
    whole = sum(k.dur for k in found.kernels)
    assert "four replays of one graph: 993 kernels each" in prose()
    assert len(calls) == 4
    assert f"{100 * replayed / whole:.0f} % of its kernel time" in prose()
    unknown = sum(k.time_us for k in rank.kernels if k.kind == "kernel" and k.origin == "unknown")
    # Of one replayed kernel 0.4 us are cut off, since the next one of its stream has begun.
    assert unknown == pytest.approx(replayed / 1000, abs=0.5)
    assert "(the text encoders and the decoder) is all known" in prose()
