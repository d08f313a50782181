"""What `rooflight analyze` prints: the numbers of the document, in words, for any terminal."""

from __future__ import annotations

import io
import itertools
import random
import re

import msgspec
import pytest

from rooflight.cli.analyze import render
from rooflight.cli.markdown import code, markdown, plain
from rooflight.cli.table import bar, table
from rooflight.cli.terminal import Terminal, fit, of_stream, safe
from rooflight.collectives import Collective
from rooflight.figures.walls import mean_parts
from rooflight.protocol import PARTS, Cpu, CpuStep, Document, Evidence, Finding, Flag, Parts, Roofs
from rooflight.report.summary import WATERFALL, ms, step_times, summarise, verdict
from tests.factories import a_document, a_kernel, a_rank

PLAIN = Terminal()


def lines_of(document: Document, terminal: Terminal = PLAIN) -> list[str]:
    return table(document, terminal).splitlines()


def line(document: Document, start: str) -> str:
    return next(x for x in lines_of(document) if x.strip().startswith(start))


# ---- what the screen says ----


def test_the_verdict_gives_cause_cost_and_confidence():
    text = table(a_document())
    # a_step: input 58.7 of 174.8 ms = 33.58 %
    assert "Bound by input (high confidence): 58.70 ms of 174.8 ms per step (34 %)" in text
    assert "First: Feed the GPU sooner" in text
    assert "Tesla V100-DGXS-32GB · 6 steps · rank 0" in text


def test_attainable_is_a_share_of_the_step():
    assert "68.40 ms" in line(a_document(), "attainable")
    assert "39 % of the step time" in line(a_document(), "attainable")  # 68.4 / 174.8 = 39.1 %


def test_the_waterfall_holds_each_part_with_its_share():
    assert "58.70 ms" in line(a_document(), "input")
    assert line(a_document(), "input").endswith("33.6 %")  # 58.7 / 174.8
    assert line(a_document(), "compute").endswith("22.9 %")  # 40 / 174.8
    assert not any(x.strip().startswith("communication") for x in lines_of(a_document())), "0 is not drawn"
    assert sorted(WATERFALL) == sorted(PARTS)


def test_bars_hang_from_the_end_of_the_one_above():
    rows = [x for x in lines_of(a_document()) if x.endswith(" %") and x.split()[0] in PARTS]
    spans = [m.span() for m in (re.search("[█▒▏]+", x) for x in rows) if m]
    assert len(spans) == 10, "ten parts of a_step are not 0"
    for (_, end), (start, _) in itertools.pairwise(spans):
        assert abs(start - end) <= 1, "each begins where the last ended, but for a mark of at least one"


def test_a_bar_is_to_scale_and_never_empty():
    assert bar(0.0, 0.5, 10, idle=False) == "█████     "
    assert bar(0.5, 1.0, 10, idle=True) == "     ▒▒▒▒▒"
    assert bar(0.999, 1.0, 10, idle=True) == "         ▏"
    assert bar(0.0, 0.001, 10, idle=False) == "▏         "
    assert len(bar(0.0, 1.2, 10, idle=False)) == 10


def test_few_steps_have_no_tails():
    assert "p95 – · p99 – (too few steps for tails: 4)" in line(a_document(steps=4), "step time")
    assert "p95 174.8 ms" in line(a_document(steps=5), "step time")


def test_percentiles_are_linear():
    t = step_times([10.0, 20.0, 30.0, 40.0, 50.0])
    assert (t.p50_us, t.n) == (30.0, 5)
    assert t.p95_us == pytest.approx(48.0)  # position 0.95 x 4 = 3.8 -> 40 + 0.8 x 10
    assert t.p99_us == pytest.approx(49.6)  # position 3.96
    assert step_times([]).p50_us is None
    assert step_times([1.0, 2.0, 3.0, 4.0]).p95_us is None


def test_mean_parts_leave_out_steps_without_parts():
    mean = mean_parts([Parts(compute=10.0), None, Parts(compute=30.0, host=4.0)])
    assert mean == Parts(compute=20.0, host=2.0)
    assert mean_parts([None]) is None


def test_kernels_come_by_time_per_step_and_the_rest_is_counted():
    doc = a_document(kernels=15)
    slow = max(doc.ranks[0].kernels, key=lambda k: k.time_us)
    slow.short_name, slow.above_peak, slow.roof_fraction = "the_slowest", True, 1.111
    rows = lines_of(doc)
    head = next(i for i, x in enumerate(rows) if "ms/step" in x)
    assert "the_slowest" in rows[head + 1]
    assert f"{slow.time_us / 1000 / 6:.3f}" in rows[head + 1]  # 6 steps
    assert "111 %!" in rows[head + 1], "above the roof is shown and marked"
    assert "in 3 more groups" in table(doc)  # 15 - 12


