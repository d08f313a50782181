"""The report in one file: it holds the numbers of the analysis, all of them as text, and loads nothing."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import random
import re
from decimal import Decimal
from html.parser import HTMLParser
from pathlib import Path

import pytest

from rooflight.cli.analyze import render
from rooflight.cli.main import main
from rooflight.cli.markdown import markdown
from rooflight.cli.table import table
from rooflight.errors import MissingExtra, Refused
from rooflight.findings import all_rules
from rooflight.prices.money import Money, amount, money
from rooflight.prices.rate import Rate
from rooflight.protocol import Ceiling, Cpu, CpuStep, Document, Evidence, Finding, Flag, Parts, encode
from rooflight.report import html as html_module
from rooflight.report import library
from rooflight.report.html import Options, report
from rooflight.report.markup import Html, data, join, script, style, tag
from rooflight.report.waterfall import MAX_STEPS, ROWS_OF_STEPS
from tests.factories import a_document, a_kernel, a_rank, v100_roofs
from tests.shared import CHECKOUT

EVIL = "</script><img src=x onerror=\"document.title='hacked'\"><4, at::FillFunctor<int>>\u202e\x00\ud800"


@pytest.fixture(autouse=True)
def short_plotly(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library is 4.8 MB and the same in every report; one test reads it."""
    monkeypatch.setattr(html_module, "plotly_js", lambda: "/* plotly */")


