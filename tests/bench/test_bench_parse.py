"""bench/parse.py runs, and its ratios are those of the figures beside them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.shared import CHECKOUT, traces_dir

FLOOR = re.compile(r"  floor +cpu +([\d.]+) s  peak +(\d+) MiB")
OURS = re.compile(r"  rooflight +cpu +([\d.]+) s  peak +(\d+) MiB  = +([\d.]+)x cpu, ([\d.]+)x memory")


@pytest.mark.traces
def test_a_line_per_side_and_their_ratio() -> None:
    trace = traces_dir() / "mi300_normalization_layers.json.gz"
    done = subprocess.run(
        [sys.executable, CHECKOUT / "bench/parse.py", "-n", "1", trace],
        capture_output=True,
        text=True,
        check=True,
    )
    head, name, floor_line, our_line = done.stdout.splitlines()
    assert "after imports" in head
    assert name.startswith(trace.name)
    floor_found, our_found = FLOOR.fullmatch(floor_line), OURS.fullmatch(our_line)
    assert floor_found, floor_line
    assert our_found, our_line
    floor, floor_peak = map(float, floor_found.groups())
    ours, our_peak, ratio, peak_ratio = map(float, our_found.groups())
    # The printed figures are rounded, to 0.01 s, 1 MiB and 0.01, so a ratio is as exact as they are.
    assert (ours - 0.005) / (floor + 0.005) - 0.006 <= ratio
    assert floor <= 0.005 or ratio <= (ours + 0.005) / (floor - 0.005) + 0.006
    assert (our_peak - 0.5) / (floor_peak + 0.5) - 0.006 <= peak_ratio
    assert peak_ratio <= (our_peak + 0.5) / (floor_peak - 0.5) + 0.006
    # An interpreter that has imported numpy and parsed a trace has some tens of MiB.
    assert our_peak > 20


def test_a_file_that_cannot_be_read_is_a_failure_and_no_figure(tmp_path: Path) -> None:
    broken = tmp_path / "x.json"
    broken.write_text("{")
    done = subprocess.run(
        [sys.executable, CHECKOUT / "bench/parse.py", "-n", "1", broken],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "rooflight failed: rooflight.errors.Truncated" in done.stdout


def test_a_trace_that_is_not_there_is_said_so() -> None:
    done = subprocess.run(
        [sys.executable, CHECKOUT / "bench/parse.py", "--traces", CHECKOUT / "docs"],
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0
    assert "no trace" in done.stderr
