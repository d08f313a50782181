"""A comparison as Markdown, for a pull request or a wiki."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from rooflight.cli.compared import LABELS, TOP_KERNELS, between, described, match, matches, number, roof
from rooflight.cli.markdown import code, plain
from rooflight.comparison import Comparison, GroupChange
from rooflight.comparison.words import headline, signed_ms
from rooflight.report.summary import counted


def markdown(c: Comparison) -> str:
    """The comparison as Markdown; every name from outside is code, never markup."""
    lines = [f"# {code(c.b.document.source)} against {code(c.a.document.source)}", ""]
    lines += [f"**{plain(sentence)}**" for sentence in headline(c)] + [""]
    lines += [f"- {which}: {plain(described(s))}" for which, s in (("A", c.a), ("B", c.b))]
    lines += [f"- {LABELS[n.weight]}: {plain(n.words)}" for n in c.notes]
    return "\n".join([*lines, "", *_parts(c), *_kernels(c)]).rstrip() + "\n"


def _parts(c: Comparison) -> Iterator[str]:
    yield "| part | A ms | B ms | B − A ms | |"
    yield "|---|---:|---:|---:|---|"
    for p in sorted(c.parts, key=lambda p: -abs(c.parts[p].difference)):
        x = c.parts[p]
        if x.a or x.b:
            said = x.significance.verdict.replace("_", " ")
            yield f"| {p} | {_plain_ms(x.a)} | {_plain_ms(x.b)} | {number(x.difference)} | {said} |"
    t, said = c.total, c.total.significance.verdict.replace("_", " ")
    yield f"| total | {_plain_ms(t.a)} | {_plain_ms(t.b)} | {number(t.difference)} | {said} |"
    yield ""


def _kernels(c: Comparison) -> Iterator[str]:
    moved = [g for g in c.groups if g.difference]
    if moved:
        yield "| B − A ms | by calls | by time | calls | of roof % | regime | kernel |"
        yield "|---:|---:|---:|---:|---:|---|---|"
    for g in moved[:TOP_KERNELS]:
        yield _kernel(g)
    if len(moved) > TOP_KERNELS:
        left = sum((g.difference for g in moved[TOP_KERNELS:]), Fraction())
        yield ""
        yield f"Not shown: {counted(len(moved) - TOP_KERNELS, 'group', 'more ')}, {signed_ms(left)} together."
    if c.groups:
        yield ""
        yield f"Groups: {matches(c.groups)}."


def _kernel(g: GroupChange) -> str:
    a, b, row = g.pair.a, g.pair.b, g.pair.shown.row
    said = f", {plain(match(g))}" if match(g) else ""
    cells = (
        *(number(x) for x in (g.difference, g.count_effect, g.duration_effect)),
        between(*(f"{float(x.calls):.4g}" if x else None for x in (a, b))),
        between(roof(a), roof(b)),
        plain(between(*(x.row.regime if x else None for x in (a, b)), one=True)),
        f"{code(row.short_name or row.name)}{said}",
    )
    return f"| {' | '.join(cells)} |"


def _plain_ms(ns: Fraction) -> str:
    return f"{float(ns) / 1e6:,.3f}"
