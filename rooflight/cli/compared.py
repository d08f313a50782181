"""A comparison as a screen worth reading: what differs, by which part of the time, by which kernel."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from fractions import Fraction

from rooflight.cli.terminal import Terminal, fit, safe
from rooflight.comparison import Comparison, GroupChange
from rooflight.comparison.alignment import MATCHES
from rooflight.comparison.comparability import CAUTION, NOT_COMPARABLE, REMARK
from rooflight.comparison.groups import Group
from rooflight.comparison.side import Side
from rooflight.comparison.significance import CANNOT_SAY, LIKELY, SIGNIFICANT, WITHIN_NOISE
from rooflight.comparison.words import headline, ms, signed_ms, signed_pct
from rooflight.protocol import IDLE_PARTS
from rooflight.regimes.steps import GROUPS
from rooflight.report.summary import counted, step_times
from rooflight.report.summary import ms as us_as_ms
from rooflight.units import us

TOP_KERNELS = 12
TOP_NOTES = 8
_DASH = "–"
LABELS = {NOT_COMPARABLE: "Not comparable", CAUTION: "Caution", REMARK: "Note"}
_MARKS = {SIGNIFICANT: "*", LIKELY: "~", WITHIN_NOISE: " ", CANNOT_SAY: "?"}
_LEGEND = (
    "* larger than the noise of the steps, ~ probably, ? cannot say; "
    "solid: the device works, shaded: it waits"
)
_BEFORE_BAR = 2 + 14 + 12 + 12 + 13 + 2
_LESS, _MORE = "B takes less", "B takes longer"
_KERNEL_HEAD = f"  {'B − A ms':>9} {'by calls':>9} {'by time':>9}   {'calls':>13}  {'of roof %':>9}  regime"
_WAS = {"renamed": "name", "moved": "module", "reshaped": "dims", "retyped": "types"}


def table(c: Comparison, terminal: Terminal | None = None) -> str:
    """The comparison as text for ``terminal``; ends with a newline."""
    term = terminal or Terminal()
    lines = [*_runs(c, term), "", *_said(c, term), *_steps(c, term), *_parts(c, term), *_kernels(c, term)]
    return term.final("\n".join(lines) + "\n")


def _runs(c: Comparison, term: Terminal) -> Iterator[str]:
    for which, s in (("A", c.a), ("B", c.b)):
        yield term.strong(fit(f"{which}  {s.document.source}", term.width))
        yield fit(f"   {described(s)}", term.width)
    yield from _notes(c, term)


def described(s: Side) -> str:
    first, several = s.recordings[0], len(s.recordings)
    ranks = f"rank {first.rank.rank}" if several == 1 else f"mean of {several} ranks"
    steps = counted(len(s.steps), "step") if s.by_step else "whole recording"
    return f"{first.name or 'unnamed device'} · {steps} · {ranks} · data {first.rank.grade}"


def _notes(c: Comparison, term: Terminal) -> Iterator[str]:
    # What makes them incomparable is the headline's first sentence.
    notes = [n for n in c.notes if n.weight != NOT_COMPARABLE]
    for n in notes[:TOP_NOTES]:
        text = safe(f"{LABELS[n.weight]}: {n.words}")
        yield from textwrap.wrap(text, term.width, initial_indent=" " * 3, subsequent_indent=" " * 5)
    if len(notes) > TOP_NOTES:
        yield f"   and {len(notes) - TOP_NOTES} more, in the JSON"


def _said(c: Comparison, term: Terminal) -> Iterator[str]:
    for sentence in headline(c):
        for line in textwrap.wrap(safe(sentence), term.width):
            yield term.strong(line)


def _steps(c: Comparison, term: Terminal) -> Iterator[str]:
    if not c.by_step:
        return
    yield ""
    for line in _step_lines(c):
        yield from textwrap.wrap(line, term.width, initial_indent="  ", subsequent_indent=" " * 5)


def _step_lines(c: Comparison) -> Iterator[str]:
    for which, s in (("A", c.a), ("B", c.b)):
        p50 = us_as_ms(step_times([us(t) for t in s.steps]).p50_us)
        span = f"from {ms(Fraction(min(s.steps)))} to {ms(Fraction(max(s.steps)))}"
        yield f"{which}  p50 {p50}, {span}{_attainable(s)}"
    shift = c.total.significance.shift
    if shift is not None and shift.low_ns is not None and shift.high_ns is not None:
        interval = f"{signed_ms(shift.low_ns)} to {signed_ms(shift.high_ns)}"
        yield f"the typical step moves by {signed_ms(shift.ns)} (95 %: {interval})"


def _attainable(s: Side) -> str:
    if s.attainable_ns is None or not s.mean_ns:
        return ""
    return f"; attainable {ms(s.attainable_ns)}, {float(100 * s.attainable_ns / s.mean_ns):.0f} % of the mean"


def _parts(c: Comparison, term: Terminal) -> Iterator[str]:
    names = sorted(c.parts, key=lambda p: -abs(c.parts[p].difference))
    names = [p for p in names if c.parts[p].a or c.parts[p].b]
    largest = max((abs(c.parts[p].difference) for p in names), default=Fraction())
    half = (term.width - _BEFORE_BAR - 1) // 2
    half = half if half >= len(_LESS) else 0
    what = "mean step" if c.by_step else "recording"
    yield ""
    yield term.strong(f"Where the difference of the {what} comes from")
    yield f"  {'':<14}{'A':>12}{'B':>12}{'B − A':>13}  {f'{_LESS:>{half}}|{_MORE}' if half else ''}".rstrip()
    for p in names:
        x = c.parts[p]
        drawn = signed_bar(x.difference, largest, half, idle=p in IDLE_PARTS)
        mark = _MARKS[x.significance.verdict]
        figures = f"{ms(x.a):>12}{ms(x.b):>12}{signed_ms(x.difference):>13}{mark:<2}"
        yield f"  {p:<14}{figures}{term.paint(drawn, GROUPS[p])}".rstrip()
    t, mark = c.total, _MARKS[c.total.significance.verdict]
    share = f"{signed_pct(t.difference, t.a):>{half}}" if half else ""
    figures = f"{ms(t.a):>12}{ms(t.b):>12}{signed_ms(t.difference):>13}{mark:<2}"
    yield term.strong(f"  {'total':<14}{figures}{share}".rstrip())
    yield from textwrap.wrap(_LEGEND, term.width, initial_indent="  ", subsequent_indent="  ")


def signed_bar(value: Fraction, largest: Fraction, half: int, *, idle: bool) -> str:
    """A bar to the left of an axis for what is less, to the right for what is more, ``half`` characters at
    most; never empty for what is not 0, unless there is no room at all."""
    if not half:
        return ""
    if not value or not largest:
        return f"{'':>{half}}|"
    length = round(abs(value) / largest * half)
    drawn = ("▒" if idle else "█") * length or "▏"
    return f"{'':>{half}}|{drawn}" if value > 0 else f"{drawn:>{half}}|"


def _kernels(c: Comparison, term: Terminal) -> Iterator[str]:
    moved = [g for g in c.groups if g.difference]
    if not c.groups:
        return
    what = "Ops" if c.a.recordings[0].on_cpu and c.b.recordings[0].on_cpu else "Kernels"
    yield ""
    unit = "per step" if c.by_step else "in the recording"
    yield term.strong(f"{what} that differ: {len(moved):,} of {counted(len(c.groups), 'group')}, time {unit}")
    if moved:
        yield _KERNEL_HEAD
    for g in moved[:TOP_KERNELS]:
        yield _kernel(g, term)
        yield from _name(g, term)
    rest = moved[TOP_KERNELS:]
    if rest:
        left = sum((g.difference for g in rest), Fraction())
        yield f"  {number(left)} in {counted(len(rest), 'group', 'more ')}, not shown"
    yield from textwrap.wrap(matches(c.groups), term.width, initial_indent="  ", subsequent_indent="  ")


def _kernel(g: GroupChange, term: Terminal) -> str:
    a, b = g.pair.a, g.pair.b
    effects = " ".join(f"{number(x):>9}" for x in (g.difference, g.count_effect, g.duration_effect))
    calls = between(*(f"{float(x.calls):.4g}" if x else None for x in (a, b)))
    of_roof = between(roof(a), roof(b))
    regime = between(*(safe(x.row.regime) if x else None for x in (a, b)), one=True)
    return f"  {effects}   {calls:>13}  {of_roof:>9}  {term.paint(regime, g.pair.shown.row.regime)}"


def _name(g: GroupChange, term: Terminal) -> Iterator[str]:
    shown, said = g.pair.shown, match(g)
    op = f" · {shown.row.op}" if shown.row.op and shown.row.op != shown.row.name else ""
    yield fit(f"      {shown.row.short_name or shown.row.name}{op}", term.width)
    if said:
        yield fit(f"        {said}", term.width)


def match(g: GroupChange) -> str:
    """What there is to say of a pair beyond its name."""
    a, b = g.pair.a, g.pair.b
    if a is None or b is None:
        return "only in B" if a is None else "only in A"
    if g.pair.match == "same":
        return ""
    was = getattr(a.key, _WAS[g.pair.match]) or "not recorded"
    if g.pair.match == "renamed":
        was = a.row.short_name or was
    return f"{g.pair.match}, in A: {was}"


def matches(groups: Sequence[GroupChange]) -> str:
    """How many groups were found in which way, and what they make together."""
    found = []
    for how in MATCHES:
        mine = [g for g in groups if g.pair.match == how]
        if mine:
            together = signed_ms(sum((g.difference for g in mine), Fraction()))
            found.append(f"{len(mine):,} {how} ({together})")
    return ", ".join(found)


def between(a: str | None, b: str | None, *, one: bool = False) -> str:
    """``a→b`` with a dash for what is unknown; with ``one``, what both are is said once, and what only one
    is too."""
    if one and (a is None or b is None):
        return a or b or _DASH
    if a == b and (one or a is None):
        return a or _DASH
    return f"{a or _DASH}→{b or _DASH}"


def roof(g: Group | None) -> str | None:
    # A bound of 0 is none: no work was counted that a known roof limits.
    return f"{100 * g.row.roof_fraction:.0f}" if g and g.row.roof_fraction else None


def number(ns: Fraction) -> str:
    """Milliseconds with their sign and three decimals."""
    return f"{float(ns) / 1e6:+,.3f}".replace("-", "−") if ns else "0"
