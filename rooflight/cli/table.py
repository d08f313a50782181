"""An analysis as a screen worth reading: verdict first, then where the time goes, then the kernels."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence

from rooflight.cli.terminal import Terminal, fit, safe
from rooflight.prices.money import Money
from rooflight.protocol import IDLE_PARTS, Coverage, Document, Flag, Kernel, Parts, Rank
from rooflight.regimes.steps import GROUPS
from rooflight.report.collectives import (
    TOP_COLLECTIVES,
    bandwidth,
    collective,
    of_link,
    slowed,
    slower,
)  # fmt: skip
from rooflight.report.cuts import phases, phases_said
from rooflight.report.money import cost_of, in_words, money_of, price_line, saved, together_us
from rooflight.report.stragglers import Stragglers, stragglers
from rooflight.report.summary import (
    WATERFALL,
    Summary,
    because,
    counted,
    first_sentence,
    first_step,
    in_column,
    missing,
    ms,
    rate,
    share_pct,
    summarise,
    title,
    utilisation,
    verdict,
)  # fmt: skip
from rooflight.report.waits import Wait, waits
from rooflight.results.energy import energy_in_words
from rooflight.results.throughput import throughputs

TOP_RANKS = 16
TOP_KERNELS = 12
TOP_FINDINGS = 5
TOP_FLAGS = 12
_DASH = "–"
_COLUMNS = " share  regime          roof  {}   GB/s  "
_BEFORE_NAME = 2 + 9 + len(_COLUMNS.format("TFLOP/s"))
_BEFORE_REGIME = 2 + 9 + 6 + 2
_NAMESPACE = re.compile(r"\w+::(?=\w)")
_BEFORE_FINDING = 2 + 11 + 6 + 2
_BEFORE_WAIT = _BEFORE_FINDING + 13


def table(document: Document, terminal: Terminal | None = None) -> str:
    """The document as text for ``terminal``; ends with a newline."""
    term = terminal or Terminal()
    lines = [*_run(document, term)]
    if document.ranks:
        lines += _rank(document, document.ranks[0], term)
    lines += _flags(document.flags, "Flags of the run", term)
    return term.final("\n".join(lines) + "\n")


def _run(document: Document, term: Terminal) -> Iterator[str]:
    yield term.strong(fit(document.source, term.width))
    if not document.ranks:
        yield "nothing was analysed"
    if absent := missing(document):
        of = document.world_size or "an unknown number"
        yield from _hanging(f"ranks missing of {of}: {absent}", 2, term)
    if len(document.ranks) > 1:
        yield from _ranks(document, term)


def _ranks(document: Document, term: Terminal) -> Iterator[str]:
    late = stragglers(document)
    yield ""
    yield f"{'rank':>6}  {'step p50':>11}  {'busy':>6}  {'late':>6}  {'waited for':>11}  regime"
    for rank in _shown(document, late):
        s = summarise(rank)
        busy = _percent(rank.busy_pct)
        times = f"{late.times.get(rank.rank, 0):,}" if late.known else _DASH
        cost = ms(late.caused_us.get(rank.rank, 0.0) if late.known else None)
        regime = term.paint(s.regime, s.regime) if s.regime else f"{_DASH} {safe(s.reason)}"
        yield f"{rank.rank:>6}  {ms(s.times.p50_us):>11}  {busy:>6}  {times:>6}  {cost:>11}  {regime}"
    if len(document.ranks) > TOP_RANKS:
        yield f"        and {len(document.ranks) - TOP_RANKS:,} more, in the JSON"
    yield from _late(late)
    yield f"Below: rank {document.ranks[0].rank}"
    yield ""


def _shown(document: Document, late: Stragglers) -> list[Rank]:
    """All ranks where they are few, else those that the others waited longest for."""
    if len(document.ranks) <= TOP_RANKS:
        return document.ranks
    return sorted(document.ranks, key=lambda r: (-late.caused_us.get(r.rank, 0.0), r.rank))[:TOP_RANKS]


def _late(late: Stragglers) -> Iterator[str]:
    if late.known:
        yield f"late: how often it came last of {counted(late.known, 'collective')}; waited for: how long the"
        yield "others waited for it then, added up over them"
    if late.wait_us is not None and late.step_us:
        share = _percent(100 * late.wait_us / late.step_us)
        yield f"Idle until the last rank arrives: {ms(late.wait_us)} per step ({share}), mean over ranks"


def _rank(document: Document, rank: Rank, term: Terminal) -> Iterator[str]:
    s = summarise(rank)
    speeds = [speed.line(money_of(document)) for speed in throughputs(document)]
    yield from _headline(rank, s, speeds, money_of(document), term)
    if s.parts:
        yield from _waterfall(rank, s.parts, s, term)
    yield from _waits(waits(rank, s), s, term)
    yield from _findings(rank, s, money_of(document), term)
    yield from _kernels(s, term)
    yield from _communication(rank, s, term)
    yield ""
    yield from _coverage(rank.coverage, s, term)
    yield from _flags(rank.flags, "Flags", term)


def _headline(
    rank: Rank, s: Summary, speeds: Sequence[str], money: Money | None, term: Terminal
) -> Iterator[str]:
    yield f"{safe(s.device)} · {counted(s.times.n, s.step)} · rank {rank.rank}"
    yield ""
    for sentence in (verdict(s), f"First: {first_step(s)}"):
        yield from _wrapped(safe(sentence), term, strong=sentence.startswith(("Bound", "No verdict")))
    yield ""
    t = s.times
    yield f"  step time   p50 {ms(t.p50_us)} · p95 {ms(t.p95_us)} · p99 {ms(t.p99_us)}{_few(t.n)}"
    for speed in speeds:
        yield from _hanging(f"  throughput  {safe(speed)}", 14, term)
    if rank.energy is not None:
        yield from _hanging(f"  energy      {safe(energy_in_words(rank.energy))}", 14, term)
    what = "ops" if s.on_cpu else "kernels"
    if s.attainable_pct is not None:
        share = f"{s.attainable_pct:.0f} % of the step time"
        how = f"without waiting and with all known {what} at their practical roof"
        yield from _hanging(f"  attainable  {ms(s.attainable_us)}, {share}, {how}", 14, term)
    elif s.attainable_us is not None:
        unknown = f"{s.unbounded_pct or 0.0:.0f} % of the time of {what}"
        yield f"  attainable  {_DASH} (the bound of {unknown} is unknown)"
    if said := utilisation(s):
        yield f"  utilisation {said}"
    if money is not None:
        yield from _hanging(f"  price       {'; '.join([price_line(money), *cost_of(s, money)])}", 14, term)
    yield from _grade(rank, term)


def _few(n: int) -> str:
    return f" (too few steps for tails: {n})" if 0 < n < 5 else ""


def _grade(rank: Rank, term: Terminal) -> Iterator[str]:
    text = "; ".join(safe(r) for r in rank.grade_reasons) or "nothing is missing"
    yield from textwrap.wrap(
        f"{safe(rank.grade)}: {text}",
        term.width,
        initial_indent="  data        ",
        subsequent_indent=" " * 14,
    )


def _waterfall(rank: Rank, parts: Parts, s: Summary, term: Terminal) -> Iterator[str]:
    step = f"{'an' if s.inferred else 'a'} {s.step} (mean of {s.times.n})"
    what = "the recording" if s.whole else step
    yield ""
    where = f" on {s.of_device}" if s.of_device else ""
    yield term.strong(f"Where the wall time of {what}{where} goes: {ms(s.wall_us)}")
    width = term.width - 2 - 14 - 12 - 8
    start = 0.0
    for name in WATERFALL:
        value = getattr(parts, name)
        if value <= 0 or not s.wall_us:
            continue
        drawn = bar(start / s.wall_us, (start + value) / s.wall_us, width, idle=name in IDLE_PARTS)
        share = f"{100 * value / s.wall_us:.1f} %"
        yield f"  {name:<14}{term.paint(drawn, GROUPS[name])}{in_column(value, s.decimals):>9} ms{share:>8}"
        start += value
    yield "  solid: the device works; shaded: it waits"
    if said := phases_said(phases(rank, s), s.decimals):
        yield from _below(f"by phase: {said}", term, 2)


def _waits(found: Sequence[Wait], s: Summary, term: Terminal) -> Iterator[str]:
    if not found:
        return
    yield ""
    yield term.strong(f"What it waits for {s.unit}, and what was open on the host meanwhile")
    for w in found:
        cause = term.paint(f"{safe(w.cause):<13}", GROUPS.get(w.cause, "unknown"))
        yield f"  {ms(w.us):>11}{_percent(w.share_pct):>6}  {cause}{fit(w.what, term.width - _BEFORE_WAIT)}"
        yield from _below(f"{w.where}; {w.seen}" if w.where else w.seen, term, _BEFORE_WAIT)


def bar(start: float, end: float, width: int, *, idle: bool) -> str:
    """A bar from ``start`` to ``end`` (fractions of the whole) in ``width`` characters; never empty."""
    first, last = round(start * width), round(end * width)
    if first == last:
        first = min(first, width - 1)
        return (" " * first + "▏").ljust(width)
    return (" " * first + ("▒" if idle else "█") * (last - first)).ljust(width)[:width]


def _findings(rank: Rank, s: Summary, money: Money | None, term: Terminal) -> Iterator[str]:
    findings = rank.findings
    if not findings:
        return
    yield ""
    yield term.strong("What to do first")
    yield from _hanging(f"  what each would save {s.unit} at most; they overlap and do not add", 2, term)
    for f in findings[:TOP_FINDINGS]:
        title = fit(f.title, term.width - _BEFORE_FINDING)
        shown = term.paint(title, f.regime or "")
        yield f"  {ms(f.saving_us):>11}{_percent(share_pct(f, s)):>6}  {shown}"
        if money is not None and f.saving_us is not None:
            yield from _below(", ".join(in_words(saved(f.saving_us, s, money), money)), term)
        yield from _below(f"seen: {f.evidence[0].text}" if f.evidence else "", term)
        yield from _below(first_sentence(f.fix), term)
    if len(findings) > TOP_FINDINGS:
        more = counted(len(findings) - TOP_FINDINGS, "finding", "more ")
        yield f"  {more} in the JSON"
    total = together_us(rank)
    if total is not None and len(findings) > 1:
        cost = "" if money is None else f", {', '.join(in_words(saved(total, s, money), money))}"
        yield fit(f"  {ms(total):>11}{'':>6}  together at most{cost}", term.width)


def _below(text: str, term: Terminal, before: int = _BEFORE_FINDING) -> Iterator[str]:
    """Text under a title that begins at ``before``, in two lines at most."""
    indent = " " * before
    width = term.width - len(indent)
    for line in textwrap.wrap(fit(text, 2 * width), width, max_lines=2, placeholder="…"):
        yield f"{indent}{line}"


def _kernels(s: Summary, term: Terminal) -> Iterator[str]:
    if not s.kernels:
        return
    what = "ops" if s.on_cpu else "kernels"
    steps = s.kernel_steps
    launches = sum(k.count for k in s.kernels)
    shown = s.kernels[:TOP_KERNELS]
    yield ""
    yield term.strong(f"{what.capitalize()}: {counted(len(s.kernels), 'group')}, {counted(launches, 'call')}")
    unit, name = ("GFLOP/s", "op") if s.on_cpu else ("TFLOP/s", "kernel · op")
    yield f"  {'ms' if steps == 1 else 'ms/step':>9}{_COLUMNS.format(unit)}{name}"
    for k in shown:
        yield _kernel(k, steps, s.on_cpu, term)
        if k.limiter:
            yield from _below(because(k), term, _BEFORE_REGIME)
    rest = s.kernels[TOP_KERNELS:]
    if rest:
        left = sum(k.time_us for k in rest)
        yield f"  {left / 1000 / steps:>9.3f}  in {counted(len(rest), 'group', 'more ')}, not shown"
    if steps > 1:
        yield f"  ms/step: time over the whole recording, divided by its {steps} steps"


def _kernel(k: Kernel, steps: int, on_cpu: bool, term: Terminal) -> str:
    above = "!" if k.above_peak else ""
    # A bound of 0 is none: no work was counted that a known roof limits.
    roof = _DASH if not k.roof_fraction else f"{100 * k.roof_fraction:.0f} %{above}"
    regime = term.paint(f"{safe(k.regime):<13}", k.regime)
    rates = f"{roof:>7}{rate(k.achieved_tflops, on_cpu=on_cpu):>9}{_number(k.achieved_gbs, int(on_cpu)):>7}"
    op = None if k.op is None or k.op == k.name else k.op.removeprefix("aten::")
    name = _named(title(k), op, max(16, term.width - _BEFORE_NAME))
    return f"  {k.time_us / 1000 / steps:>9.3f}{_percent(k.share_pct):>6}  {regime}{rates}  {name}"


def _named(name: str, op: str | None, width: int) -> str:
    """Name and op in ``width``; when they do not fit both are cut, the name less."""
    if op is None or op == name:
        return fit(_without_spaces(name, width), width)
    name_width = max(width - len(op) - 3, 2 * width // 3)
    shown = fit(_without_spaces(name, name_width), name_width)
    return f"{shown} · {fit(op, width - len(shown) - 3)}"


def _without_spaces(name: str, width: int) -> str:
    """``name`` without its leading namespaces, as many as keep it from fitting."""
    while len(name) > width and (found := _NAMESPACE.match(name)):
        name = name[found.end() :]
    return name


def _communication(rank: Rank, s: Summary, term: Terminal) -> Iterator[str]:
    rows, steps = rank.communication, s.kernel_steps
    if not rows:
        return
    calls = counted(sum(r.count for r in rows), "call")
    yield ""
    yield term.strong(f"Communication: {counted(rank.communication_rows, 'kind')}, {calls}")
    yield f"  {'ms' if steps == 1 else 'ms/step':>9} exposed      wait  bus GB/s     link  calls  collective"
    for r in rows[:TOP_COLLECTIVES]:
        wait = _DASH if r.wait_us is None else f"{r.wait_us / 1000 / steps:,.3f}"
        name = fit(f"{collective(r)} · {r.group}", max(16, term.width - 57))
        yield (
            f"  {r.time_us / 1000 / steps:>9.3f}{_percent(r.exposed_pct):>8}{wait:>10}{bandwidth(r):>10}"
            f"{of_link(r):>9}{r.count:>7,}  {name}"
        )
    if (left := rank.communication_rows - min(len(rows), TOP_COLLECTIVES)) > 0:
        yield f"        and {counted(left, 'more kind')}"
    if any(r.bus_gbs is not None and r.basis != "transfer" for r in rows[:TOP_COLLECTIVES]):
        yield "  ≥ a lower bound: a kernel's own time holds waiting for ranks not here"
    for c in slowed(rank.contention):
        name = title(rank.kernels[c.kernel]) if c.kernel < len(rank.kernels) else _DASH
        text = f"  beside communication {slower(c)}: "
        yield f"{text}{fit(name, max(16, term.width - len(text)))}"


def _coverage(c: Coverage, s: Summary, term: Terminal) -> Iterator[str]:
    if not s.kernels or c == Coverage():
        return
    text = (
        f"Costs by share of {'op' if s.on_cpu else 'kernel'} time: measured {c.measured:.0f} %,"
        f" modelled {c.modelled:.0f} %, inferred {c.inferred:.0f} %, unknown {c.unknown:.0f} %"
    )
    yield from _hanging(text, 2, term)


def _flags(flags: Sequence[Flag], title: str, term: Terminal) -> Iterator[str]:
    if not flags:
        return
    yield term.strong(title)
    for flag in flags[:TOP_FLAGS]:
        count = "" if flag.count is None else f" ({flag.count:,})"
        yield fit(f"  {flag.code}{count}  {flag.detail}".rstrip(), term.width)
    if len(flags) > TOP_FLAGS:
        yield f"  and {len(flags) - TOP_FLAGS} more, in the JSON"


def _hanging(text: str, indent: int, term: Terminal) -> Iterator[str]:
    """``text``, in lines of which all but the first are indented."""
    yield from textwrap.wrap(safe(text), term.width, subsequent_indent=" " * indent)


def _wrapped(text: str, term: Terminal, *, strong: bool) -> Iterator[str]:
    for line in textwrap.wrap(text, term.width):
        yield term.strong(line) if strong else line


def _percent(value: float | None) -> str:
    if value is None:
        return _DASH
    return "<1 %" if 0 < value < 1 else f"{value:.0f} %"


def _number(value: float | None, decimals: int) -> str:
    return _DASH if value is None else f"{value:,.{decimals}f}"
