"""Rooflines of L2 and L1, from what hardware counters tell of them.

The kernel of :mod:`tests.rooflight.test_counters` adds 1024 numbers, 1,024 FLOPs, in 20 us.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rooflight import analyze, read_counters
from rooflight.cli.main import main
from rooflight.counters.derive import derive
from rooflight.counters.join import agreed
from rooflight.counters.work import Counted, Kernel, Traffic
from rooflight.figures.levels import LEVELS
from rooflight.figures.roofline import roofline
from rooflight.protocol import CacheTraffic, Document, decode, encode
from tests.drawing import timeline_from_events
from tests.rooflight.test_counters import A100, ADD, an_add

TIME = {"gpu__time_duration.sum": 20_000.0}  # ns


def test_the_bytes_of_a_cache_by_every_metric_that_tells_them() -> None:
    assert derive({"lts__t_bytes.sum": 48_000}, Kernel()).l2 == Traffic(48_000, None)
    assert derive({"lts__t_sectors.sum": 1_500}, Kernel()).l2 == Traffic(48_000, None)  # 1500 x 32
    rate = {"lts__t_bytes.sum.per_second": 2.4e9} | TIME
    assert derive(rate, Kernel()).l2 == Traffic(48_000, None)  # 2.4e9 x 20e-6
    assert derive(TIME, Kernel()).l2 is None
    assert derive({"l1tex__t_bytes.sum": 64_000}, Kernel()).l1 == Traffic(64_000, None)
    assert derive({"lts__t_bytes.sum": 2.0**64}, Kernel()).l2 is None  # no launch moves that much


def test_the_peak_is_what_the_counters_own_percentage_makes_of_it() -> None:
    percent = "lts__t_bytes.sum.pct_of_peak_sustained_elapsed"
    found = derive({"lts__t_bytes.sum": 48_000, percent: 50.0} | TIME, Kernel()).l2
    assert found == Traffic(48_000, pytest.approx(4.8e9))  # 48,000 / 20 us / 50 %
    rounded = derive({"lts__t_bytes.sum": 48_000, percent: 0.3} | TIME, Kernel()).l2
    assert rounded == Traffic(48_000, None)  # two decimals of so little tell no peak


def test_launches_that_differ_stand_for_none() -> None:
    alike = [Counted(l2=Traffic(n, None)) for n in (100, 101, 102)]
    assert agreed(alike).l2 == Traffic(101, None)
    assert agreed([*alike, Counted(l2=Traffic(200, None))]).l2 is None
    assert agreed([*alike, Counted()]).l2 is None


def counters(tmp_path: Path, launches: int = 1) -> Path:
    metrics = {
        "lts__t_bytes.sum": ("byte", 48_000),
        "lts__t_bytes.sum.pct_of_peak_sustained_elapsed": ("%", 50),
        "gpu__time_duration.sum": ("ns", 20_000),
        "l1tex__t_bytes.sum": ("byte", 64_000),
    }
    head = ["ID", "Process ID", "Kernel Name", "Block Size", "Grid Size", "Device", *metrics]
    units = ["", "", "", "", "", "", *(unit for unit, _ in metrics.values())]
    rows = [
        [str(n), "1", ADD, "(128, 1, 1)", "(2, 1, 1)", "0", *(str(v) for _, v in metrics.values())]
        for n in range(launches)
    ]
    path = tmp_path / "ncu.csv"
    path.write_text("".join(",".join(f'"{cell}"' for cell in row) + "\n" for row in [head, units, *rows]))
    return path


def document(tmp_path: Path, launches: int = 1) -> Document:
    events = [e for i in range(launches) for e in an_add(11 + i, 100.0 * i)]
    timeline = timeline_from_events(events, deviceProperties=[A100])
    return analyze(timeline, counters=[read_counters(counters(tmp_path, launches))]).document


def points(figure: dict[str, Any]) -> list[tuple[float, float]]:
    traces = [t for t in figure["data"] if t["meta"]["role"] == "points"]
    return [at for t in traces for at in zip(t["x"], t["y"], strict=True)]


def test_a_group_has_the_traffic_of_its_launches(tmp_path: Path) -> None:
    found = document(tmp_path, launches=3)
    assert found.ranks[0].caches == [
        CacheTraffic(0, "l1", 3 * 64_000, None),
        CacheTraffic(0, "l2", 3 * 48_000, pytest.approx(4.8e9)),
    ]
    assert decode(encode(found)) == found
    assert found.ranks[0].kernels[0].bytes == 3 * 12_288  # of device memory, as the formula has it


@pytest.mark.parametrize("level", [level for level in LEVELS if level != "step"])
def test_intensity_is_that_of_the_cache_at_every_level(tmp_path: Path, level: str) -> None:
    rate = pytest.approx(1024 / 20e-6 / 1e12)  # TFLOP/s
    for memory, size in {"dram": 12_288, "l2": 48_000, "l1": 64_000}.items():
        figure = roofline(document(tmp_path), level=level, memory=memory)
        assert points(figure) == [(pytest.approx(1024 / size), rate)]
        assert figure["layout"]["meta"]["memory_levels"] == ["dram", "l2", "l1"]


def test_the_roof_is_the_caches_own_or_none(tmp_path: Path) -> None:
    found = document(tmp_path)
    meta = {m: roofline(found, memory=m)["layout"]["meta"] for m in ("dram", "l2", "l1")}
    assert meta["dram"]["memory"]["datasheet"] == pytest.approx(2.039e12)
    assert meta["l2"]["memory"] == {
        "datasheet": None,
        "practical": pytest.approx(4.8e9),
        "origin": "measured",
    }
    assert meta["l1"]["memory"]["practical"] is None  # no percentage was counted
    title = roofline(found, memory="l2")["layout"]["xaxis"]["title"]["text"]
    assert title == "Arithmetic intensity, FLOP per byte of L2"


def test_without_counters_a_cache_has_no_points(tmp_path: Path) -> None:
    plain = analyze(timeline_from_events(an_add(), deviceProperties=[A100])).document
    figure = roofline(plain, memory="l2")
    assert points(figure) == []
    meta = figure["layout"]["meta"]
    assert [(n["reason"], n["count"]) for n in meta["not_plotted"]] == [("unknown", 1)]
    assert meta["memory_levels"] == ["dram"]
    assert plain.ranks[0].kernels[0].bytes == 12_288  # the document is as it was


def test_a_group_of_which_a_launch_was_not_counted_is_left_out(tmp_path: Path) -> None:
    """Two launches in the recording, and three counted ones that differ: none stands for them."""
    path = counters(tmp_path, launches=3)
    path.write_text(path.read_text().replace("48000", "90000", 1))
    events = [*an_add(11), *an_add(12, 100.0)]
    timeline = timeline_from_events(events, deviceProperties=[A100])
    caches = analyze(timeline, counters=[read_counters(path)]).document.ranks[0].caches
    assert [c.level for c in caches] == ["l1"]  # which agree


def test_the_command_draws_it(tmp_path: Path) -> None:
    saved, out = tmp_path / "run.json", tmp_path / "l2.svg"
    saved.write_bytes(encode(document(tmp_path)))
    assert main(["figures", str(saved), "--memory", "l2", "-o", str(out)]) == 0
    text = out.read_text("utf-8")
    assert "FLOP per byte of L2<" in text
    assert ">L2</text>" in text
    assert "4.8 GB/s practical" in text


def test_a_memory_that_there_is_none_of(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no memory 'l3'"):
        roofline(document(tmp_path), memory="l3")