def a_finding(saving_us: float | None, title: str = "Slow <b>") -> Finding:
    seen = [Evidence("three launches wait"), Evidence("and more")]
    return Finding("slow", title, saving_us, "they never wait", seen, "Launch sooner; wait less.", "host")


def test_findings_say_what_they_save_what_was_seen_and_the_first_thing_to_do():
    doc = a_document()
    doc.ranks[0].findings = [a_finding(17_480.0), a_finding(None, "Unknown saving")]
    rows = lines_of(doc)
    at = next(i for i, x in enumerate(rows) if "Slow <b>" in x)
    assert rows[at].split()[:4] == ["17.48", "ms", "10", "%"]  # 17.48 / 174.8 = 10 %
    assert rows[at + 1].strip() == "seen: three launches wait"
    assert rows[at + 2].strip() == "Launch sooner."
    assert next(x for x in rows if "Unknown saving" in x).split()[:2] == ["–", "–"]


def test_five_findings_are_shown_and_the_others_counted():
    doc = a_document()
    doc.ranks[0].findings = [a_finding(8000.0 - i, f"Finding {i}") for i in range(7)]
    assert re.findall(r"Finding \d", table(doc)) == [f"Finding {i}" for i in range(5)]
    assert "2 more findings" in table(doc)  # 7 - 5
    assert "Not shown: 2 more findings." in markdown(doc)
    assert "1. **Finding 4** (8.00 ms, 4.6 %)" in markdown(doc)  # 7.996 / 174.8 = 4.57 %
    assert "Finding 5" not in markdown(doc)


def test_a_long_name_loses_its_namespaces_before_its_end():
    doc = a_document(kernels=1)
    k = doc.ranks[0].kernels[0]
    k.short_name = "cudnn::detail::" + "x" * 20 + "_the_end‹float›"
    k.op = None
    shown = next(x for x in lines_of(doc) if "_the_end" in x)
    assert shown.endswith(" detail::" + "x" * 20 + "_the_end‹float›"), "44 characters fit, 51 do not"


def test_a_part_that_would_vanish_in_its_column_is_said_to_be_less():
    doc = a_document(steps=1)
    parts = doc.ranks[0].steps[0].parts_us
    assert parts is not None
    parts.sync = 4.0  # 0.004 ms, in a column of two decimals
    assert line(doc, "sync").split()[-4:-2] == ["<0.01", "ms"]


def test_unknown_is_a_dash():
    doc = a_document(kernels=1)
    k = doc.ranks[0].kernels[0]
    k.roof_fraction = k.achieved_tflops = k.achieved_gbs = k.share_pct = None
    row = next(x for x in lines_of(doc) if "vectorized" in x)
    assert row.count("–") == 4
    assert " 0 " not in row
    assert ms(None) == "–"


def test_a_small_share_is_not_rounded_to_nothing():
    doc = a_document(kernels=1)
    doc.ranks[0].kernels[0].share_pct = 0.2
    assert "<1 %" in next(x for x in lines_of(doc) if "vectorized" in x)


def test_a_withheld_verdict_says_why_in_the_same_place():
    doc = a_document()
    rank = doc.ranks[0]
    rank.regime, rank.verdict_withheld = None, "unreliable recording: 7 of 10 steps have no GPU events"
    assert verdict(summarise(rank)) == "No verdict: unreliable recording: 7 of 10 steps have no GPU events."
    assert "No verdict: unreliable" in table(doc)
    assert "Bound by" not in table(doc)


def test_grade_reasons_and_flags_are_shown_with_their_counts():
    doc = a_document()
    doc.ranks[0].flags = [Flag("overlong_clipped", 1234, "kernels clipped")] + [Flag("no_shapes")] * 20
    text = table(doc)
    assert "usable: cost unknown for 12 % of kernel time" in text
    assert "overlong_clipped (1,234)  kernels clipped" in text
    assert "and 9 more" in text  # 21 - 12
    assert "modelled 88 %" in text


def test_a_recording_without_steps_shows_its_whole():
    doc = a_document(steps=0)
    text = table(doc)
    assert "Where the wall time of the recording goes" in text
    assert "per step" not in text
    assert re.search(r"^\s+ms share", text, re.MULTILINE), "kernel times are not divided"


