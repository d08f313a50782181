"""SVG files: what stands where, by the arithmetic of the axes; words, colours, names from outside."""

from __future__ import annotations

import math
import random
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from rooflight import protocol
from rooflight.cli.main import main
from rooflight.figures import bars
from rooflight.figures.colours import tokens
from rooflight.figures.levels import LEVELS
from rooflight.figures.roofline import roofline
from rooflight.protocol import Ceiling, DeviceFigures, Document, Kernel, Parts, Rank, Roofs, Step
from rooflight.report import svg
from rooflight.report.svg import bars as drawn_bars
from rooflight.report.svg.labels import Box, Dot, _box, placed
from rooflight.report.svg.roofline import BOTTOM, LEFT, RIGHT, TOP
from rooflight.report.svg.scale import LinearScale, LogScale, decade
from tests.factories import a_document

NS = "{http://www.w3.org/2000/svg}"
TERA, GIGA = 10**12, 10**9


def parsed(text: str) -> ElementTree.Element:
    return ElementTree.fromstring(text)


def found(root: ElementTree.Element, tag: str, cls: str | None = None) -> list[ElementTree.Element]:
    rows = root.iter(NS + tag)
    return [e for e in rows if cls is None or cls in (e.get("class") or "").split()]


def texts(root: ElementTree.Element) -> list[str]:
    return [e.text or "" for e in root.iter(NS + "text")]


def device() -> DeviceFigures:
    return DeviceFigures(**dict.fromkeys(DeviceFigures.__struct_fields__, 0) | {"name": "H100"})


def a_run(*kernels: Kernel, steps: list[Step] | None = None, **more: Any) -> Document:
    """On a device of 1000 TFLOP/s and 2 TB/s on paper, 800 and 1.6 in practice: both ridges are at 500."""
    roofs = Roofs(name="H<100>", compute={"bf16": Ceiling(1000e12, 800e12)}, memory=Ceiling(2e12, 1.6e12))
    rank = Rank(
        rank=0, grade="complete", devices={"0": device()}, roofs={"0": roofs}, kernels=list(kernels),
        steps=steps or [], **more,
    )  # fmt: skip
    return Document(schema_version=1, source="t.json", ranks=[rank])


def kernel(name: str = "gemm", **more: Any) -> Kernel:
    """100 FLOP/B at 500 TFLOP/s."""
    given = {"flops": 2 * TERA, "bytes": 20 * GIGA, "time_us": 4000, "dtype": "bf16", "regime": "compute"}
    return Kernel(name=name, **given | {"origin": "modelled"} | more)


def drawn(document: Document, **more: Any) -> ElementTree.Element:
    return parsed(svg.roofline(roofline(document, **more), "Roofline: t.json"))


def test_a_point_stands_where_the_axes_say() -> None:
    root = drawn(a_run(kernel()))
    (point,) = found(root, "circle", "point")
    # x from 100 / 3 to 500 x 3, y from 80 / 2.5 (a tenth of the roof) to 1000 x 2.
    x = LEFT + (RIGHT - LEFT) * math.log10(3) / math.log10(45)  # 100 / (100 / 3); 1500 / (100 / 3)
    y = BOTTOM - (BOTTOM - TOP) * math.log10(500 / 32) / math.log10(2000 / 32)
    assert float(point.get("cx", "")) == pytest.approx(x, abs=0.001)
    assert float(point.get("cy", "")) == pytest.approx(y, abs=0.001)
    assert float(point.get("r", "")) == 23  # the longest has a diameter of 46 px
    assert "gemm" in (point.find(NS + "title").text or "")  # type: ignore[union-attr]


def test_roofs_bend_at_the_ridge_and_end_at_the_right() -> None:
    thin, thick = found(drawn(a_run(kernel())), "polyline")
    assert (thin.get("stroke-width"), thick.get("stroke-width")) == ("1", "2.5")
    at = [tuple(map(float, p.split(","))) for p in thick.get("points", "").split()]
    ridge = LEFT + (RIGHT - LEFT) * math.log10(15) / math.log10(45)  # 500 / (100 / 3)
    height = BOTTOM - (BOTTOM - TOP) * math.log10(800 / 32) / math.log10(2000 / 32)
    assert at[1] == (pytest.approx(ridge, abs=0.006), pytest.approx(height, abs=0.006))
    assert at[2] == (RIGHT, pytest.approx(height, abs=0.006))
    # 1.6 TB/s x 100 / 3 FLOP/B = 53.3 TFLOP/s at the left end.
    left = BOTTOM - (BOTTOM - TOP) * math.log10(160 / 3 / 32) / math.log10(2000 / 32)
    assert at[0] == (LEFT, pytest.approx(left, abs=0.006))


