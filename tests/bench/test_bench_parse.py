"""bench/parse.py runs, and its ratios are those of the figures beside them."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.shared import CHECKOUT, traces_dir

LINE = re.compile(r"cpu +([\d.]+) s / +([\d.]+) s = +([\d.]+)x +peak +(\d+) / +(\d+) MiB = +([\d.]+)x")


@pytest.mark.traces
def test_a_line_per_trace_with_both_sides_and_their_ratio() -> None:
    trace = traces_dir() / "mi300_normalization_layers.json.gz"
    done = subprocess.run(
        [sys.executable, CHECKOUT / "bench/parse.py", "-n", "1", trace],
        capture_output=True,
        text=True,
        check=True,
    )
    head, line = done.stdout.splitlines()
    assert "imports taken off" in head
    found = LINE.search(line)
    assert found, line
    ours, floor, ratio, our_peak, floor_peak, peak_ratio = map(float, found.groups())
    # The printed figures are rounded, to 0.01 s, 1 MiB and 0.01, so a ratio is as exact as they are.
    assert (ours - 0.005) / (floor + 0.005) - 0.006 <= ratio
    assert floor <= 0.005 or ratio <= (ours + 0.005) / (floor - 0.005) + 0.006
    assert (our_peak - 0.5) / (floor_peak + 0.5) - 0.006 <= peak_ratio
    assert peak_ratio <= (our_peak + 0.5) / (floor_peak - 0.5) + 0.006
    # An interpreter that has imported numpy and parsed a trace has some tens of MiB.
    assert our_peak > 20


def test_a_trace_that_is_not_there_is_said_so() -> None:
    done = subprocess.run(
        [sys.executable, CHECKOUT / "bench/parse.py", "--traces", CHECKOUT / "docs"],
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0
    assert "no trace" in done.stderr
