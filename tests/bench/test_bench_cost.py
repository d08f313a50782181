"""bench/cost.py runs, its trace is what it says, and its verdict is that of the figures beside it."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

import rooflight
from bench import cost
from bench.cost import Sample, main, report
from bench.cost_trace import calls, write
from rooflight.cost.launches import attach
from rooflight.results.stages import Options, Stages


def test_a_line_with_the_ratio_and_the_exit_status_of_its_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["-n", "1", "-l", "700", "-s", "12"])
    line = capsys.readouterr().out
    found = re.search(r"read ([\d.]+) s, cost ([\d.]+) s = ([\d.]+)x \(limit 0.05x\)\n", line)
    assert found, line
    assert "700 launches (700 with known FLOPs)" in line
    assert status == (float(found[3]) > cost.LIMIT)


def test_over_the_limit_is_over_the_limit() -> None:
    """0.06 of 1 s is over 0.05, by the medians: one slow round of three changes nothing."""
    slow, fast = Sample(1.0, 0.06, 10, 10), Sample(1.0, 0.04, 10, 10)
    assert [report(Path("x"), [slow, *rest])[1] for rest in ([], [slow], [fast, fast])] == [
        False,
        False,
        True,
    ]


def test_the_trace_holds_so_many_calls_each_as_often(tmp_path: Path) -> None:
    """Six kinds of call launch 7 kernels: 84 launches of 12 calls are 6 rounds of them."""
    assert len(set(calls(300))) == 300
    assert write(tmp_path / "x.json.gz", 84, 12) == 84
    timeline = rooflight.read(tmp_path / "x.json.gz")
    stages = Stages(timeline, Options())
    costs = attach(timeline, stages.links, stages.names)
    found = Counter(costs.costs[i] for i in costs.index.tolist())
    # 12 calls, two of which launch two kernels, 6 times each.
    assert sorted(found.values()) == [6] * 14
    flops = {c.flops for c in found}
    # addmm [64, 4096] x [4096, 1024], and the input's gradient of [8, 128, 28, 28] with [128, 64, 3, 3].
    assert {2 * 64 * 4096 * 1024, 2 * 8 * 128 * 28 * 28 * 64 * 9} <= flops
    assert all(c.bytes is not None for c in found)
