"""Rooflines of ops, modules, steps and ranks: sums over their members, centroids, coverage."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rooflight import analyze
from rooflight.figures.levels import LEVELS
from rooflight.figures.roofline import roofline
from rooflight.protocol import Ceiling, DeviceFigures, Document, Kernel, Rank, Roofs, Step, StepWork
from tests.recording import Recording

TERA, GIGA = 10**12, 10**9


def h100() -> Roofs:
    return Roofs(
        gpu_id="H100-SXM",
        name="H100",
        compute={"bf16": Ceiling(990e12, 700e12), "fp32": Ceiling(67e12, 60e12)},
        memory=Ceiling(3.35e12, 3e12),
    )


def device() -> DeviceFigures:
    figures = dict.fromkeys(DeviceFigures.__struct_fields__, 0)
    return DeviceFigures(**{**figures, "name": "H100"})


def document(kernels: list[Kernel], steps: list[Step] | None = None, **more: Any) -> Document:
    rank = Rank(
        rank=0,
        grade="complete",
        devices={"0": device()},
        roofs={"0": h100()},
        kernels=kernels,
        steps=steps or [],
    )
    return Document(schema_version=1, source="x", ranks=[rank], **more)


def kernel(
    name: str, op: str | None, flops: int | None, size: int | None, time_us: float, **more: Any
) -> Kernel:
    given = {"dtype": "bf16", "regime": "compute", "origin": "modelled"} | more
    return Kernel(name=name, op=op, flops=flops, bytes=size, time_us=time_us, **given)


def two_ops() -> list[Kernel]:
    up = {"module": "Up", "module_path": "Net > Up"}
    down = {"module": "Down", "module_path": "Net > Down"}
    memory: dict[str, Any] = {"dtype": "fp32", "regime": "memory"}
    return [
        kernel("gemm_a", "aten::mm", 2 * TERA, 10 * GIGA, 4000, bound_us=2000, **up),
        kernel("gemm_b", "aten::mm", TERA, 20 * GIGA, 2000, bound_us=1000, **down),
        kernel("add", "aten::add", 0, 9 * GIGA, 3000, bound_us=3000, **memory, **up),
        kernel("mystery", "aten::mm", None, None, 1000, regime="unknown"),
        kernel("lost", None, TERA // 2, GIGA, 500, origin="inferred"),
        kernel("Memcpy", None, 0, GIGA, 100, kind="memcpy", regime="copy"),
        kernel("nccl", "c10d::all", TERA, GIGA, 700, regime="communication"),
    ]


def drawn(figure: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Points by their label."""
    return {
        c[2]: {"x": x, "y": y, "told": c, "regime": t["meta"]["regime"], "symbol": symbol}
        for t in figure["data"]
        if t["meta"]["role"] == "points"
        for c, x, y, symbol in zip(t["customdata"], t["x"], t["y"], t["marker"]["symbol"], strict=True)
    }


def test_an_op_is_the_sum_of_its_known_kernels() -> None:
    found = drawn(roofline(document(two_ops()), level="op"))
    assert set(found) == {"aten::mm", "no op"}
    mm = found["aten::mm"]
    assert mm["x"] == pytest.approx(100)  # (2 + 1) TFLOP / (10 + 20) GB
    assert mm["y"] == pytest.approx(500)  # 3 TFLOP / (4 + 2) ms
    assert mm["told"][4] == [0, 1, 3]  # its rows in the table, the unknown one too
    assert "3 kernel groups, costs known for 86 % of 7 ms" in mm["told"][1]  # 6 of 7
    assert "50 % of its practical roof" in mm["told"][1]  # (2 + 1) of (4 + 2) ms
    assert mm["regime"] == "compute"  # 6 of 7 ms
    assert found["no op"]["symbol"] == "diamond"  # inferred


