"""An analysis as Markdown, for a pull request or a wiki."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rooflight.cli.table import TOP_FINDINGS, TOP_KERNELS
from rooflight.cli.terminal import fit, safe
from rooflight.prices.money import Money
from rooflight.protocol import Document, Kernel, Parts, Percentiles, Rank
from rooflight.report.collectives import TOP_COLLECTIVES, bandwidth, collective, of_link, slowed, slower
from rooflight.report.cuts import ModuleRow, Phase, module_rows, phases
from rooflight.report.money import cost_of, in_words, money_of, price_line, saved, together_us
from rooflight.report.summary import (
    WATERFALL,
    Summary,
    because,
    counted,
    first_step,
    missing,
    ms,
    rate,
    summarise,
    title,
    utilisation,
    verdict,
)  # fmt: skip
from rooflight.report.waits import NOTHING_OPEN, Wait, waits
from rooflight.results.energy import energy_in_words
from rooflight.results.phases import WORK
from rooflight.results.throughput import throughputs

_NAME_WIDTH = 80
_DASH = "–"


def markdown(document: Document) -> str:
    """The document as Markdown; every name from outside is code, never markup."""
    lines = [f"# {code(document.source)}", ""]
    if absent := missing(document):
        lines += [f"Missing ranks: {absent}", ""]
    for speed in throughputs(document):
        lines += [f"Throughput: {plain(speed.line(money_of(document)))}", ""]
    for rank in document.ranks:
        lines += _rank(rank, money_of(document))
    return "\n".join(lines).rstrip() + "\n"


def _rank(rank: Rank, money: Money | None) -> Iterator[str]:
    s = summarise(rank)
    yield f"## Rank {rank.rank}: {code(s.device)}"
    yield ""
    yield f"**{plain(verdict(s))}** {plain(first_step(s))}"
    yield ""
    t, steps = s.times, counted(s.times.n, s.step)
    yield f"- Step time: p50 {ms(t.p50_us)}, p95 {ms(t.p95_us)}, p99 {ms(t.p99_us)} over {steps}"
    yield f"- Attainable: {ms(None if s.attainable_pct is None else s.attainable_us)}"
    if said := utilisation(s):
        yield f"- Utilisation: {said}"
    if money is not None:
        yield f"- Price: {plain('; '.join([price_line(money), *cost_of(s, money)]))}"
    if rank.energy is not None:
        yield f"- Energy: {plain(energy_in_words(rank.energy))}"
    yield f"- Data: {plain('; '.join([rank.grade, *rank.grade_reasons]))}"
    c = rank.coverage
    what = "op" if s.on_cpu else "kernel"
    yield (
        f"- Costs by share of {what} time: measured {c.measured:.0f} %, modelled {c.modelled:.0f} %,"
        f" inferred {c.inferred:.0f} %, unknown {c.unknown:.0f} %"
    )
    for flag in rank.flags:
        count = "" if flag.count is None else f" ({flag.count})"
        yield f"- {code(flag.code)}{count} {plain(flag.detail)}".rstrip()
    yield ""
    if s.parts:
        yield from _parts(s.parts, s, rank.percentiles_us)
    if found := waits(rank, s):
        yield from _waits(found, s)
    if split := phases(rank, s):
        yield from _phases(split, s)
    if rank.findings:
        yield from _findings(rank, s, money)
    if s.kernels:
        yield from _kernels(s)
    if tree := module_rows(rank, s, TOP_KERNELS):
        yield from _modules(tree, s)
    if rank.communication:
        yield from _communication(rank, s)


def _parts(parts: Parts, s: Summary, spread: Mapping[str, Percentiles]) -> Iterator[str]:
    tails = " p50 | p95 | p99 |" if spread else ""
    yield f"| part | ms {s.unit} | % |{tails}"
    yield f"|---|---:|---:|{'---:|' * 3 if spread else ''}"
    for name, value in (*((p, getattr(parts, p)) for p in WATERFALL), ("wall", s.wall_us)):
        if value > 0 and s.wall_us:
            of_steps = _spread(spread.get("step_time" if name == "wall" else name)) if spread else ""
            yield f"| {name} | {value / 1000:.3f} | {100 * value / s.wall_us:.1f} |{of_steps}"
    yield ""


def _spread(p: Percentiles | None) -> str:
    """Over the steps, in ms."""
    values = (p.p50, p.p95, p.p99) if p else (None, None, None)
    return "".join(f" {_number(None if us is None else us / 1000, 3)} |" for us in values)


def _phases(found: Sequence[Phase], s: Summary) -> Iterator[str]:
    yield f"| phase | ms {s.unit} | % | {' | '.join(WORK)} |"
    yield f"|---|---:|---:|{'---:|' * len(WORK)}"
    for p in found:
        parts = " | ".join(f"{getattr(p.parts, part) / 1000:.3f}" for part in WORK)
        yield f"| {plain(p.name)} | {p.us / 1000:.3f} | {p.share_pct:.1f} | {parts} |"
    yield ""


def _modules(rows: Sequence[ModuleRow], s: Summary) -> Iterator[str]:
    yield f"| module | ms {s.unit} | % | regime | roof % | calls |"
    yield "|---|---:|---:|---|---:|---:|"
    for r in rows:
        m, fraction = r.module, r.module.roof_fraction
        roof = _number(None if fraction is None else 100 * fraction, 0)
        name = f"{'&nbsp;&nbsp;' * r.indent}{code(m.name)}"
        yield f"| {name} | {r.us / 1000:.3f} | {r.share_pct:.1f} | {plain(m.regime)} | {roof} | {m.count} |"
    yield ""


def _waits(found: Sequence[Wait], s: Summary) -> Iterator[str]:
    yield f"| waits for | ms {s.unit} | % | open on the host meanwhile | seen |"
    yield "|---|---:|---:|---|---|"
    for w in found:
        where = f", {code(w.where)}" if w.where else ""
        what = plain(w.what) if w.what == NOTHING_OPEN else code(w.what)
        yield f"| {plain(w.cause)} | {w.us / 1000:.3f} | {w.share_pct:.1f} | {what}{where} | {w.seen} |"
    yield ""


def _findings(rank: Rank, s: Summary, money: Money | None) -> Iterator[str]:
    findings, total = rank.findings, together_us(rank)
    both = "" if total is None else f"; together at most {plain(_saving(total, s, money))}"
    yield f"What to do first; savings {s.unit} are upper bounds, they overlap and do not add{both}:"
    yield ""
    for f in findings[:TOP_FINDINGS]:
        saving = plain(_saving(f.saving_us, s, money))
        seen = f": {plain(f.evidence[0].text)}" if f.evidence else ""
        yield f"1. **{plain(f.title)}** ({saving}){seen}. {plain(f.fix)}"
    left = len(findings) - TOP_FINDINGS
    if left > 0:
        yield ""
        yield f"Not shown: {counted(left, 'more finding')}."
    yield ""


def _saving(us: float | None, s: Summary, money: Money | None) -> str:
    """A time in ms, as a share of the wall time and as money, as far as these are known."""
    if us is None:
        return ms(us)
    share = [f"{100 * us / s.wall_us:.1f} %"] if s.wall_us else []
    return ", ".join([ms(us), *share, *(in_words(saved(us, s, money), money) if money else ())])


def _kernels(s: Summary) -> Iterator[str]:
    what, unit = ("op", "GFLOP/s") if s.on_cpu else ("kernel", "TFLOP/s")
    yield f"| {what} | calls | {_ms(s)} | % | regime | roof % | {unit} | GB/s |"
    yield "|---|---:|---:|---:|---|---:|---:|---:|"
    for k in s.kernels[:TOP_KERNELS]:
        yield _kernel(k, s)
    left = len(s.kernels) - TOP_KERNELS
    if left > 0:
        yield ""
        yield f"Not shown: {counted(left, 'group', 'more ')}."
    if s.kernel_steps > 1:
        yield ""
        yield f"ms / step: time over the whole recording, divided by its {s.kernel_steps:,} steps."
    yield ""


def _kernel(k: Kernel, s: Summary) -> str:
    cells = (
        code(title(k)),
        f"{k.count}",
        f"{k.time_us / 1000 / s.kernel_steps:.3f}",
        _number(k.share_pct, 1),
        plain(f"{k.regime} ({because(k)})" if k.limiter else k.regime),
        _DASH if not k.roof_fraction else f"{100 * k.roof_fraction:.0f}",
        rate(k.achieved_tflops, on_cpu=s.on_cpu),
        _number(k.achieved_gbs, int(s.on_cpu)),
    )
    return f"| {' | '.join(cells)} |"


def _communication(rank: Rank, s: Summary) -> Iterator[str]:
    yield f"| collective | group | calls | {_ms(s)} | exposed % | wait ms | bus GB/s | link |"
    yield "|---|---|---:|---:|---:|---:|---:|---:|"
    for r in rank.communication[:TOP_COLLECTIVES]:
        wait = _DASH if r.wait_us is None else f"{r.wait_us / 1000 / s.kernel_steps:.3f}"
        figures = (f"{r.count}", f"{r.time_us / 1000 / s.kernel_steps:.3f}", _number(r.exposed_pct, 1), wait)
        cells = (code(collective(r)), code(r.group), *figures, bandwidth(r), of_link(r))
        yield f"| {' | '.join(cells)} |"
    yield ""
    if (left := rank.communication_rows - min(len(rank.communication), TOP_COLLECTIVES)) > 0:
        yield f"Not shown: {counted(left, 'kind', 'more ')}."
        yield ""
    for c in slowed(rank.contention):
        if c.kernel < len(rank.kernels):
            yield f"- Beside communication {code(title(rank.kernels[c.kernel]))} takes {slower(c)}"
    yield ""


def _ms(s: Summary) -> str:
    """Over a column of times over the whole recording, which are divided by its steps."""
    return "ms" if s.kernel_steps == 1 else "ms / step"


def code(text: str) -> str:
    """``text`` as inline code that no character of it can leave, in a table cell too."""
    clean = fit(text, _NAME_WIDTH).replace("`", "'").replace("|", "\\|")
    return f"`{clean}`"


def plain(text: str) -> str:
    """``text`` with everything that Markdown or HTML would take as markup made inert."""
    escaped = safe(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return "".join("\\" + c if c in "\\`*_[]|#~" else c for c in escaped)


def _number(value: float | None, decimals: int) -> str:
    return _DASH if value is None else f"{value:.{decimals}f}"
