"""The report holds the numbers of the analysis, all of them as text, as the table and Markdown do."""

from __future__ import annotations

import itertools
import json
import random
import re
from decimal import Decimal

import pytest

from rooflight.cli.analyze import render
from rooflight.cli.markdown import markdown
from rooflight.cli.table import table
from rooflight.findings import all_rules
from rooflight.prices.money import Money, amount, money
from rooflight.prices.rate import Rate
from rooflight.protocol import Evidence
from rooflight.report.html import Options, report
from tests.factories import a_document, a_rank
from tests.rooflight.report.reading import a_finding, page


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