def test_what_has_no_place_is_counted_at_every_level() -> None:
    meta = roofline(document(two_ops()), level="op")["layout"]["meta"]
    assert {n["reason"]: n["count"] for n in meta["not_plotted"]} == {"no_flops": 1}  # aten::add
    assert (meta["n_groups"], meta["n_plotted"], meta["noun"]) == (3, 2, "op")  # copies and nccl are none


def test_modules_by_their_path() -> None:
    found = drawn(roofline(document(two_ops()), level="module"))
    up = found["Up"]
    assert up["x"] == pytest.approx(2000 / 19)  # 2 TFLOP / (10 + 9) GB: the addition moves bytes alone
    assert up["y"] == pytest.approx(2000 / 7)  # 2 TFLOP / (4 + 3) ms
    assert found["Down"]["x"] == pytest.approx(50)  # 1 TFLOP / 20 GB
    assert found["no module"]["told"][4] == [3, 4]
    assert "<b>Net &gt; Up</b>" in up["told"][1]


def test_the_run_is_all_that_calculates() -> None:
    figure = roofline(document(two_ops()), level="run")
    run = drawn(figure)["rank 0"]
    # (2 + 1 + 0 + 0.5) TFLOP / (10 + 20 + 9 + 1) GB; / (4 + 2 + 3 + 0.5) ms
    assert run["x"] == pytest.approx(87.5)
    assert run["y"] == pytest.approx(3.5 / 9.5e-3)
    meta = figure["layout"]["meta"]
    assert meta["coverage_pct"] == pytest.approx(100 * 9.5 / 10.5, abs=0.01)
    assert meta["centroid"] == {"ai": pytest.approx(87.5), "flop_per_s": pytest.approx(3.5e12 / 9.5e-3)}


def test_a_run_of_several_ranks_has_a_point_for_each_on_the_same_device() -> None:
    several = document([kernel("a", None, TERA, 10 * GIGA, 2000)])
    alike = Rank(rank=1, grade="complete", devices={"0": device()}, roofs={"0": h100()},
                 kernels=[kernel("a", None, TERA, 10 * GIGA, 4000)])  # fmt: skip
    other = Rank(rank=2, grade="complete", devices={"0": device()}, roofs={"0": Roofs(name="A100")},
                 kernels=[kernel("a", None, TERA, 10 * GIGA, 8000)])  # fmt: skip
    several.ranks += [alike, other]
    found = drawn(roofline(several, level="run"))
    assert {name: p["y"] for name, p in found.items()} == {
        "rank 0": pytest.approx(500),  # 1 TFLOP / 2 ms
        "rank 1": pytest.approx(250),
    }
    assert found["rank 1"]["told"][4] == []  # the table is rank 0's


def a_step(n: int, *work: StepWork, of_us: float, regime: str | None = "input") -> Step:
    return Step(n=n, step_time_us=10_000, regime=regime, work=list(work), work_of_us=of_us)


def test_a_step_is_the_centroid_of_its_known_kernels() -> None:
    mm = StepWork("bf16", True, "modelled", 2, 3000, 3 * TERA, 20 * GIGA, 1500)
    add = StepWork("fp32", False, "inferred", 4, 1000, 0, 10 * GIGA, 900)
    steps = [a_step(5, mm, add, of_us=5000), a_step(6, of_us=5000), a_step(7, add, of_us=1000, regime=None)]
    figure = roofline(document([], steps), level="step")
    found = drawn(figure)
    assert set(found) == {"step 5"}
    five = found["step 5"]
    assert five["x"] == pytest.approx(100)  # 3 TFLOP / 30 GB
    assert five["y"] == pytest.approx(750)  # 3 TFLOP / 4 ms
    assert five["regime"] == "input"
    assert five["symbol"] == "diamond"  # of modelled and inferred the weaker
    assert "costs known for 80 % of 5 ms" in five["told"][1]  # 4 of 5
    assert "60 % of its practical roof" in five["told"][1]  # (1500 + 900) of 4000
    assert {n["reason"]: n["count"] for n in figure["layout"]["meta"]["not_plotted"]} == {
        "unknown": 1,
        "no_flops": 1,
    }