def test_a_recording_of_the_cpu_speaks_of_the_cpu():
    doc = a_document()
    rank = doc.ranks[0]
    rank.devices, rank.steps, rank.kernels, rank.parts_us = {}, [], [], {}
    parts = Parts(compute=600.0, host=400.0)
    rank.cpu = Cpu(
        roof=Roofs(name="EPYC 7763", kind="cpu"),
        steps=[CpuStep(n=0, step_time_us=1_000.0, parts_us=parts)],
        ops=[a_kernel(0, random.Random(1))],
        regime="host",
        regime_confidence="medium",
    )
    text = table(doc)
    assert "EPYC 7763 (CPU) · 1 step · rank 0" in text
    assert "Bound by host (medium confidence): 0.400 ms of 1.00 ms per step (40 %) are code between" in text
    assert "Ops: 1 group, " in text


def test_ops_of_a_cpu_are_told_apart_by_their_shapes_and_rated_in_gflops():
    doc = a_document()
    rank = doc.ranks[0]
    rank.devices, rank.steps, rank.kernels = {}, [], []
    op = msgspec.structs.replace(
        a_kernel(0, random.Random(1)), name="aten::mm", short_name="aten::mm", op="aten::mm", kind="op",
        input_dims="[[8, 4], [4, 2]]", achieved_tflops=0.0168, achieved_gbs=0.25, roof_fraction=0.0,
    )  # fmt: skip
    rank.cpu = Cpu(roof=Roofs(name="EPYC 7763", kind="cpu"), ops=[op])
    head, row = (next(x for x in lines_of(doc) if word in x) for word in ("GFLOP/s", "aten::mm"))
    assert "TFLOP/s" not in head
    # 0.0168 TFLOP/s = 16.8 GFLOP/s; a bound of 0 is none, so there is no share of a roof.
    assert row.split("–")[-1].split(maxsplit=2) == ["16.8", "0.2", "aten::mm [[8, 4], [4, 2]]"]
    assert "| – | 16.8 | 0.2 |" in markdown(doc)
    assert "| `aten::mm [[8, 4], [4, 2]]` |" in markdown(doc)


def test_the_first_thing_to_do_fits_the_reason_of_no_verdict():
    doc = a_document()
    doc.ranks[0].regime, doc.ranks[0].regime_reason = None, "costs unknown"
    assert "First: Make costs and roofs known" in table(doc)
    doc.ranks[0].verdict_withheld = "truncated"
    assert "First: Record again" in table(doc)


def test_several_ranks_are_a_table_with_the_late_one():
    ranks = [a_rank(kernels=2, steps=6, rng=random.Random(i)) for i in range(3)]
    for i, rank in enumerate(ranks):
        rank.rank = i
    for step, wait in zip(ranks[0].steps, (8_740, 17_480, 0, 0, 0, 0), strict=True):
        step.wait_us = wait
    waits = ({"0": 1_000.0, "1": 500.0}, {"0": 250.0}, {"1": 2_000.0, "0": 0.0}, {"0": 9.0})
    late = [
        Collective(n=n, group="0", straggler=s, transfer_us=1.0, wait_us=w)
        for n, (s, w) in enumerate(zip((2, 2, 0, None), waits, strict=True))
    ]
    doc = Document(
        schema_version=1, source="run", ranks=ranks, collectives=late, missing_ranks=[3], world_size=4
    )
    rows = lines_of(doc)
    assert "ranks missing of 4: 3" in rows
    by_rank = [re.split(r"\s{2,}", x.strip()) for x in rows if x.strip().startswith(("0 ", "1 ", "2 "))]
    # Rank 2 was waited for twice, 1000 + 500 and 250 µs; rank 0 once, 2000.
    assert [(r[0], r[3], r[4]) for r in by_rank] == [
        ("0", "1", "2.00 ms"), ("1", "0", "0.000 ms"), ("2", "2", "1.75 ms")
    ]  # fmt: skip
    assert any("how often it came last of 3 collectives" in x for x in rows)
    # (8.74 + 17.48) / 6 steps = 4.37 ms of 174.8: 2.5 %
    assert any(x.startswith("Idle until the last rank arrives: 4.37 ms per step (2 %)") for x in rows)


def test_of_hundreds_of_ranks_those_that_were_waited_for_are_shown():
    ranks = [a_rank(kernels=1, steps=0, rng=random.Random(1)) for _ in range(200)]
    for i, rank in enumerate(ranks):
        rank.rank = i
    late = [
        Collective(n=i, group="0", straggler=r, transfer_us=1.0, wait_us={"0": r})
        for i, r in enumerate((7, 150))
    ]
    doc = Document(schema_version=1, source="run", ranks=ranks, collectives=late)
    rows = lines_of(doc)
    first = next(i for i, x in enumerate(rows) if x.split()[:1] == ["rank"])
    assert [x.split()[0] for x in rows[first + 1 : first + 5]] == ["150", "7", "0", "1"]
    assert rows[first + 17].split() == ["and", "184", "more,", "in", "the", "JSON"]