def test_a_slope_from_below_the_frame_begins_at_its_foot() -> None:
    root = drawn(a_run(kernel(), kernel("far", flops=TERA, bytes=1000 * GIGA, time_us=10)))
    for roof in found(root, "polyline"):
        at = [tuple(map(float, p.split(","))) for p in roof.get("points", "").split()]
        assert all(LEFT - 0.01 <= x <= RIGHT + 0.01 and TOP <= y <= BOTTOM + 0.01 for x, y in at)


def test_symbols_of_one_time_have_one_area() -> None:
    rows = [kernel(o, origin=o) for o in ("measured", "modelled", "inferred", "unknown")]
    root = drawn(a_run(*rows))
    (circle,) = found(root, "circle", "point")
    area = math.pi * float(circle.get("r", "")) ** 2
    squares = found(root, "rect", "point")
    assert len(squares) == 3
    for s in squares:
        assert float(s.get("width", "")) * float(s.get("height", "")) == pytest.approx(area, rel=1e-4)
    assert [bool(s.get("transform")) for s in squares].count(True) == 1  # the diamond is turned


def test_it_says_in_words_what_it_shows_and_what_not() -> None:
    root = drawn(a_run(kernel(), kernel("b", flops=None), kernel("c", flops=0)))
    assert root.get("role") == "img"
    assert root.findtext(NS + "title") == "Roofline: t.json"
    said = root.findtext(NS + "desc") or ""
    assert said == "Roofline on H<100>: 1 of 3 groups drawn. Compute roofs: bf16 800 TFLOP/s."
    told = " ".join(texts(root))
    assert "Not on the chart: FLOPs or bytes unknown: 1; no FLOPs: intensity is 0: 1." in told
    for words in ("800 practical", "1,000 datasheet", "1.6 TB/s practical", "ridge 500 FLOP/B", "compute"):
        assert words in told, words


def test_both_themes_are_in_the_file_and_nothing_is_loaded() -> None:
    text = svg.roofline(roofline(a_run(kernel())), "t")
    head, dark = text.split("@media(prefers-color-scheme:dark)")
    light_ink, dark_ink = tokens()["ink"]
    assert f".ink{{fill:{light_ink}}}" in head
    assert f".ink{{fill:{dark_ink}}}" in dark
    assert "var(" not in text
    assert "light-dark(" not in text
    assert "<script" not in text
    assert [w for w in text.split('"') if w.startswith("http")] == ["http://www.w3.org/2000/svg"]


def test_it_is_the_same_every_time() -> None:
    document = a_document(kernels=60)
    assert svg.roofline(roofline(document), "t") == svg.roofline(roofline(document), "t")


@pytest.mark.parametrize("level", LEVELS)
def test_names_from_outside_are_text(level: str) -> None:
    evil = "</text><script>alert(1)</script>\x00\x1b[31m\ud800 & f<4, float>"
    one = kernel(evil, op=evil, module=evil, module_path=evil, regime=evil)
    document = a_run(one, steps=[Step(n=1, step_time_us=1)])
    document.source = evil
    root = parsed(svg.roofline(roofline(document, level=level), evil))
    assert not found(root, "script")
    text = svg.roofline(roofline(document, level=level), evil)
    assert text.encode("utf-8")
    assert "\x1b" not in text


def test_a_template_is_readable_on_hover() -> None:
    root = drawn(a_run(kernel("f<4, float>")))
    (point,) = found(root, "circle", "point")
    assert "f<4, float>" in (point.findtext(NS + "title") or "")


@pytest.mark.parametrize("level", LEVELS)
def test_nothing_is_a_file_too(level: str) -> None:
    for document in (a_run(), a_run(kernel(flops=None)), a_document(kernels=3, steps=2)):
        assert parsed(svg.roofline(roofline(document, level=level), "t")).tag == NS + "svg"
    bare = a_run()
    bare.ranks[0].roofs = {}
    assert "No compute roof is known." in svg.roofline(roofline(bare, level=level), "t")


def a_step(n: int, **parts: float) -> Step:
    return Step(n=n, step_time_us=sum(parts.values()), parts_us=Parts(**parts))


def test_bars_of_the_waterfall_stand_where_the_axis_says() -> None:
    document = a_run(steps=[a_step(1, compute=5000, input=3000, memory=2000)])
    root = parsed(svg.lying(bars.waterfall(document), "Where the time goes"))
    wide = drawn_bars.RIGHT - drawn_bars.LEFT  # 10 ms
    bar = {g.findtext(NS + "title"): g.find(NS + "rect") for g in root.iter(NS + "g")}
    for said, start, length in (
        ("Wall time: 10 ms", 0, 1),
        ("Input: 3 ms", 0.7, 0.3),
        ("Memory: 2 ms", 0.5, 0.2),
        ("Compute: 5 ms", 0, 0.5),
    ):
        rect = bar[said]
        assert rect is not None
        assert float(rect.get("x", "")) == pytest.approx(drawn_bars.LEFT + start * wide, abs=0.001)
        assert float(rect.get("width", "")) == pytest.approx(length * wide, abs=0.001)
    assert len(found(root, "rect", "hatched")) == 1  # the wait
    assert [t for t in texts(root) if t.endswith(" %")] == ["100.0 %", "30.0 %", "20.0 %", "50.0 %"]


