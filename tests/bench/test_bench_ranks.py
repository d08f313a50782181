"""A run of several hosts whose figures are known by construction, through files and processes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench import ranks
from bench.ranks_plan import BESIDE, Plan, Shape
from bench.ranks_trace import write
from rooflight import analyze_files
from rooflight.protocol import encode

SMALL = Shape(ranks=8, per_host=4, steps=6, layers=4, graph=20, seed=7)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    paths, events = write(Plan(SMALL), tmp_path_factory.mktemp("ranks"))
    # A step has two annotations; a launch 6 rows (two ops, call, kernel, two flows), a collective and a
    # graph's launch 3, their kernels 2: 4 tp slots of 6 x 6 + (3 + 2) + 6 + (3 + 20 x 2), a dp slot of
    # 6 + 5 + 6, the last of 6 + 5; and a mark at the end: 6 x (2 + 4 x 90 + 17 + 11) + 1.
    assert events == 2_341
    return paths


@pytest.fixture(scope="module")
def document(files: list[Path]) -> bytes:
    return encode(analyze_files(files, jobs=1).document)


def test_every_figure_across_ranks_is_the_truth(document: bytes) -> None:
    assert list(ranks.differences(json.loads(document), Plan(SMALL))) == []


def test_two_processes_give_the_same_json(files: list[Path], document: bytes) -> None:
    assert encode(analyze_files(files[::-1], jobs=2).document) == document


def test_the_recordings_are_sound(document: bytes) -> None:
    flags = {f["code"] for r in json.loads(document)["ranks"] for f in r["flags"]}
    assert not flags & {"kernel_before_launch", "overlong_clipped", "invalid_events", "graph_under_recorded"}


def clocks(d: dict[str, Any]) -> None:
    d["clock_offset_us"]["4"] += 0.001


def straggler(d: dict[str, Any]) -> None:
    d["collectives"][5]["straggler"] += 1


def wait(d: dict[str, Any]) -> None:
    waits = d["collectives"][0]["wait_us"]
    waits[min(waits)] += 0.001


def step(d: dict[str, Any]) -> None:
    d["ranks"][3]["steps"][2]["transfer_us"] += 0.001


def lost(d: dict[str, Any]) -> None:
    del d["collectives"][-1]


@pytest.mark.parametrize("harm", [clocks, straggler, wait, step, lost])
def test_a_nanosecond_off_is_seen(document: bytes, harm: Callable[[dict[str, Any]], None]) -> None:
    harmed = json.loads(document)
    harm(harmed)
    assert list(ranks.differences(harmed, Plan(SMALL)))


def test_the_plan_keeps_its_own_rules() -> None:
    """Nobody leaves before the last has arrived, all of a group leave at once, and steps hold their work."""
    plan = Plan(SMALL)
    for slot, kind in enumerate(plan.slots):
        of = plan.members(kind)
        for group in np.unique(of):
            mine = of == group
            arrival, completion = plan.arrival[:, slot, mine], plan.completion[:, slot, mine]
            assert (completion == completion[:, :1]).all()
            assert (completion[:, 0] > arrival.max(axis=1)).all()
        assert (plan.free[:, slot] >= plan.arrival[:, slot] + BESIDE[kind]).all()
    assert (plan.free[:, -1].max(axis=1) < plan.step_start[1:]).all()
    assert len({plan.stretch[s].argmax() for s in range(SMALL.steps)}) > 1, "stragglers differ"


def test_the_script_prints_time_memory_and_no_difference(capfd: pytest.CaptureFixture[str]) -> None:
    assert ranks.main(["-r", "2", "-e", "100", "-j", "2"]) == 0
    told = capfd.readouterr().out
    assert "peak of the parent" in told
    assert told.endswith("0 figures differ from the truth\n")
