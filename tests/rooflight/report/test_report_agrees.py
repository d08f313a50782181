"""Table, Markdown and page of one run: each figure that they show is the JSON's, rounded as it is shown."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from functools import cache

import msgspec
import numpy as np
import pytest

from rooflight.analysis import analyze_files
from rooflight.cli.markdown import markdown
from rooflight.cli.table import table
from rooflight.prices.rate import Rate
from rooflight.protocol import PARTS, Document, Rank, encode
from rooflight.report.html import report
from rooflight.report.money import priced
from tests import shared

pytestmark = pytest.mark.traces
RUNS = {
    "workers0": "v100_resnet50_workers0.pt.trace.json.gz",
    "dlrm": "dlrm_8ranks",
    "qwen": "pairs/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz",
    "cpu only": "hta/cpu_only_rank34.json.gz",
}
TOP = 5


@dataclass(frozen=True)
class Shown:
    """Figures as they stand there; "–" is unknown.  A part is (ms, share), a kernel (ms, share, of roof), a
    finding (saving, share)."""

    verdict: tuple[str, str]
    times: tuple[str, ...]
    parts: dict[str, tuple[str, str]]
    kernels: list[tuple[str, str, str]]
    findings: list[tuple[str, str]]
    use: tuple[str, ...]


@cache
def run(name: str) -> Document:
    path = shared.traces_dir() / RUNS[name]
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    return analyze_files([str(f) for f in files], jobs=1).document


def flat(text: str) -> str:
    return re.sub(r"[ \u00a0]+", " ", text)


def verdict_of(text: str) -> tuple[str, str]:
    found = re.search(r"Bound by (\w+) \((\w+) confidence\)", text)
    assert found
    return found[1], found[2]


def times_of(text: str) -> tuple[str, ...]:
    found = re.search(r"p50 ([\d.,]+ ms|–).{1,3}p95 ([\d.,]+ ms|–).{1,3}p99 ([\d.,]+ ms|–)", text)
    assert found
    return found.groups()


def use_of(text: str) -> tuple[str, ...]:
    found = re.search(r"MFU ([\d.]+) %, HFU ([\d.]+) %", text)
    return found.groups() if found else ()


def of_table(document: Document, rank: Rank) -> Shown:
    lines = [flat(line).strip() for line in table(document).splitlines()]
    begin = next(i for i, line in enumerate(lines) if line.startswith("Bound by"))
    text = "\n".join(lines[begin:])
    ops = text.index("\nOps:" if "\nOps:" in text else "\nKernels:")
    bars = re.findall(r"^(\w+) [▒█▏ ]+(<?[\d.,]+) ms ([\d.]+) %$", text, re.M)
    rows = re.findall(r"^([\d.]+) (<?\d+) % \w+ ((?:\d+ %)|–)!? \S+ \S+ \S", text[ops:], re.M)
    return Shown(
        verdict_of(text),
        times_of(text),
        {name: (value, share) for name, value, share in bars},
        rows[:TOP],
        [_above_title(text, f.title) for f in rank.findings[:TOP]],
        use_of(text),
    )


def _above_title(text: str, title: str) -> tuple[str, str]:
    found = re.search(rf"^(.*?ms|–) (?:(<?\d+) % )?{re.escape(title)}$", text, re.M)
    assert found, title
    return found[1], found[2] or "–"


def of_markdown(document: Document, rank: Rank) -> Shown:
    text = flat(markdown(msgspec.structs.replace(document, ranks=[rank])))
    parts = re.findall(r"^\| (\w+) \| ([\d.]+) \| ([\d.]+) \|", text.partition("| waits for")[0], re.M)
    start = re.search(r"^\| (?:kernel|op) \| calls", text, re.M)
    assert start
    row = r"^\| `.*` \| \d+ \| ([\d.]+) \| ([\d.]+) \| [^|]+ \| (\d+|–) \|"
    lines = [line for line in text.splitlines() if line.startswith("1. **")]
    found = [re.search(r"\*\* \(([\d.,]+ ms|–)(?:, ([\d.]+) %)?", line) for line in lines]
    return Shown(
        verdict_of(text),
        times_of(text),
        {name: (value, share) for name, value, share in parts if name in PARTS},
        re.findall(row, text[start.start() :], re.M)[:TOP],
        [(m[1], m[2] or "–") for m in found if m][:TOP],
        use_of(text),
    )


def of_page(document: Document) -> Shown:
    source = flat(report(document))
    words = _words(source)
    strip = re.findall(r'data-figure="(p\d\d)">([^<]+)<', source)
    parts = {}
    for name, row in re.findall(r'data-part="(\w+)"[^>]*>(.*?)</div>', source):
        *_, value, share, percent = _words(re.sub("<svg.*?</svg>", "", row)).split()
        assert percent == "%"
        parts[name] = (value, share)
    rows = [re.findall(r"<td.*?</td>", tr) for tr in re.findall(r'<tr id="k\d+">(.*?)</tr>', source)]
    saves = re.findall(r'<div class="save">(.*?)</div>', source)
    return Shown(
        verdict_of(words),
        tuple(value for _, value in strip),
        {name: shown for name, shown in parts.items() if name in PARTS},
        # Kernel, Bound by, ms, Share, Calls, p50, p99, FLOP/s, GB/s, FLOP/B, Of roof, Cost
        [(_words(r[2]), _words(r[3]), _words(r[10])) for r in rows[:TOP]],
        [_save(s) for s in saves[:TOP]],
        use_of(words),
    )


def _save(cell: str) -> tuple[str, str]:
    saving, *share = re.findall(r">([^<>]+)<", cell)
    return saving, share[0] if share else "–"


def _words(markup: str) -> str:
    text = re.sub(r"<(script|style|title)\b.*?</\1>", " ", markup, flags=re.S)
    return flat(re.sub("<[^>]+>", " ", text).replace("&lt;", "<").replace("\n", " ")).strip()


def is_shown(text: str, value: float | None) -> bool:
    """Whether a figure is ``value``, rounded to the decimals that it has."""
    number = re.sub("ms|%|above|,| ", "", text)
    if value is None or number == "–":
        return value is None and number == "–"
    if number.startswith("<"):
        return 0 < value < float(number[1:])
    decimals = len(number.partition(".")[2])
    return abs(float(number) - value) <= 0.5 * 10**-decimals * (1 + 1e-9)


def surfaces(name: str) -> list[tuple[str, Shown]]:
    document = run(name)
    rank = document.ranks[0]
    return [
        ("table", of_table(document, rank)),
        ("md", of_markdown(document, rank)),
        ("html", of_page(document)),
    ]


@pytest.mark.parametrize("name", RUNS)
def test_the_three_say_what_the_json_says(name: str, short_plotly: None) -> None:
    document = msgspec.json.decode(encode(run(name)))
    rank = document["ranks"][0]
    source = rank if rank["kernels"] else rank["cpu"]
    steps, rows = source["steps"], rank["kernels"] or rank["cpu"]["ops"]
    n, wall = len(steps), sum(s["step_time_us"] for s in steps) / len(steps)
    walls = [s["step_time_us"] / 1000 for s in steps]
    tails = [float(np.percentile(walls, q)) if n >= 5 or q == 50 else None for q in (50, 95, 99)]
    mean = {p: sum(s["parts_us"][p] for s in steps) / n for p in PARTS}
    longest = sorted(rows, key=lambda k: -k["time_us"])[:TOP]
    for where, shown in surfaces(name):
        assert shown.verdict == (source["regime"], source["regime_confidence"]), where
        assert all(map(is_shown, shown.times, tails)), (where, shown.times, tails)
        assert shown.parts.keys() == {p for p, us in mean.items() if us > 0}, where
        for part, (value, share) in shown.parts.items():
            assert is_shown(value, mean[part] / 1000), (where, part, value)
            assert is_shown(share, 100 * mean[part] / wall), (where, part, share)
        assert len(shown.kernels) == len(longest), where
        for k, (ms, share, roof) in zip(longest, shown.kernels, strict=True):
            assert is_shown(ms, k["time_us"] / 1000 / n), (where, k["name"], ms)
            assert is_shown(share, k["share_pct"]), (where, k["name"], share)
            of_roof = 100 * k["roof_fraction"] if k["roof_fraction"] else None
            assert is_shown(roof, of_roof), (where, k["name"], roof)
        assert len(shown.findings) == len(rank["findings"][:TOP]), where
        for f, (saving, share) in zip(rank["findings"], shown.findings, strict=False):
            us = f["saving_us"]
            assert _is_time(saving, us), (where, f["code"], saving)
            assert is_shown(share, None if us is None else 100 * us / wall), (where, f["code"], share)
        use = [[s.get(k) for s in steps if s.get(k) is not None] for k in ("mfu", "hfu")]
        assert len(shown.use) == (2 if all(use) else 0), (where, shown.use)
        assert all(is_shown(u, sum(v) / len(v)) for u, v in zip(shown.use, use, strict=False)), where


def _is_time(text: str, us: float | None) -> bool:
    return is_shown(text, None if us is None else us / 1000)


def money_words(text: str) -> list[str]:
    """Every amount with what it is of, in the order of the text."""
    of = "per GPU and hour|per hour|per 1,000 steps|of each hour above attainable"
    return re.findall(rf"\$[\d.,]+ (?:{of})", re.sub(r"\s+", " ", text))


@pytest.mark.parametrize("name", ["workers0", "dlrm", "qwen"])
def test_the_three_say_the_same_money(name: str, short_plotly: None) -> None:
    """At 3.06 for a GPU hour: a share of an hour's price, and 3.06 / 3,600 s for each second."""
    document = priced(run(name), Rate(Decimal("3.06")))
    rank = document.ranks[0]
    wall = sum(s.step_time_us for s in rank.steps) / len(rank.steps)
    assert document.price
    hour = 3.06 * document.price.devices
    alone = msgspec.structs.replace(document, ranks=[rank])
    page = flat(report(document))
    texts = [flat(table(alone)), flat(markdown(alone)), _words(page)]
    price = f"$3.06 per GPU and hour (as given), {document.price.devices} GPU"
    assert all(price in re.sub(r"\s+", " ", t.replace("\\", "")) for t in texts)
    amounts = [sorted(set(money_words(t))) for t in texts]
    top = [f for f in rank.findings[:TOP] if f.saving_us is not None]
    for shown in amounts:
        for f in top:
            assert f.saving_us is not None
            for of, usd in (("hour", hour * f.saving_us / wall), ("1,000 steps", hour * f.saving_us / 3.6e6)):
                found = [float(t[1:].split()[0].replace(",", "")) for t in shown if t.endswith(f"per {of}")]
                assert any(abs(v - usd) <= 0.05 * usd for v in found), (f.code, of, usd, found)
    assert amounts[0] == amounts[1]
    strip = re.search(r'data-figure="money">([^<]+)<', page)
    assert strip  # its label, "Per 1,000 steps", stands above it
    assert set(amounts[0]) <= {*amounts[2], f"{strip[1]} per 1,000 steps"}


def test_a_figure_that_differs_in_its_last_digit_is_found() -> None:
    assert is_shown("58.73 ms", 58.7349)
    assert not is_shown("58.73 ms", 58.7361)
    assert not is_shown("–", 0.0)
    assert not is_shown("0.00", None)
    assert is_shown("<1 %", 0.4)
    assert not is_shown("<1 %", 0.0)
