"""What `rooflight compare` prints, of traces, folders, stored timelines and saved analyses."""

from __future__ import annotations

import json
import random
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rooflight.cli.compare import render
from rooflight.cli.compared import signed_bar, table
from rooflight.cli.compared_markdown import markdown
from rooflight.cli.main import main
from rooflight.cli.terminal import Terminal
from rooflight.comparison import compare
from rooflight.comparison.words import ms, signed_ms
from rooflight.protocol import Document, encode
from tests.factories import a_document, a_rank

EVIL = "\x1b[2J<img src=x> | `code` **bold**\n"


def runs() -> tuple[Document, Document]:
    """Six steps of 174.8 ms, of which B waits 10 ms longer for input and one kernel is another."""
    a, b = a_document(), a_document(source="other.json")
    for step in b.ranks[0].steps:
        assert step.parts_us is not None
        step.parts_us.input += 10_000
    for document in (a, b):
        for k in document.ranks[0].kernels:
            k.exclusive_us = k.steps_exclusive_us = k.time_us
            k.steps_count = k.count
    row = b.ranks[0].kernels[0]
    row.name, row.short_name, row.steps_exclusive_us = "winograd", "winograd", row.time_us + 600
    return a, b


def row(cat: str, name: str, ts: float, dur: float, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "pid": 9, "tid": 1, "ts": ts, "dur": dur, "args": args}


def write_trace(path: Path, kernel_us: float, rank: int | None = None) -> Path:
    """A step of 100 µs with one kernel that takes ``kernel_us`` of it."""
    events = [
        row("user_annotation", "ProfilerStep#1", 0, 100),
        row("cuda_runtime", "cudaLaunchKernel", 5, 1, correlation=1),
        row("kernel", "gemm", 10, kernel_us, device=0, stream=7, correlation=1),
    ]  # fmt: skip
    info = {} if rank is None else {"distributedInfo": {"rank": rank, "world_size": 2}}
    path.write_text(json.dumps({**info, "traceEvents": events}))
    return path


def printed(capfdbinary: pytest.CaptureFixture[bytes], *args: object) -> bytes:
    assert main(["compare", *map(str, args)]) == 0
    return capfdbinary.readouterr().out


# ---- the screen ----


def test_the_screen_says_the_difference_its_cause_and_its_noise_first():
    """174.8 to 184.8 ms is 5.72 %; 2 of C(12, 6) = 924 arrangements are as uneven: p = 0.0022, and every step
    of a side is the same, so that the ties between sides are none."""
    text = table(compare(*runs()))
    said = " ".join(text.split())
    assert (
        "B takes 5.7 % longer: 174.8 ms → 184.8 ms per step (+10.00 ms), larger than the noise of 6" in said
    )
    assert "The whole difference is waiting for input (+10.00 ms, significant)." in said
    assert "the typical step moves by +10.00 ms" in said


def test_parts_are_signed_bars_by_size_and_add_up():
    lines = table(compare(*runs())).splitlines()
    at = next(i for i, x in enumerate(lines) if x.startswith("Where the difference"))
    first, second = lines[at + 2], lines[at + 3]
    assert re.match(r"  input +58\.70 ms +68\.70 ms +\+10\.00 ms\* +\|▒+$", first)
    assert second.rstrip().endswith("|"), "no difference, no bar"
    total = next(x for x in lines if x.startswith("  total"))
    assert re.search(r"174\.8 ms +184\.8 ms +\+10\.00 ms\* +\+5\.7 %", total)


def test_a_bar_goes_left_for_less_and_right_for_more():
    assert signed_bar(Fraction(5), Fraction(10), 4, idle=False) == "    |██"
    assert signed_bar(Fraction(-10), Fraction(10), 4, idle=True) == "▒▒▒▒|"
    assert signed_bar(Fraction(1), Fraction(1000), 4, idle=False) == "    |▏", "never empty"
    assert signed_bar(Fraction(0), Fraction(0), 4, idle=False) == "    |"
    assert signed_bar(Fraction(5), Fraction(5), 0, idle=False) == "", "no room"


