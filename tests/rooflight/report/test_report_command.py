"""``rooflight report`` and ``rooflight analyze --format html``."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from rooflight.cli.main import main
from rooflight.protocol import encode
from rooflight.report.html import report
from tests.factories import a_document
from tests.rooflight.report.reading import Page


def test_the_command_writes_the_file_and_names_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved, out = tmp_path / "run.json", tmp_path / "out.html"
    saved.write_bytes(encode(a_document()))
    assert main(["report", str(saved), "-o", str(out), "--price", "3.60"]) == 0
    assert capsys.readouterr().out == f"{out}\n"
    assert "$0.175" in out.read_text("utf-8")
    assert main(["analyze", str(saved), "--format", "html", "-o", str(tmp_path / "b.html")]) == 0
    assert (tmp_path / "b.html").read_text("utf-8") == report(a_document())


def test_a_trace_becomes_a_report(tmp_path: Path) -> None:
    # One kernel of 10 us, a gap of 2, one of 3: a span of 15 us.
    events = [{"ph": "X", "cat": "kernel", "name": n, "pid": 0, "tid": 7, "ts": ts, "dur": dur,
               "args": {"device": 0, "stream": 7, "correlation": c}}
              for c, (n, ts, dur) in enumerate([("gemm<a>", 100, 10), ("add", 112, 3)])]  # fmt: skip
    trace, out = tmp_path / "t.json", tmp_path / "t.html"
    trace.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    assert main(["report", str(trace), "-o", str(out)]) == 0
    found = Page(out.read_text("utf-8"))
    assert "Where the time goes" in found.words
    assert "gemm<a>" in [given.get("title") for _, given in found.tags]
    assert "gemm‹a›" in found.words
    assert re.search(r"Wall time 0\.015 100\.0 %", found.words)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--gpu", "H100"], "--gpu cannot change an analysis that is made"),
        (["--rank", "9"], "rank 9 is not among the ranks"),
        (["-o", "missing/x.html"], "cannot write"),
    ],
)
def test_what_cannot_be_is_refused_in_a_line(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("run.json").write_bytes(encode(a_document()))
    assert main(["report", "run.json", *arguments]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1
    assert not Path("report.html").exists()


@pytest.mark.parametrize("text", ["0", "-1", "nan", "2000", "three"])
def test_a_price_that_is_none_is_misuse(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "x.json", f"--price={text}"]) == 2
    assert "no price of a GPU hour" in capsys.readouterr().err
