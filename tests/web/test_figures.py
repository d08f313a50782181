"""The roofline figure: where points and roofs lie, and what is said of those that have no place."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from rooflight.figures.points import MAX_POINTS
from rooflight.figures.roofline import roofline
from rooflight.protocol import Ceiling, Document, Kernel, Roofs
from tests.factories import a_document


def a_chart(kernels: list[Kernel], roofs: Roofs) -> Document:
    document = a_document()
    document.ranks[0].kernels = kernels
    document.ranks[0].roofs = {"0": roofs}
    return document


def h100() -> Roofs:
    """989.5 TFLOP/s bf16 and 3.35 TB/s, practical taken as the datasheet."""
    return Roofs(
        name="H100",
        compute={"bf16": Ceiling(989.5e12, 989.5e12, "assumed")},
        memory=Ceiling(3.35e12, 3.35e12, "assumed"),
    )


def kernel(name: str, flops: int | None, size: int | None, time_us: float, **more: Any) -> Kernel:
    return Kernel(
        name=name,
        flops=flops,
        bytes=size,
        time_us=time_us,
        dtype="bf16",
        regime=more.pop("regime", "compute"),
        **more,
    )


def off_the_chart() -> list[Kernel]:
    """The kernels of the shared case on points that have no place on two logarithmic axes."""
    tera, giga = 10**12, 10**9
    return [
        kernel("normal", tera, 10 * giga, 4000),
        kernel("too_good", tera, 10 * giga, 2000, above_peak=True),
        kernel("copy", 0, 4 * giga, 2000),
        kernel("regs_only", tera // 2, 0, 1000),
        kernel("instant", 100, 100, 0),
        kernel("huge_ai", 2 * tera, 10**6, 4000),
        kernel("unknown", None, None, 50),
    ]


def points(figure: dict[str, Any]) -> dict[int, tuple[float, float]]:
    return {
        custom[0]: (x, y)
        for trace in figure["data"]
        if trace["meta"]["role"] == "points"
        for custom, x, y in zip(trace["customdata"], trace["x"], trace["y"], strict=True)
    }


def roofs(figure: dict[str, Any]) -> list[dict[str, Any]]:
    return [t for t in figure["data"] if t["meta"]["role"] == "roof"]


def test_points_off_the_chart() -> None:
    figure = roofline(a_chart(off_the_chart(), h100()))
    found = points(figure)
    assert found == {
        0: (pytest.approx(100), pytest.approx(250)),  # 1e12 / 1e10 FLOP/B, 1e12 / 4 ms
        1: (pytest.approx(100), pytest.approx(500)),  # above the roof and shown there
        5: (pytest.approx(2e6), pytest.approx(500)),  # 2e12 / 1e6
    }
    meta = figure["layout"]["meta"]
    assert meta["not_plotted_count"] == 4
    assert {n["reason"]: n["count"] for n in meta["not_plotted"]} == {
        "no_flops": 1,
        "no_bytes": 1,
        "no_time": 1,
        "unknown": 1,
    }
    assert meta["roofs"][0]["ridge_datasheet"] == pytest.approx(295.373, abs=0.001)  # 989.5 / 3.35
    low, high = (10**v for v in figure["layout"]["xaxis"]["range"])
    for x in (100, 295.373, 2e6):
        assert low < x < high
    for roof in roofs(figure):
        assert roof["x"][-1] == pytest.approx(high)  # drawn to the right end
        assert roof["y"][-1] == pytest.approx(989.5)


def test_percent_of_the_datasheet_roof() -> None:
    figure = roofline(a_chart(off_the_chart(), h100()))
    of_roof = {c[0]: c[3] for t in figure["data"] if t["meta"]["role"] == "points" for c in t["customdata"]}
    assert of_roof[0] == pytest.approx(74.63, abs=0.02)  # 250 of min(989.5, 3.35 x 100 = 335)
    assert of_roof[1] == pytest.approx(149.25, abs=0.02)  # 500 of 335
    assert of_roof[5] == pytest.approx(50.53, abs=0.02)  # 500 of 989.5


@pytest.mark.parametrize("kernels", [[], [kernel("copy", 0, 1, 1)], [kernel("unknown", None, None, 0)]])
@pytest.mark.parametrize("device", [h100(), Roofs()])
def test_a_figure_is_strict_json_even_without_points_or_roofs(kernels: list[Kernel], device: Roofs) -> None:
    figure = roofline(a_chart(kernels, device))
    text = json.dumps(figure, allow_nan=False)
    assert json.loads(text)["layout"]["meta"]["n_plotted"] == 0
    assert all(math.isfinite(v) for axis in ("xaxis", "yaxis") for v in figure["layout"][axis]["range"])


@pytest.mark.parametrize("rate", [0.0, -1e12, 1e308, math.inf])
def test_roofs_that_cannot_be_are_unknown(rate: float) -> None:
    ceiling = Ceiling(rate, rate)
    device = Roofs(compute={"bf16": ceiling}, vector={"fp32": ceiling}, memory=ceiling, link=ceiling)
    figure = roofline(a_chart(off_the_chart(), device))
    assert roofs(figure) == []
    assert figure["layout"]["meta"]["memory"]["practical"] is None
    assert json.dumps(figure, allow_nan=False)


def test_a_time_that_no_recording_tells_has_no_place() -> None:
    figure = roofline(a_chart([kernel("instant", 100, 100, 1e-320)], h100()))
    assert [n["reason"] for n in figure["layout"]["meta"]["not_plotted"]] == ["no_time"]


def test_both_axes_hold_every_point_that_takes_time() -> None:
    rows = [kernel(f"k{i}", 10**i, 10**6, 1000.0) for i in range(4, 13)]
    figure = roofline(a_chart(rows, h100()))
    for axis, at in (("xaxis", 0), ("yaxis", 1)):
        low, high = figure["layout"][axis]["range"]
        assert all(low < math.log10(p[at]) < high for p in points(figure).values())
    assert figure["layout"]["meta"]["below_frame"] == 0


def test_slow_points_without_weight_are_left_below_the_frame_and_counted() -> None:
    slow = [kernel(f"slow{i}", 1, 10**3, 1.0) for i in range(3)]  # 1 FLOP in 1 µs: 1e-6 TFLOP/s
    figure = roofline(a_chart([kernel("big", 10**12, 10**10, 4000.0), *slow], h100()))
    low, _ = figure["layout"]["yaxis"]["range"]
    assert figure["layout"]["meta"]["below_frame"] == 3  # 3 of 4003 µs: under 1 %
    assert math.log10(1e-6) < low < math.log10(250)
    left = 10 ** figure["layout"]["xaxis"]["range"][0]
    assert left < 1e-3  # the x range contains them all the same


def test_area_is_time() -> None:
    rows = [kernel("a", 10**9, 10**6, 400.0), kernel("b", 10**9, 10**6, 100.0)]
    (trace,) = [t for t in roofline(a_chart(rows, h100()))["data"] if t["meta"]["role"] == "points"]
    big, small = trace["marker"]["size"]
    assert (big / small) ** 2 == pytest.approx(4.0)  # 400 / 100


def test_a_trace_per_regime_and_a_symbol_per_origin() -> None:
    rows = [
        kernel("a", 10**9, 10**6, 10.0, regime="memory", origin="inferred"),
        kernel("b", 10**9, 10**6, 9.0, regime="compute", origin="modelled"),
        kernel("c", 10**9, 10**6, 8.0, regime="memory", origin="measured"),
    ]
    traces = [t for t in roofline(a_chart(rows, h100()))["data"] if t["meta"]["role"] == "points"]
    assert [(t["meta"]["regime"], t["marker"]["symbol"]) for t in traces] == [
        ("compute", ["circle"]),
        ("memory", ["diamond", "square"]),
    ]


def test_the_datasheet_is_thin_and_the_practical_roof_thick() -> None:
    device = Roofs(compute={"bf16": Ceiling(100e12, 80e12)}, memory=Ceiling(1e12, 0.5e12))
    thin, thick = roofs(roofline(a_chart([kernel("a", 10**9, 10**6, 10.0)], device)))
    assert (thin["line"]["width"], thick["line"]["width"]) == (1.0, 2.5)
    assert thick["x"][1] == pytest.approx(160)  # ridge: 80 TFLOP/s / 0.5 TB/s
    assert thick["y"][0] == pytest.approx(thick["x"][0] * 0.5)  # TFLOP/s = FLOP/B x TB/s


def test_a_roof_that_is_not_used_is_dotted_and_leaves_the_slope_to_the_others() -> None:
    device = Roofs(
        compute={
            "fp32": Ceiling(15e12, 15e12),
            "bf16": Ceiling(100e12, 100e12),
            "fp64": Ceiling(7e12, 7e12),
            "int8": Ceiling(2e14, 2e14),
        },
        memory=Ceiling(1e12, 1e12),
    )
    row = Kernel(name="a", flops=10**9, bytes=10**6, time_us=10.0, dtype="fp32")
    shown = {t["name"]: t for t in roofs(roofline(a_chart([row], device)))}
    assert "fp64 practical" not in shown  # of those not used only the highest
    assert "int8 practical" not in shown  # and of floats
    assert shown["bf16 practical"]["line"]["dash"] == "dot"
    assert shown["bf16 practical"]["x"][0] == pytest.approx(15)  # the ridge of fp32
    assert shown["fp32 practical"]["line"]["dash"] == "solid"


def test_equal_roofs_are_one() -> None:
    device = Roofs(
        compute={"bf16": Ceiling(9e12, 8e12), "fp16": Ceiling(9e12, 8e12)}, memory=Ceiling(1e12, 1e12)
    )
    rows = [
        kernel("a", 10**9, 10**6, 10.0),
        Kernel(name="b", flops=10**9, bytes=10**6, time_us=5.0, dtype="fp16"),
    ]
    meta = roofline(a_chart(rows, device))["layout"]["meta"]
    assert [r["dtypes"] for r in meta["roofs"]] == [["bf16", "fp16"]]


def test_only_a_memory_roof_is_a_slope_to_the_right_end() -> None:
    figure = roofline(a_chart([kernel("a", 10**9, 10**6, 10.0)], Roofs(memory=Ceiling(2e12, 1e12))))
    thin, _ = roofs(figure)
    assert thin["y"][-1] / thin["x"][-1] == pytest.approx(2.0)
    assert figure["layout"]["meta"]["note"]


def test_names_from_outside_are_text() -> None:
    name = "</script><img src=x onerror=alert(1)> f<4, float>"
    row = kernel(name, 10**9, 10**6, 10.0, op="<b>op</b>")
    figure = roofline(a_chart([row], h100()))
    (trace,) = [t for t in figure["data"] if t["meta"]["role"] == "points"]
    _, hover, label, _ = trace["customdata"][0]
    assert "&lt;img src=x onerror=alert(1)&gt; f&lt;4, float&gt;" in hover
    assert "&lt;b&gt;op&lt;/b&gt;" in hover
    assert "<img" not in hover
    assert "<" not in label


@pytest.mark.parametrize(
    "device",
    [
        Roofs(kind="cpu", compute={"fp32": Ceiling(None, 120e9)}, memory=Ceiling(None, 18e9)),
        Roofs(kind="cpu", compute={"fp32": Ceiling(None, 3e12)}, memory=Ceiling(None, 90e9)),
        Roofs(kind="cpu"),  # not calibrated: the unit is that of the table all the same
    ],
)
def test_a_cpu_is_told_in_gflops(device: Roofs) -> None:
    row = Kernel(name="a", flops=10**8, bytes=10**6, time_us=1000.0, dtype="fp32")
    figure = roofline(a_chart([row], device))
    assert figure["layout"]["meta"]["unit"] == "GFLOP/s"
    assert points(figure)[0] == (pytest.approx(100), pytest.approx(100))  # 1e8 / 1 ms = 100 GFLOP/s


def test_only_the_longest_groups_are_drawn_and_the_rest_is_counted() -> None:
    rows = [kernel(f"k{i}", 10**9, 10**6, 1.0 + i) for i in range(MAX_POINTS + 5)]
    figure = roofline(a_chart(rows, h100()))
    assert len(points(figure)) == MAX_POINTS
    assert 0 not in points(figure)  # the shortest
    assert {n["reason"]: n["count"] for n in figure["layout"]["meta"]["not_plotted"]} == {"beyond": 5}


def test_copies_and_communication_have_no_place() -> None:
    rows = [
        kernel("Memcpy HtoD", 0, 10**6, 10.0, kind="memcpy", regime="copy"),
        kernel("ncclDevKernel_AllReduce", 10**6, 10**6, 10.0, regime="communication"),
    ]
    meta = roofline(a_chart(rows, h100()))["layout"]["meta"]
    assert {n["reason"] for n in meta["not_plotted"]} == {"copy", "communication"}


def test_a_rank_that_is_not_there() -> None:
    with pytest.raises(KeyError, match="rank 3"):
        roofline(a_document(), rank=3)