def test_steps_stand_side_by_side() -> None:
    document = a_run(steps=[a_step(1, compute=5000, input=3000), a_step(2, compute=5000, input=5000)])
    root = parsed(svg.standing(bars.steps(document), "Steps"))
    tall = drawn_bars.FLOOR - drawn_bars.TOP  # 10 ms
    bar = {g.findtext(NS + "title"): g.find(NS + "rect") for g in root.iter(NS + "g")}
    first, second = bar["step 1: Input 3 ms"], bar["step 2: Input 5 ms"]
    assert first is not None
    assert second is not None
    assert float(first.get("height", "")) == pytest.approx(0.3 * tall, abs=0.001)
    assert float(first.get("y", "")) == pytest.approx(drawn_bars.FLOOR - 0.8 * tall, abs=0.001)
    assert float(second.get("y", "")) == pytest.approx(drawn_bars.TOP, abs=0.001)
    pitch = (drawn_bars.END - drawn_bars.SIDE) / 2
    assert float(second.get("x", "")) - float(first.get("x", "")) == pytest.approx(pitch, abs=0.001)


def test_no_steps_are_said() -> None:
    assert "This recording has no steps." in svg.standing(bars.steps(a_run()), "Steps")
    assert "Nothing in this recording" in svg.lying(bars.waterfall(a_run()), "t")


def test_times_that_cannot_be_break_no_file() -> None:
    for us in (1e308, 1e-320):
        odd = a_run(steps=[a_step(0, compute=us, input=us), a_step(1, compute=us)])
        for text in (svg.standing(bars.steps(odd), "t"), svg.lying(bars.waterfall(odd), "t")):
            assert parsed(text).tag == NS + "svg"
            assert '="nan"' not in text


def test_labels_lie_over_nothing() -> None:
    for seed in range(30):
        rng = random.Random(seed)
        frame = Box(0, 0, 800, 400)
        dots = [
            Dot(rng.uniform(0, 800), rng.uniform(0, 400), rng.uniform(3, 23), f"kernel {i}")
            for i in range(50)
        ]
        roof = Box(0, 190, 800, 196)
        labels = placed(dots, [roof], frame, 10)
        boxes = [_box(label) for label in labels]
        for i, box in enumerate(boxes):
            assert box.within(frame)
            assert not box.crosses(roof)
            assert not any(box.crosses(other) for other in boxes[:i])
            assert not any(box.crosses(d.box) for d in dots if d is not labels[i].dot)
    assert len({label.dot.text for label in labels}) == len(labels)


def test_scales() -> None:
    log = LogScale(-1, 3, 100, 500)
    assert log.at(0.1) == 100
    assert log.at(10) == pytest.approx(300)  # half of four decades
    assert [text for _, text in log.ticks()] == ["0.1", "1", "10", "100", "1,000"]
    assert len(LogScale(-9.5, 20.5, 0, 1).ticks()) <= 9
    assert (decade(-5), decade(7), decade(-4), decade(6)) == ("10⁻⁵", "10⁷", "0.0001", "1,000,000")
    linear = LinearScale(174.8, 0, 174.8)
    assert linear.ticks() == [(0, "0"), (50, "50"), (100, "100"), (150, "150")]
    assert linear.at(50) == pytest.approx(50)


@pytest.mark.parametrize("kind", ["roofline", "waterfall", "regimes", "steps"])
def test_the_command_writes_the_file_without_plotly(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [m for m in sys.modules if m.partition(".")[0] == "plotly"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.chdir(tmp_path)
    Path("run.json").write_bytes(protocol.encode(a_document()))
    assert main(["figures", "run.json", "--kind", kind]) == 0
    assert capsys.readouterr().out == f"{kind}.svg\n"
    assert parsed(Path(f"{kind}.svg").read_text("utf-8")).tag == NS + "svg"


def test_the_command_takes_a_level_and_a_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    document = a_document()
    Path("run.json").write_bytes(protocol.encode(document))
    assert main(["figures", "run.json", "--level", "op", "--dtype", "fp32", "-o", "x.svg"]) == 0
    asked = svg.roofline(roofline(document, level="op", dtype="fp32"), "Roofline: train.pt.trace.json")
    assert Path("x.svg").read_text("utf-8") == asked


def test_a_rank_that_is_not_there_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.json"
    path.write_bytes(protocol.encode(a_document()))
    assert main(["figures", str(path), "--rank", "3", "-o", str(tmp_path / "x.svg")]) == 2
    assert "rank 3" in capsys.readouterr().err