class Page(HTMLParser):
    """What a browser would find: elements, text by element, attributes."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.text: list[str] = []
        self.scripts: list[tuple[dict[str, str], str]] = []
        self.open: list[str] = []
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {k: v or "" for k, v in attrs}
        self.tags.append((tag, given))
        if tag == "script":
            self.scripts.append((given, ""))
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts[-1] = (self.scripts[-1][0], self.scripts[-1][1] + data)
        elif not self.open or self.open[-1] != "style":
            self.text.append(data)

    @property
    def words(self) -> str:
        return re.sub(r"[\s\u00a0]+", " ", " ".join(self.text))

    def figure(self) -> dict[str, object]:
        return dict(json.loads(next(body for given, body in self.scripts if given.get("id") == "figure")))


def page(document: Document, options: Options | None = None) -> Page:
    return Page(report(document, options or Options()))


def a_finding(saving_us: float | None = 17_480.0, **given: object) -> Finding:
    fields: dict[str, object] = {
        "code": "input-starved", "title": "The device waits", "assumption": "no batch is late",
        "evidence": [Evidence("three waits", [0, 5_000], [5, 6])], "fix": "Give it workers; look again.",
        "regime": "input",
    }  # fmt: skip
    return Finding(saving_us=saving_us, **{**fields, **given})  # type: ignore[arg-type]


# ---- the numbers ----


def test_table_markdown_page_and_json_tell_the_same() -> None:
    doc = a_document()
    doc.ranks[0].findings = [a_finding(), a_finding(8_740.0, title="Another")]
    saved = json.loads(render(doc, "json"))["ranks"][0]
    texts = {"table": table(doc), "md": markdown(doc), "html": page(doc).words}
    for name, text in texts.items():
        flat = re.sub(r"[\s\u00a0]+", " ", text)
        # a_step: input 58.7 of 174.8 ms = 33.58 %; 68.4 attainable = 39.1 %
        assert "58.70 ms of 174.8 ms per step (34 %) are waiting for input data" in flat, name
        assert "68.40 ms" in flat, name
        assert flat.count("174.8 ms") >= 3, f"{name}: p50, p95, p99"
        for word in ("input", "high confidence", "V100", "12 % of kernel time", saved["grade"]):
            assert word.lower() in flat.lower(), (name, word)
        for f in saved["findings"]:  # 17.48 and 8.74 ms
            assert f["title"] in flat, name
            assert f"{f['saving_us'] / 1000:.2f} ms" in flat, name


def test_every_part_has_the_time_and_share_of_the_json() -> None:
    doc = a_document()
    source = report(doc)
    # a_step: 40 + 30 + 20 + 5 + 1.8 + 58.7 + 12.2 + 3.3 + 1 + 2.8 = 174.8 ms
    shares = {"compute": "22.9", "memory": "17.2", "latency": "11.4", "unknown": "2.9",
              "copy": "1.0", "input": "33.6", "dispatch": "7.0", "launch": "1.9",
              "host": "0.6", "dependency": "1.6"}  # fmt: skip
    parts = doc.ranks[0].steps[0].parts_us
    md = markdown(doc)
    for part, share in shares.items():
        row = re.search(rf'data-part="{part}">(.*?)</div>', source)
        assert row, part
        time = getattr(parts, part) / 1000
        words = re.sub(r"<[^>]+>|\s", " ", re.sub(r"<title>.*?</title>", "", row[1])).split()
        assert words[-3:] == [f"{time:.2f}", share, "%"], part
        assert f"| {part} | {time:.3f} | {share} |" in md
        line = next(x for x in table(doc).splitlines() if x.split()[:1] == [part] and x.endswith("%"))
        assert line.split()[-4:] == [f"{time:.2f}", "ms", share, "%"]
    assert 'data-part="communication"' not in source, "what takes no time has no line"


def test_bars_of_the_waterfall_hang_from_one_another_and_end_at_nothing() -> None:
    source = report(a_document())
    spans = []
    for part in re.findall(r'data-part="(\w+)"', source)[1:-1]:
        row = re.search(rf'data-part="{part}">(.*?)</div>', source)
        assert row
        found = re.search(r'class="f" x="([\d.]+)%" width="([\d.]+)%"', row[1])
        assert found
        spans.append((float(found[1]), float(found[2])))
    assert spans[0][0] + spans[0][1] == pytest.approx(100.0, abs=0.01), "the first begins at the wall's end"
    for (x, _), (lower, width) in itertools.pairwise(spans):
        assert lower + width == pytest.approx(x, abs=0.01)
    assert spans[-1][0] == 0.0


def test_percentiles_are_shown_and_tails_of_few_steps_are_not() -> None:
    figures = r'data-figure="(p\d\d)">([^<]+)<'
    assert re.findall(figures, report(a_document(steps=5))) == [
        ("p50", "174.8\u00a0ms"), ("p95", "174.8\u00a0ms"), ("p99", "174.8\u00a0ms")]  # fmt: skip
    assert re.findall(figures, report(a_document(steps=4)))[1:] == [("p95", "–"), ("p99", "–")]


def test_the_table_holds_200_groups_and_says_what_the_others_come_to() -> None:
    doc = a_document(kernels=230)
    ordered = sorted(doc.ranks[0].kernels, key=lambda k: -k.time_us)
    found = page(doc)
    assert len([1 for tag, given in found.tags if tag == "tr" and given.get("id", "").startswith("k")]) == 200
    left = sum(k.time_us for k in ordered[200:]) / 1000 / 6  # 6 steps
    calls = sum(k.count for k in ordered[200:])
    assert f"30 more groups with {left:,.3f} ms per step, {calls:,} calls" in found.words


def test_evidence_links_only_to_rows_that_are_there() -> None:
    doc = a_document(kernels=3)
    doc.ranks[0].findings = [a_finding(evidence=[Evidence("seen", [2, -1, 7, 10**9], [])])]
    links = [given["href"] for tag, given in page(doc).tags if tag == "a"]
    assert links == ["#k2"]


def test_a_finding_says_why_it_costs_and_when_it_is_wrong() -> None:
    doc = a_document()
    rule = next(r for r in all_rules() if r.code == "input-starved")
    doc.ranks[0].findings = [a_finding(), a_finding(None, code="of-a-later-version", title="Unheard of")]
    words = page(doc).words
    alarms = " ".join(rule.false_alarms.split())
    for said in (rule.why, alarms, "no batch is late", "three waits", "(steps 5, 6)",
                 "Give it workers; look again.", "Unheard of", "10.0 %"):  # fmt: skip
        assert said in words  # 17.48 / 174.8 = 10 %


def test_money_is_shown_only_at_a_price() -> None:
    doc = a_document()
    doc.ranks[0].findings = [a_finding()]
    assert "$" not in page(doc).words
    words = page(doc, Options(rate=Rate(Decimal("3.60")))).words
    # 3.60 USD/h x 174.8 ms x 1,000 steps / 3,600 s = 0.1748 USD; the finding: a tenth of it
    assert "$0.175" in words
    assert "$0.360 per hour, $0.017 per 1,000 steps" in words
    # (174.8 - 68.4) / 174.8 x 3.60 USD = 2.191 USD of each hour
    assert "$2.19 of each hour above attainable" in words


def test_money_counts_every_gpu_of_the_recordings() -> None:
    doc = a_document()
    doc.ranks.append(a_rank(kernels=1, steps=1, rng=random.Random(2)))
    assert money(doc, Rate(Decimal(2))) == Money(Rate(Decimal(2)), 2)
    # 2 USD x 2 GPUs x 0.9 s x 1,000 / 3,600 s = 1 USD
    assert Money(Rate(Decimal(2)), 2).per_1000_steps(900_000.0) == pytest.approx(1.0)
    assert Money(Rate(Decimal(2)), 2).per_hour(1.0, 4.0) == pytest.approx(1.0)  # a quarter of 4 USD
    assert Money(Rate(Decimal(2)), 2).per_hour(1.0, 0.0) is None
    doc.ranks[0].devices = doc.ranks[1].devices = {}
    assert money(doc, Rate(Decimal(2))) is None, "no GPU, no money"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (0.0, "$0.000"),
        (0.00512, "$0.0051"),
        (0.0499, "$0.050"),
        (2.191, "$2.19"),
        (12345.6, "$12,346"),
    ],
)
def test_amounts_have_sensible_digits(value: float | None, text: str) -> None:
    assert amount(value) == text


# ---- what there may be ----


def test_many_steps_stand_side_by_side_and_the_rest_is_counted() -> None:
    few, many = page(a_document(steps=ROWS_OF_STEPS)), page(a_document(steps=MAX_STEPS + 3))
    assert len([1 for _, given in few.tags if "data-step" in given]) == ROWS_OF_STEPS
    assert (
        len([1 for tag, given in many.tags if tag == "li" and given.get("title", "").startswith("Step ")])
        == 400
    )
    assert "the first 400 of 403" in many.words


def test_a_recording_without_steps_shows_its_whole() -> None:
    words = page(a_document(steps=0)).words
    assert "Where the time goes" in words
    assert "per step" not in words
    assert "no steps are known" in words


def test_a_withheld_verdict_gives_its_reason_in_the_same_place() -> None:
    doc = a_document()
    doc.ranks[0].regime, doc.ranks[0].verdict_withheld = None, "salvaged: the file ends early"
    assert "No verdict: salvaged: the file ends early." in page(doc).words


def test_an_attainable_time_that_rests_on_the_unknown_is_not_told() -> None:
    doc = a_document(steps=1)
    parts = doc.ranks[0].steps[0].parts_us
    assert parts is not None
    parts.compute = parts.memory = 10_000.0
    parts.latency, parts.unknown = 0.0, 20_000.0  # half of 40 ms: still told
    assert "68.40 ms of" in page(doc).words
    assert "50 % of the work has no known bound and counts in full" in page(doc).words
    parts.unknown = 30_000.0  # 60 % of 50 ms
    words = page(doc, Options(rate=Rate(Decimal(3)))).words
    assert "Of attainable – the bound of 60 % of the work is unknown" in words
    assert "above attainable" not in words
    assert "attainable  – (the bound of 60 % of the time of kernels is unknown)" in table(doc)
    assert "- Attainable: –" in markdown(doc)


def test_the_strip_tells_the_share_of_the_regime_and_of_the_next() -> None:
    # a_step: input 58.7 of 174.8 ms, compute 40 = 22.9 %
    assert "34 % of the wall time, compute 23 %" in page(a_document()).words


def test_a_recording_of_the_cpu_shows_its_ops() -> None:
    doc = a_document(kernels=2)
    rank = doc.ranks[0]
    step = CpuStep(1, 100.0, Parts(compute=60.0, host=40.0), attainable_us=50.0)
    ops = rank.kernels
    rank.cpu = Cpu(v100_roofs(), steps=[step], ops=ops, regime="host", regime_confidence="low", name="A CPU")
    rank.devices, rank.kernels, rank.steps = {}, [], []
    words = page(doc, Options(rate=Rate(Decimal(3)))).words
    assert "A CPU" in words
    assert "2 groups" in words
    assert "GFLOP/s" in words
    assert "$" not in words, "the price is that of a GPU"


def test_ranks_stand_side_by_side_and_one_is_chosen() -> None:
    doc = a_document()
    second = a_rank(kernels=4, steps=2, rng=random.Random(3))
    second.rank, second.regime = 3, "copy"
    doc.ranks.append(second)
    doc.world_size, doc.missing_ranks = 4, [1, 2]
    words = page(doc).words
    assert "missing: 1, 2" in words
    assert "The other sections are those of rank 0." in words
    assert "Bound by copy" in page(doc, Options(rank=3)).words
    with pytest.raises(Refused, match="rank 2 is not among"):
        report(doc, Options(rank=2))


def test_nothing_analysed_is_said() -> None:
    assert "Nothing was analysed" in page(Document(1, "empty", [])).words


def test_an_unknown_figure_is_a_dash_with_its_reason() -> None:
    doc = a_document(kernels=1)
    k = doc.ranks[0].kernels[0]
    k.flops = k.bytes = k.roof_fraction = k.achieved_tflops = k.achieved_gbs = k.ai = None
    k.cost_reason = "no shapes"
    row = re.search(r'<tr id="k0">(.*?)</tr>', report(doc))
    assert row
    assert row[1].count('<span class="mute" title="no shapes">–</span>') == 3  # rates and intensity
    assert 'title="FLOPs or bytes unknown">–</span>' in row[1], "why it has no place under a roof"


# ---- hostile input ----


def test_names_from_outside_are_text_wherever_they_stand() -> None:
    doc = a_document(kernels=8, source=EVIL)
    rank = doc.ranks[0]
    for k in rank.kernels:
        k.name = k.short_name = k.op = k.module = k.input_dims = k.reason = k.cost_reason = k.origin = EVIL
        k.regime = EVIL
    rank.host = rank.regime_reason = rank.regime = rank.regime_confidence = EVIL
    rank.grade, rank.grade_reasons, rank.software = EVIL, [EVIL], {EVIL: EVIL}
    rank.flags, rank.invalid_events = [Flag(EVIL, 1, EVIL)], {EVIL: 3}
    rank.devices["0"].name = rank.roofs["0"].name = EVIL
    rank.roofs["0"].compute[EVIL] = rank.roofs["0"].compute["fp32"]
    rank.findings = [a_finding(code=EVIL, title=EVIL, assumption=EVIL, fix=EVIL, regime=EVIL,
                               evidence=[Evidence(EVIL)])]  # fmt: skip
    rank.regime = "input"
    source = report(doc)
    source.encode("utf-8")
    found = Page(source)
    assert not [given for tag, given in found.tags if tag == "img" or "onerror" in given]
    assert len(found.scripts) == 3, "the library, our own and the figure"
    assert "<img" not in source.replace("\\u003c", "")
    assert "\u202e" not in source
    assert "\x00" not in source
    assert "FillFunctor<int>" in found.words, "read as text, nothing of it is lost"
    assert "<" not in next(body for given, body in found.scripts if given.get("id") == "figure")


def test_a_regime_that_we_do_not_know_is_shown_as_it_came() -> None:
    doc = a_document()
    doc.ranks[0].regime = doc.ranks[0].kernels[0].regime = "quantum"
    assert "Bound by quantum (high confidence)." in page(doc).words
    assert "Bound by quantum (high confidence)." in table(doc)
    assert 'class="sw r-unknown"></i>quantum' in report(doc)


def test_figures_that_cannot_be_break_no_report() -> None:
    doc = a_document(kernels=3)
    rank = doc.ranks[0]
    rank.kernels[0].time_us, rank.kernels[1].time_us = 1e-320, 1e308
    rank.kernels[2].flops, rank.kernels[2].histogram = 2**63 - 1, [-1]
    rank.roofs["0"].memory = Ceiling(-1.0, 1e308)
    rank.steps[0].parts_us, rank.steps[1].parts_us = Parts(compute=1e308), Parts(compute=-5.0)
    rank.steps[2].step_time_us = rank.steps[2].attainable_us = 1e308
    rank.findings = [a_finding(1e308), a_finding(-1.0)]
    assert "Rooflight" in page(doc).words


def test_a_hostile_name_is_shortened() -> None:
    doc = a_document(kernels=1)
    doc.ranks[0].kernels[0].name = doc.ranks[0].kernels[0].short_name = "x" * 65_536
    assert "x" * 601 not in report(doc)


def test_markup_is_made_only_of_tags() -> None:
    assert tag("p", "a < b & c", cls='x"y', data_n=1.5, title=None) == (
        '<p class="x&quot;y" data-n="1.5">a &lt; b &amp; c</p>'
    )
    assert tag("p", tag("b", "x"), Html("<i></i>")) == "<p><b>x</b><i></i></p>"
    assert join(["<", tag("meta", charset="utf-8")]) == '&lt;<meta charset="utf-8">'
    assert tag("p", "a\u202eb\x1b") == "<p>a\\u202eb\\x1b</p>"
    assert tag("p", "3\u00a0ms") == "<p>3\u00a0ms</p>", "the space before a unit stays"


def test_data_cannot_end_its_block_and_is_strict() -> None:
    assert data({"a": "</script><!--"}, "x") == (
        '<script type="application/json" id="x">{"a":"\\u003c/script>\\u003c!--"}</script>'
    )
    with pytest.raises(ValueError, match="JSON compliant"):
        data(float("nan"), "x")


@pytest.mark.parametrize("source", ["a</SCRIPT>", "a<!--b"])
def test_a_script_that_would_end_early_is_refused(source: str) -> None:
    with pytest.raises(ValueError, match="script"):
        script(source)


def test_a_style_sheet_that_would_end_early_is_refused() -> None:
    with pytest.raises(ValueError, match="style"):
        style("a</style>")


# ---- the file ----


def test_only_its_own_scripts_may_run_and_nothing_be_loaded() -> None:
    found = page(a_document())
    policy = next(g["content"] for t, g in found.tags if g.get("http-equiv") == "Content-Security-Policy")
    ran = [body for given, body in found.scripts if "type" not in given]
    digests = [base64.b64encode(hashlib.sha256(body.encode()).digest()).decode() for body in ran]
    assert len(ran) == 2
    allowed = " ".join(f"'sha256-{d}'" for d in digests)
    assert f"script-src {allowed};" in policy
    assert policy.startswith("default-src 'none'")
    loads = [(t, g) for t, g in found.tags if {"src", "action", "srcset"} & g.keys() or t in ("link", "base")]
    assert loads == []
    assert all(g.get("href", "#").startswith("#") for _, g in found.tags)


def test_the_library_is_that_of_the_installed_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    text = library.plotly_js()
    assert "plotly.js v" in text[:200]
    assert script(text), "it can stand inside a page"
    monkeypatch.setattr(library.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"rooflight\[notebook\]"):
        library.plotly_js()


def test_colours_are_those_of_the_pages() -> None:
    ours = CHECKOUT / "rooflight/report/assets/tokens.css"
    assert ours.read_bytes() == (CHECKOUT / "web/static/css/tokens.css").read_bytes()


def test_every_class_of_the_page_has_its_rule() -> None:
    doc = a_document(kernels=230, steps=30)
    doc.ranks[0].findings = [a_finding()] * 4
    doc.ranks[0].kernels[0].above_peak = True
    source, rules = report(doc), (CHECKOUT / "rooflight/report/assets/report.css").read_text()
    used = {c for _, given in Page(source).tags for c in given.get("class", "").split()}
    named = set(re.findall(r"\.([a-z][\w-]*)", rules))
    assert used - named == set()


def test_the_figure_is_that_of_the_figures_package() -> None:
    from rooflight.figures.roofline import roofline

    doc = a_document()
    assert page(doc).figure() == json.loads(json.dumps(roofline(doc)))


# ---- the command ----


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


def test_many_groups_stay_a_small_file() -> None:
    doc = a_document(kernels=1, steps=500)
    rng = random.Random(1)
    doc.ranks[0].kernels = [a_kernel(i, rng) for i in range(20_000)]
    for k in doc.ranks[0].kernels:
        k.name = k.short_name = k.name + "x" * 2_000
    # The library has 4.8 MB of the 8 that a report may have.
    assert len(report(doc).encode()) < 3_000_000
