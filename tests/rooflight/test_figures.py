"""Waterfall, regimes and steps as plain figures, and all figures as plotly draws them."""

from __future__ import annotations

import json
import sys
from typing import Any

import plotly.graph_objects as go
import pytest

from rooflight import figures
from rooflight.errors import MissingExtra
from rooflight.figures import bars
from rooflight.figures.colours import light, tokens
from rooflight.protocol import Cpu, CpuStep, Document, Parts, Rank, Roofs, Step
from tests.factories import a_document

BUILDERS = (figures.roofline, figures.waterfall, figures.regimes, figures.steps)


def a_run(*steps: Step, **more: Any) -> Document:
    rank = Rank(rank=0, grade="complete", steps=list(steps), **more)
    return Document(schema_version=1, source="t.json", ranks=[rank])


def two_steps() -> Document:
    """A mean step of 10 ms: 4 compute, 1 memory, 3 input, 2 dispatch; 3 ms are attainable."""
    first = Parts(compute=4000, memory=2000, input=3000)
    second = Parts(compute=4000, input=3000, dispatch=4000)
    return a_run(
        Step(n=7, step_time_us=9000, parts_us=first, attainable_us=2000),
        Step(n=8, step_time_us=11000, parts_us=second, attainable_us=4000),
    )


def lying(figure: dict[str, Any]) -> list[tuple[str, float, float]]:
    """Name, start and length in ms, from the top."""
    return [(t["name"], t["base"][0], t["x"][0]) for t in figure["data"]]


def test_a_waterfall_hangs_from_the_wall_to_nothing() -> None:
    assert lying(bars.waterfall(two_steps())) == [
        ("Wall time", 0.0, 10.0),
        ("Input", 7.0, 3.0),  # 10 - 3
        ("Dispatch", 5.0, 2.0),  # 7 - 2
        ("Memory", 4.0, 1.0),
        ("Compute", 0.0, 4.0),
        ("Attainable", 0.0, 3.0),
    ]
    assert bars.waterfall(two_steps())["layout"]["meta"]["of"] == "mean of 2 steps"


def test_what_waits_is_told_from_what_works() -> None:
    traces = bars.waterfall(two_steps())["data"]
    assert [t["meta"]["part"] for t in traces if t["meta"]["idle"]] == ["input", "dispatch"]


def test_regimes_sum_to_the_wall() -> None:
    """Dispatch counts as latency (DEFINITIONS §16)."""
    found = lying(bars.regimes(two_steps()))
    assert found == [("compute", 0, 4), ("input", 0, 3), ("latency", 0, 2), ("memory", 0, 1)]
    shares = [t["meta"]["share_pct"] for t in bars.regimes(two_steps())["data"]]
    assert shares == [40, 30, 20, 10]


def test_every_step_is_a_stack_of_its_parts() -> None:
    figure = bars.steps(two_steps())
    assert {t["name"]: t["y"] for t in figure["data"]} == {
        "Compute": [4, 4],
        "Memory": [2, 0],
        "Dispatch": [0, 4],
        "Input": [3, 3],
    }
    assert figure["layout"]["meta"]["steps"] == [7, 8]


def test_many_steps_are_cut_and_counted() -> None:
    many = a_run(*(Step(n=i, step_time_us=1, parts_us=Parts(compute=1)) for i in range(bars.MAX_STEPS + 3)))
    meta = bars.steps(many)["layout"]["meta"]
    assert (meta["n_steps"], meta["n_shown"]) == (bars.MAX_STEPS + 3, bars.MAX_STEPS)


def test_an_attainable_time_that_rests_on_the_unknown_is_not_told() -> None:
    step = Step(n=0, step_time_us=1000, parts_us=Parts(unknown=1000), attainable_us=1000)
    assert [name for name, *_ in lying(bars.waterfall(a_run(step)))] == ["Wall time", "Unknown"]


def test_without_steps_the_whole_recording_is_shown() -> None:
    whole = a_run(parts_us={"0": Parts(compute=3000, host=1000)})
    figure = bars.waterfall(whole)
    assert lying(figure)[0] == ("Wall time", 0, 4)
    assert figure["layout"]["meta"]["of"] == "whole recording"
    assert bars.steps(whole)["data"] == []


def test_a_recording_of_the_cpu_shows_its_steps() -> None:
    cpu = Cpu(roof=Roofs(kind="cpu"), steps=[CpuStep(n=0, step_time_us=2000, parts_us=Parts(compute=2000))])
    assert lying(bars.waterfall(a_run(cpu=cpu)))[0] == ("Wall time", 0, 2)


@pytest.mark.parametrize("builder", [bars.waterfall, bars.regimes, bars.steps])
def test_nothing_is_strict_json_too(builder: Any) -> None:
    assert json.loads(json.dumps(builder(a_run()), allow_nan=False))["data"] == []
    with pytest.raises(KeyError, match="rank 3"):
        builder(a_run(), 3)
    with pytest.raises(KeyError, match="no rank"):
        builder(Document(schema_version=1, source="x", ranks=[]))


@pytest.mark.parametrize("builder", BUILDERS)
def test_plotly_takes_every_figure(builder: Any) -> None:
    drawn = builder(a_document())
    assert isinstance(drawn, go.Figure)
    assert len(drawn.data) > 1
    assert json.loads(drawn.to_json())["data"]


@pytest.mark.parametrize("level", figures.LEVELS)
def test_plotly_takes_every_level(level: str) -> None:
    figure = figures.roofline(a_document(), level)
    assert figure.layout.meta["level"] == level
    assert figure.layout.xaxis.type == "log"


def test_colours_are_those_of_the_tokens() -> None:
    figure = figures.roofline(a_document())
    memory = next(t for t in figure.data if t.name == "memory")
    assert memory.marker.color == light("memory") == "#e69f00"
    assert tokens()["surface"] == ("#ffffff", "#15181d")
    assert light("no such regime") == light("unknown")
    waits = next(t for t in figures.waterfall(a_document()).data if t.name == "Input")
    assert waits.marker.pattern.shape == "/"  # what waits is hatched


@pytest.mark.parametrize("builder", BUILDERS)
def test_without_plotly_the_extra_is_named(builder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [m for m in sys.modules if m.partition(".")[0] == "plotly"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtra, match=r"rooflight\[notebook\]"):
        builder(a_document())
