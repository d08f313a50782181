"""`rooflight analyze` from files to files: formats, folders, names and paths from outside."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from rooflight.cli.analyze import read_calibration, render, trace_files, write
from rooflight.cli.main import main
from rooflight.cli.markdown import markdown
from rooflight.errors import Malformed, Refused, TooLarge
from rooflight.protocol import PARTS, decode
from rooflight.report.summary import summarise
from tests import shared
from tests.factories import a_document

# ---- formats and files ----


def test_json_is_the_document_and_strict():
    data = render(a_document(), "json")
    assert data.endswith(b"}\n")
    assert decode(data) == a_document()
    json.loads(data, parse_constant=pytest.fail)
    doc = a_document()
    doc.ranks[0].kernels[0].ai = float("nan")
    assert json.loads(render(doc, "json"), parse_constant=pytest.fail)["ranks"][0]["kernels"][0]["ai"] is None


def test_output_goes_to_the_file_or_to_standard_output(tmp_path, capsysbinary):
    write(a_document(), "md", tmp_path / "out.md")
    assert (tmp_path / "out.md").read_text("utf-8") == markdown(a_document())
    assert capsysbinary.readouterr().out == b""
    write(a_document(), "json", None)
    assert capsysbinary.readouterr().out == render(a_document(), "json")
    with pytest.raises(Refused, match="cannot write"):
        write(a_document(), "md", tmp_path / "no" / "out.md")


def test_a_folder_gives_its_traces_by_name(tmp_path):
    for name in ("b.json.gz", "a.json", "c.txt", "d.json.bak", "e.zip"):
        (tmp_path / name).touch()
    (tmp_path / "sub.json").mkdir()
    assert [p.name for p in trace_files([tmp_path])] == ["a.json", "b.json.gz", "e.zip"]
    assert trace_files([tmp_path / "c.txt"]) == [tmp_path / "c.txt"], (
        "a named file is taken whatever its name"
    )


def test_a_path_that_is_not_there_or_holds_nothing_is_refused(tmp_path, capsys):
    with pytest.raises(Refused, match=r"holds no \*\.json"):
        trace_files([tmp_path])
    assert main(["analyze", str(tmp_path / "none.json")]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "none.json" in err


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"", ""), (b"{}", "traceEvents"), (b'{"traceEvents": [', ""), (b"\x1f\x8b\x08", ""), (b"hello", "")],
)
def test_a_file_that_is_no_trace_ends_with_2_and_one_line_that_names_it(tmp_path, capsys, content, words):
    (tmp_path / "bad.json").write_bytes(content)
    assert main(["analyze", str(tmp_path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert str(tmp_path / "bad.json") in err
    assert words in err


@pytest.mark.traces
@pytest.mark.parametrize("workers", [0, 4])
def test_a_real_run_from_file_to_screen(capsysbinary, workers):
    path = shared.traces_dir() / f"v100_resnet50_workers{workers}.pt.trace.json.gz"
    assert main(["analyze", str(path)]) == 0
    text = capsysbinary.readouterr().out.decode()
    assert "Tesla V100-DGXS-32GB · 6 steps · rank 0" in text
    assert ("Bound by input" in text) == (workers == 0), "starved by its loader, or not"
    assert main(["analyze", str(path), "--format", "json"]) == 0
    document = decode(capsysbinary.readouterr().out)
    steps = document.ranks[0].steps
    assert summarise(document.ranks[0]).times.n == len(steps) == 6
    for step in steps:
        parts = step.parts_us
        assert parts is not None
        total = sum(round(getattr(parts, p) * 1000) for p in PARTS)  # whole ns
        assert total == round(step.step_time_us * 1000)


def test_a_calibration_is_read_or_refused(tmp_path):
    good = tmp_path / "good.json"
    good.write_text(
        '{"device": "EPYC", "kind": "cpu", "measured_at": "2026-12-01T00:00:00Z", "stream_gbs": 40.5}'
    )
    calibration = read_calibration(good)
    assert calibration is not None
    assert calibration.stream_gbs == 40.5
    assert read_calibration(None) is None
    (tmp_path / "bad.json").write_text('{"device": 1}')
    with pytest.raises(Malformed, match="device"):
        read_calibration(tmp_path / "bad.json")
    (tmp_path / "big.json").write_text(" " * (1 << 20) + "{}")
    with pytest.raises(TooLarge):
        read_calibration(tmp_path / "big.json")
    with pytest.raises(Refused, match="cannot read"):
        read_calibration(tmp_path / "none.json")


@pytest.mark.parametrize("rates", ['"stream_gbs": 0', '"gemm_tflops": {"fp32": -1}', '"copy_gbs": 1e308'])
def test_a_calibration_of_impossible_rates_is_refused(tmp_path, rates):
    (tmp_path / "c.json").write_text(f'{{"device": "x", "kind": "gpu", "measured_at": "", {rates}}}')
    with pytest.raises(Malformed, match="not within 1e-09 and 1e"):
        read_calibration(tmp_path / "c.json")


# ---- names and paths from outside ----

ONE_KERNEL = (
    b'{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 1,'
    b' "args": {"device": 0, "stream": 1}}]}'
)


def test_a_file_name_that_is_no_utf8_is_escaped(tmp_path, capsysbinary):
    # os.fsdecode gives a byte that is no UTF-8 as half a surrogate pair, as the shell's arguments come.
    path = tmp_path / os.fsdecode(b"a\xff.json")
    path.write_bytes(ONE_KERNEL)
    assert main(["analyze", str(path), "--format", "json"]) == 0
    assert decode(capsysbinary.readouterr().out).source == r"a\udcff.json"


def test_a_refusal_is_one_line_whatever_the_name(tmp_path, capsys):
    path = tmp_path / "a\nb\x1b[31m.json"
    path.write_bytes(b"{")
    assert main(["analyze", str(path)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert r"a\nb\x1b[31m.json" in said


def test_a_path_that_no_system_takes_is_refused(capsys):
    assert main(["analyze", "a" * 5_000]) == 2
    assert capsys.readouterr().err.startswith("rooflight analyze: cannot read")


def test_a_calibration_without_end_is_not_read_to_its_end():
    with pytest.raises(TooLarge):
        read_calibration(Path("/dev/zero"))


def test_an_interrupt_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("rooflight.cli.analyze.run", interrupted)
    assert main(["analyze", "x.json"]) == 130  # as shells report a SIGINT: 128 + 2
    assert capsys.readouterr().err == "rooflight analyze: interrupted\n"