def test_a_member_without_a_bound_leaves_the_share_of_the_roof_unknown() -> None:
    rows = [*two_ops()[:2], kernel("roofless", "aten::mm", TERA, GIGA, 10, dtype="fp8")]
    assert "roof unknown" in drawn(roofline(document(rows), level="op"))["aten::mm"]["told"][1]


def test_one_number_type_at_every_level() -> None:
    mm = StepWork("bf16", True, "modelled", 2, 3000, 3 * TERA, 20 * GIGA)
    add = StepWork("fp32", False, "modelled", 4, 1000, GIGA, 10 * GIGA)
    one = document(
        [*two_ops(), kernel("f", "aten::mm", TERA, GIGA, 1, dtype="fp32")], [a_step(0, mm, add, of_us=5000)]
    )
    for level in LEVELS:
        figure = roofline(one, level=level, dtype="fp32")
        meta = figure["layout"]["meta"]
        assert meta["dtype"] == "fp32"
        assert meta["dtypes"] == ["bf16", "fp32"]
        assert [r["dtypes"] for r in meta["roofs"] if r["used"]] == [["fp32"]]
    assert drawn(roofline(one, level="step", dtype="fp32"))["step 0"]["x"] == pytest.approx(0.1)  # 1 / 10
    found = drawn(roofline(one, level="kernel", dtype="fp32"))
    assert found["f"]["told"][0] == 7  # still its place in the table


def test_the_roofs_are_those_of_the_members() -> None:
    meta = roofline(document(two_ops()), level="run")["layout"]["meta"]
    assert [r["dtypes"] for r in meta["roofs"] if r["used"]] == [["bf16"]]  # the fp32 kernel has 0 FLOPs


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("time_us", [None, 0, float("inf")])
def test_every_level_is_strict_json_without_work(level: str, time_us: float | None) -> None:
    rows = [] if time_us is None else [kernel("m", None, 1, 1, time_us)]
    figure = roofline(document(rows, [a_step(0, of_us=0)]), level=level)
    assert json.loads(json.dumps(figure, allow_nan=False))["layout"]["meta"]["n_plotted"] == 0


@pytest.mark.parametrize("level", LEVELS)
def test_sums_of_impossible_times_are_strict_json(level: str) -> None:
    endless = StepWork("bf16", True, "modelled", 1, 1e308, 1, 1)
    rows = [kernel("m", None, 1, 1, 1e308)] * 2
    figure = roofline(document(rows, [a_step(1, endless, endless, of_us=1e308)]), level=level)
    assert json.dumps(figure, allow_nan=False)


def test_names_from_outside_are_text_at_every_level() -> None:
    rows = [kernel("k", "<b>op</b>", TERA, GIGA, 1000, module="<i>m</i>", module_path="<img src=x>")]
    for level in ("op", "module"):
        text = json.dumps(roofline(document(rows), level=level)["data"][-1]["customdata"])
        assert "<b>op" not in text
        assert "<img" not in text


def test_a_level_that_there_is_none_of() -> None:
    with pytest.raises(ValueError, match="no level 'layer'"):
        roofline(document([]), level="layer")


def test_steps_of_a_recording_lie_where_its_kernels_do() -> None:
    """One product in the step: [4096, 4096] squared in bf16 for 300 us."""
    scene = Recording().step(0, 0, 1000)
    scene.op("aten::mm", 0, [[4096, 4096], [4096, 4096]], "c10::BFloat16").kernel("gemm_bf16", 1, 2, 300)
    analysis = analyze(scene.timeline())
    for level in LEVELS:
        (point,) = drawn(roofline(analysis, level=level)).values()
        assert point["x"] == pytest.approx(4096 / 3)  # 2 x 4096^3 / (3 x 4096^2 x 2)
        assert point["y"] == pytest.approx(2 * 4096**3 / 300e-6 / 1e12)