def test_a_renamed_kernel_says_what_it_was():
    """600 µs more over six steps are 0.1 ms per step; the calls are the same."""
    a, b = runs()
    lines = table(compare(a, b)).splitlines()
    at = next(i for i, x in enumerate(lines) if x.startswith("Kernels that differ: 1 of 12 groups"))
    assert re.match(r" +\+0\.100 +0 +\+0\.100 +1→1 +70→70  compute", lines[at + 2])
    assert lines[at + 3].strip() == "winograd · aten::add_"
    assert lines[at + 4].strip() == f"renamed, in A: {a.ranks[0].kernels[0].short_name}"
    assert "11 same (0.000 ms), 1 renamed (+0.100 ms)" in lines[at + 5]


def test_what_is_not_shown_is_counted_and_summed():
    """Of 15 groups that are new, 1/i of 800 µs a call: 12 are shown, the last three are left."""
    a, b = a_document(kernels=0), a_document(kernels=15)
    for k in b.ranks[0].kernels:
        k.steps_exclusive_us, k.steps_count, k.op = 6000.0, 6, None
    assert "+3.000 in 3 more groups, not shown" in table(compare(a, b))


def test_what_speaks_against_comparing_comes_before_the_difference():
    a, b = runs()
    b.ranks[0].devices["0"].name = "AMD Instinct MI300X"
    b.ranks[0].roofs = {}
    b.ranks[0].host, a.ranks[0].host = "node-2", "node-1"
    text = " ".join(table(compare(a, b)).split())
    assert "Note: another machine: node-1 against node-2" in text
    assert text.index("Not comparable: another device") < text.index("B takes")


def test_times_have_sensible_precision_and_a_sign():
    assert [ms(Fraction(x)) for x in (123_456_789, 1_234_567, 12_345)] == ["123.5 ms", "1.23 ms", "0.012 ms"]
    assert [signed_ms(Fraction(x)) for x in (1_500_000, -1_500_000, 0)] == [
        "+1.50 ms",
        "−1.50 ms",
        "0.000 ms",
    ]


@pytest.mark.parametrize("width", [60, 100, 160])
def test_the_screen_keeps_to_its_width_and_shows_no_foreign_control(width: int):
    a, b = runs()
    for document in (a, b):
        document.source = EVIL
        document.ranks[0].devices["0"].name = EVIL
        for k in document.ranks[0].kernels:
            k.name = k.short_name = k.op = k.module = EVIL * 40
    b.ranks[0].kernels[0].steps_exclusive_us = 5.0
    b.ranks[0].software, a.ranks[0].software = {EVIL: EVIL}, {EVIL: "1"}
    text = table(compare(a, b), Terminal(width=width))
    assert "\x1b" not in text
    # Rows of figures on a group stay whole.
    figures = re.compile(r" +([+−]|B − A ms)")
    long = [x for x in text.splitlines() if len(x) > width and not figures.match(x)]
    assert long == []


def test_a_terminal_without_unicode_gets_ascii():
    assert table(compare(*runs()), Terminal(unicode=False)).isascii()


def test_markdown_makes_nothing_foreign_into_markup():
    a, b = runs()
    b.ranks[0].kernels[0].name = b.ranks[0].kernels[0].short_name = EVIL
    b.source = a.ranks[0].kernels[0].short_name = EVIL
    text = markdown(compare(a, b))
    assert "**B takes 5.7 % longer" in text
    assert "| input | 58.700 | 68.700 | +10.000 | significant |" in text
    assert "| total | 174.800 | 184.800 | +10.000 | significant |" in text
    for line in text.splitlines():
        outside = re.sub(r"`[^`]*`", "", line)
        assert "<img" not in outside
        assert "**bold**" not in outside
    cells = [x.count("|") - x.count("\\|") for x in text.splitlines() if x.startswith("| +0.100")]
    assert cells == [8], "seven cells, whatever the name holds"


# ---- the command ----


