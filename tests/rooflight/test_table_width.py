"""The table of an analysis fits a terminal of 80 columns, and names the device of several that it shows."""

from __future__ import annotations

import pytest

from rooflight.analysis import analyze, analyze_files
from rooflight.cli.table import table
from rooflight.cli.terminal import Terminal
from rooflight.protocol import Document
from rooflight.report.summary import summarise
from tests import shared
from tests.drawing import timeline_from_events
from tests.factories import a_document


def too_long(document: Document) -> list[str]:
    return [line for line in table(document, Terminal(width=80)).splitlines() if len(line) > 80]


def test_no_line_is_longer_than_the_terminal() -> None:
    document = a_document(kernels=40, steps=6)
    document.world_size, document.missing_ranks = 4000, list(range(1000, 3999))
    assert too_long(document) == []


@pytest.mark.traces
@pytest.mark.parametrize(
    "name", ["dlrm_8ranks", "hta/cpu_only_rank34.json.gz", "hta/sampled_rank0of128.json.gz"]
)
def test_nor_is_any_of_a_real_recording(name: str) -> None:
    path = shared.traces_dir() / name
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    assert too_long(analyze_files([str(f) for f in files]).document) == []


def test_of_several_devices_the_busiest_is_shown_and_named() -> None:
    def kernel(device: int, ts: int, dur: int) -> dict[str, object]:
        args = {"device": device, "context": 1, "stream": 7}
        return {
            "ph": "X",
            "cat": "kernel",
            "name": "k",
            "pid": device,
            "tid": 7,
            "ts": ts,
            "dur": dur,
            "args": args,
        }

    document = analyze(
        timeline_from_events([kernel(0, 10, 5), kernel(0, 90, 10), kernel(1, 20, 60)])
    ).document
    rank = document.ranks[0]
    assert rank.headline == "1"  # 60 us against 15
    # From 10, where the first kernel of any device starts, to 100: device 1 works for 60 of 90 us.
    parts = summarise(rank).parts
    assert parts is not None
    assert parts.unknown == 60
    assert "on device 1 goes" in table(document)