def test_ranks_that_nobody_compared_have_no_lateness():
    ranks = [a_rank(kernels=1, steps=0, rng=random.Random(1)) for _ in range(2)]
    ranks[1].rank = 1
    rows = lines_of(Document(schema_version=1, source="run", ranks=ranks))
    row = next(x for x in rows if x.split()[:1] == ["1"])
    assert row.split() == ["1", "–", "51", "%", "–", "–", "input"]
    assert not any(x.startswith(("late:", "Idle")) for x in rows)


def test_nothing_at_all_is_no_crash():
    empty = Document(schema_version=1, source="x.json", ranks=[])
    assert "nothing was analysed" in table(empty)
    assert markdown(empty) == "# `x.json`\n"


# ---- terminals and hostile text ----

HOSTILE = "k\x1b[31m\x1b]0;owned\x07\u202ereversed\ud800|`<script>alert(1)</script>*_[x](y)\nsecond"


def hostile_document() -> Document:
    doc = a_document(kernels=3)
    rank = doc.ranks[0]
    for k in rank.kernels:
        k.short_name = k.name = k.op = HOSTILE
        k.regime = "unknown"
    rank.devices["0"].name = doc.source = HOSTILE
    rank.flags = [Flag("rank_assumed", 1, HOSTILE)]
    rank.grade_reasons = [HOSTILE]
    doc.flags = [Flag(HOSTILE, 1, HOSTILE)]
    return doc


@pytest.mark.parametrize("terminal", [PLAIN, Terminal(unicode=False), Terminal(width=60)])
def test_a_name_from_outside_never_drives_the_terminal(terminal):
    text = render(hostile_document(), "table", terminal).decode()
    assert not set(text) & {"\x1b", "\x07", "\u202e", "\r"}
    assert "\\x1b[31m" in text, "it is shown, escaped"
    assert not re.search(r"^second", text, re.MULTILINE), "a line break in a name starts no line"


def test_markdown_never_lets_a_name_become_markup():
    text = render(hostile_document(), "md").decode()
    assert "\x1b" not in text
    outside_code = re.sub(r"`[^`\n]*`", "", text)
    assert "<script>" not in outside_code
    assert "[x](y)" not in outside_code
    rows = [x for x in text.splitlines() if x.startswith("| `")]
    assert len(rows) == 3
    assert all(len(re.split(r"(?<!\\)\|", r)) == 10 for r in rows), "8 cells"


def test_inline_code_cannot_be_left():
    assert code("a`b|c") == "`a'b\\|c`"
    assert plain("<b>*x*") == "&lt;b&gt;\\*x\\*"
    assert len(code("x" * 70_000)) <= 82


@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_no_line_is_wider_than_the_terminal(width):
    doc = a_document(kernels=20)
    for k in doc.ranks[0].kernels:
        k.op = "aten::_scaled_dot_product_flash_attention_for_cpu_backward"
    too_long = [x for x in lines_of(doc, Terminal(width=width)) if len(x) > max(width, 96)]
    assert too_long == []


def test_plain_ascii_where_the_terminal_has_no_more():
    text = table(a_document(), Terminal(unicode=False))
    assert text.isascii()
    assert "::::" in text
    assert "####" in text


def test_colour_only_paints_and_never_changes_what_is_said():
    painted = table(a_document(), Terminal(colour=True))
    assert "\x1b[38;5;166m" in painted, "input has its colour"
    assert re.sub(r"\x1b\[[0-9;]*m", "", painted) == table(a_document())


class Tty(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


def tty(encoding: str) -> Tty:
    return Tty(io.BytesIO(), encoding=encoding)


def test_colour_needs_a_terminal_and_no_objection(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    assert of_stream(tty("utf-8")).colour
    assert not of_stream(io.TextIOWrapper(io.BytesIO(), encoding="utf-8")).colour
    monkeypatch.setenv("NO_COLOR", "1")
    assert not of_stream(tty("utf-8")).colour
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert not of_stream(tty("utf-8")).colour


def test_unicode_needs_utf8():
    assert of_stream(tty("utf-8")).unicode
    assert of_stream(tty("UTF8")).unicode
    assert not of_stream(tty("latin-1")).unicode
    assert not of_stream(tty("ascii")).unicode


def test_safe_and_fit():
    assert safe("vectorized‹4, float›") == "vectorized‹4, float›"
    assert safe("a\nb\x00") == "a\\nb\\x00"
    assert fit("abcdef", 6) == "abcdef"
    assert fit("abcdefg", 6) == "abcde…"
    assert len(fit("\x00" * 70_000, 20)) == 20