def test_two_traces(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]):
    """40 and 55 µs of kernel: 15 more of it, 15 less of what comes after."""
    a, b = write_trace(tmp_path / "a.json", 40), write_trace(tmp_path / "b.json", 55)
    answer = json.loads(printed(capfdbinary, a, b, "--format", "json"))
    differences = {p: x["difference_us"] for p, x in answer["parts"].items() if x["difference_us"]}
    assert differences == {"unknown": 15.0, "host": -15.0}
    assert [(k["match"], k["difference_us"]) for k in answer["kernels"]] == [("same", 15.0)]
    assert answer["total"]["difference_us"] == 0
    assert answer["basis"] == "steps"


def test_folders_of_ranks_a_stored_timeline_and_a_saved_analysis(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
):
    import rooflight

    folder = tmp_path / "ranks"
    folder.mkdir()
    for rank, us in ((0, 40), (1, 60)):
        write_trace(folder / f"rank{rank}.json", us, rank)
    answer = json.loads(printed(capfdbinary, folder, folder, "--format", "json", "-j", 1))
    assert answer["a"]["ranks"] == [0, 1]
    assert answer["parts"]["unknown"]["a_us"] == 50.0  # mean of 40 and 60
    trace = write_trace(tmp_path / "t.json", 40)
    stored, saved = tmp_path / "t.rooflight", tmp_path / "t.analysis"
    timeline = rooflight.read(trace)
    timeline.save(stored)
    saved.write_bytes(encode(rooflight.analyze(timeline).document))
    for other in (stored, saved):
        answer = json.loads(printed(capfdbinary, trace, other, "--format", "json"))
        assert answer["parts"]["unknown"]["b_us"] == 40.0
        assert [k["match"] for k in answer["kernels"]] == ["same"]


def test_the_output_goes_to_a_file(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]):
    trace = write_trace(tmp_path / "a.json", 40)
    assert printed(capfdbinary, trace, trace, "--format", "md", "-o", tmp_path / "c.md") == b""
    assert "A and B take the same: 0.100 ms per step." in (tmp_path / "c.md").read_text()
    assert main(["compare", str(trace), str(trace), "-o", str(tmp_path)]) == 2


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "no such file or folder"),
        (b'{"schema_version":1,"source":3}', "not an analysis"),
        (b'{"schema_version":1,"source":"x","ranks":[]}', "B says nothing of where its time went"),
        (b'{"schema_version":99,"source":"x","ranks":[]}', "newer"),
        (b"{}", "b.json"),
    ],
)
def test_what_cannot_be_compared_is_refused_in_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes | None, said: str
):
    a, b = write_trace(tmp_path / "a.json", 40), tmp_path / "b.json"
    if content is not None:
        b.write_bytes(content)
    assert main(["compare", str(a), str(b)]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert said in shown.err
    assert shown.err.count("\n") == 1


def test_what_an_analysis_rests_on_cannot_be_told_to_it_later(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    trace, made = write_trace(tmp_path / "a.json", 40), tmp_path / "b.json"
    assert main(["analyze", str(trace), "--format", "json", "-o", str(made)]) == 0
    assert main(["compare", str(trace), str(made), "--gpu", "h100-sxm"]) == 2
    assert "--gpu cannot change an analysis that is made" in capsys.readouterr().err


def test_the_json_is_strict_and_the_same_in_python():
    c = compare(*runs())
    text = render(c, "json")
    assert b"NaN" not in text
    assert b"Infinity" not in text
    assert msgspec.json.decode(text, type=type(c.document)) == c.document


def test_text_that_utf8_cannot_hold_does_not_break_the_output():
    a, b = runs()
    b.ranks[0].kernels[0].short_name = "half \udc80"
    assert b"half" in render(compare(a, b), "table")


def test_ranks_and_steps_are_described():
    a, _ = runs()
    rank = a_rank(kernels=2, steps=6, rng=random.Random(1))
    rank.rank = 1
    several = Document(a.schema_version, "ranks", [a.ranks[0], rank], world_size=2)
    text = table(compare(several, several))
    assert "6 steps · mean of 2 ranks · data usable" in text
