"""The event store: what goes in as columns comes out as rows."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from app.events.parquet import EventStore
from rooflight import analyze
from rooflight.results.launches import Columns
from tests.drawing import timeline_from_text

PROJECT, PROFILE = "0" * 36, "1" * 36


def rows(folder: Path, launches: dict[int, Columns]) -> list[dict[str, Any]]:
    store = EventStore(folder)
    name = store.write(PROJECT, date(2026, 12, 1), PROFILE, launches)
    assert name is not None
    total, found = store.rows([name], limit=10, offset=0)
    assert total == len(found)
    return found


def test_a_launch_comes_back_with_all_its_columns_and_nothing_for_what_is_not_known(tmp_path: Path) -> None:
    timeline = timeline_from_text("""
        us         0    5    10   15   20
        thread 1   aten::mm==
        thread 1     cudaLaunchKernel^1=
        stream 7             gemm^1=======
        stream 8                  alone===
    """)
    launches = analyze(timeline).launches
    launched, alone = rows(tmp_path, launches)
    assert set(launched) == {"rank", *launches[0]}
    assert (launched["name"], launched["op"], launched["thread"]) == ("gemm", "aten::mm", "100/1")
    assert (launched["start_ns"], launched["launch_ns"]) == (10_000, 2_000)
    nothing = {n for n, value in alone.items() if value is None}
    assert nothing == {
        "launch_ns", "launch_dur_ns", "thread", "correlation", "graph_node", "op", "module", "bytes", "step",
        "grid", "block", "registers", "shared_memory", "flops", "moved_bytes", "link_bytes",
        "bound_us",
    }  # fmt: skip
    assert (alone["origin"], alone["regime"]) == ("unknown", "unknown")


def test_an_empty_name_is_a_name_and_a_start_may_be_before_zero(tmp_path: Path) -> None:
    columns = {"name": np.array([""], object), "start_ns": np.array([-1]), "op": np.array([""], object)}
    [row] = rows(tmp_path, {3: columns})
    assert row == {"rank": 3, "name": "", "start_ns": -1, "op": None}
