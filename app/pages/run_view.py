"""From an analysed document to everything the Run page shows.  Pure functions, no request, no database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.pages import numbers as n
from app.pages.communication_view import CommunicationRow, communication_rows, slowed_kernels
from app.pages.cuts_view import ModuleLine, PhaseBar, Spread, module_lines, phase_bars, spread
from app.pages.kernel_view import MAX_ROWS, KernelRow, kernel_rows
from app.pages.rank_view import CollectiveRow, RankRow, collective_rows, rank_rows
from app.pages.steps import AnyStep, StepTime, as_dict, counted_steps, main_device, mean, parts_of, step_time
from app.pages.verdict import Verdict, group_us, verdict
from app.pages.vocabulary import CEILINGS, GRADES
from app.pages.waterfall import STACK, Piece, Waterfall, stack, waterfall
from rooflight.figures.ceilings import flats
from rooflight.figures.points import place
from rooflight.figures.roofline import subject
from rooflight.protocol import (
    KERNEL_PARTS,
    ORIGINS,
    Ceiling,
    DeviceFigures,
    Document,
    Finding,
    Flag,
    Kernel,
    Rank,
    Roofs,
    Step,
)
from rooflight.report.summary import summarise
from rooflight.report.waits import Wait, waits
from rooflight.results.energy import energy_in_words
from rooflight.results.throughput import Throughput, throughputs

#: Over this many steps the bars stand side by side with a scroll; over the second, the rest is counted.
ROWS_OF_STEPS = 24
MAX_STEPS = 400
MAX_UNITS = 3
MAX_ENERGY = 300
_MOSTLY = 50.0  # percent


@dataclass(frozen=True, slots=True)
class StepBar:
    """One step as a stacked bar; ``vs_p50`` is its difference from the median, in percent."""

    n: int
    us: float
    pieces: list[Piece]
    vs_p50: str
    regime: str | None
    selected: bool


@dataclass(frozen=True, slots=True)
class DeviceRow:
    """A device's figures over the recording."""

    key: str
    figures: DeviceFigures
    main: bool


@dataclass(frozen=True, slots=True)
class RoofRow:
    """A ceiling in words: its name, practical of datasheet, and where the practical one comes from."""

    name: str
    figures: str
    origin: str
    source: str


@dataclass(frozen=True, slots=True)
class RunView:
    """All that run.html asks for.  Times in µs; ``unit`` formats them."""

    rank: Rank
    cpu: bool
    device_name: str | None
    roofs: Roofs
    roof_rows: list[RoofRow]
    unit: n.TimeUnit
    basis: str
    inferred: bool
    wall_us: float
    parts: dict[str, float]
    attainable_us: float | None
    unbounded_pct: float | None
    step_time: StepTime
    verdict: Verdict
    regime: str | None
    confidence: str | None
    second: tuple[str, float] | None
    agreeing: int
    grade: str
    falls: Waterfall
    steps: list[StepBar]
    n_steps: int
    step_n: int | None
    rows: list[KernelRow]
    largest: KernelRow | None
    kernels: list[Kernel]
    launches: int
    absent: dict[str, int]
    plotted_regimes: list[str]
    origins: list[tuple[str, float]]
    costed_pct: float | None
    flags: list[Flag]
    findings: list[Finding]
    waits: list[Wait]
    phases: list[PhaseBar]
    modules: list[ModuleLine]
    spread: list[Spread]
    work_per: str
    devices: list[DeviceRow]
    ranks: list[RankRow]
    collectives: list[CollectiveRow]
    n_collectives: int
    communication: list[CommunicationRow]
    communication_steps: int
    slowed: list[tuple[str, str]]
    mfu: float | None
    hfu: float | None
    device_key: str | None
    shown_parts: list[str]
    coverage_bar: list[tuple[str, float, float]]
    plotted_origins: list[str]
    n_plotted: int
    n_above: int
    has_practical: bool
    has_datasheet: bool
    n_held: int
    software: list[tuple[str, str]]
    throughputs: list[Throughput]
    energy: str


def run_view(document: Document, rank_n: int | None = None, step_n: int | None = None) -> RunView:
    """The page of one rank, the first when ``rank_n`` is null; with ``step_n`` the waterfall is that step's.

    :class:`KeyError` when the document has no such rank or step.
    """
    rank = _rank(document, rank_n)
    cpu = rank.cpu is not None and not rank.devices
    steps, inferred = counted_steps(rank)
    chosen = _chosen(steps, step_n)
    parts, basis = parts_of(rank, chosen, step_n, inferred)
    wall = sum(parts.values())
    times = step_time([s.step_time_us for s in steps])
    unit = n.unit_for(times.p50 or wall)
    regime, confidence, reason = _regime(rank, chosen, step_n)
    kernels, roofs = subject(rank)
    coverage = _coverage(rank, kernels, cpu)
    rows = kernel_rows(kernels, cpu=cpu)
    points, absent = place(kernels)
    longest = max([s.step_time_us for s in steps[:MAX_STEPS]] + [wall])
    unbounded = _unbounded(parts)
    attainable = mean([s.attainable_us for s in chosen if s.attainable_us is not None])
    if unbounded is None or unbounded > _MOSTLY:
        attainable = None  # the attainable time of work without a bound is its own time: it says nothing
    notes = {"communication": _waits(chosen, unit)}
    summary = summarise(rank)
    falls = waterfall(parts, attainable, longest_us=longest, device="CPU" if cpu else "GPU", notes=notes)
    return RunView(
        rank=rank,
        cpu=cpu,
        device_name=_device_name(rank, roofs, cpu),
        roofs=roofs,
        roof_rows=roof_rows(roofs, [p.kernel for p in points]),
        unit=unit,
        basis=basis,
        inferred=inferred,
        wall_us=wall,
        parts=parts,
        attainable_us=attainable,
        unbounded_pct=unbounded,
        step_time=times,
        verdict=verdict(regime, reason, parts, unit, per=_per(steps, step_n), cpu=cpu),
        regime=regime,
        confidence=confidence,
        second=_second(parts, regime),
        agreeing=sum(s.regime == regime for s in steps),
        grade=GRADES.get(rank.grade, rank.grade),
        falls=falls,
        steps=[_bar(s, falls.top_us, times.p50, step_n) for s in steps[:MAX_STEPS]],
        n_steps=len(steps),
        step_n=step_n,
        rows=rows,
        largest=next((r for r in rows if r.plotted), rows[0] if rows else None),
        kernels=kernels,
        launches=sum(k.count for k in kernels),
        absent=absent,
        plotted_regimes=sorted({p.kernel.regime for p in points}, key=_regime_order),
        origins=list(coverage.items()),
        costed_pct=100 - coverage["unknown"] if kernels else None,
        flags=[*document.flags, *rank.flags],
        findings=rank.findings,
        waits=waits(rank, summary) if step_n is None else [],
        phases=phase_bars(rank, summary),
        modules=module_lines(rank, summary),
        spread=spread(rank),
        work_per=summary.unit,
        devices=_devices(rank),
        ranks=rank_rows(document, rank),
        collectives=collective_rows(document),
        n_collectives=len(document.collectives),
        communication=communication_rows(rank),
        communication_steps=max(1, len(rank.steps)),
        slowed=slowed_kernels(rank),
        mfu=mean([s.mfu for s in chosen if isinstance(s, Step) and s.mfu is not None]),
        hfu=mean([s.hfu for s in chosen if isinstance(s, Step) and s.hfu is not None]),
        device_key=main_device(rank),
        shown_parts=_shown(parts, steps[:MAX_STEPS]),
        coverage_bar=_coverage_bar(coverage),
        plotted_origins=[o for o in ORIGINS if any(p.kernel.origin == o for p in points)],
        n_plotted=len(points),
        n_above=sum(k.above_peak and k.kind not in ("memcpy", "memset") for k in kernels),
        has_practical=any(c.practical for c in _ceilings(roofs)),
        has_datasheet=any(c.datasheet for c in _ceilings(roofs)),
        n_held=min(len(kernels), MAX_ROWS),
        software=[(k.replace("_version", "").replace("_", " "), v) for k, v in rank.software.items()][:4],
        throughputs=throughputs(document)[:MAX_UNITS],
        energy="" if rank.energy is None else energy_in_words(rank.energy)[:MAX_ENERGY],
    )


def _unbounded(parts: Mapping[str, float]) -> float | None:
    """Share of kernel time in percent whose bound is unknown: it counts as attained in full."""
    return n.share(parts["unknown"], sum(parts[p] for p in KERNEL_PARTS))


def _waits(chosen: Sequence[AnyStep], unit: n.TimeUnit) -> str:
    """How much of the exposed communication waited for the last rank, where several ranks tell it."""
    steps = [s for s in chosen if isinstance(s, Step)]
    wait = mean([s.wait_us for s in steps if s.wait_us is not None])
    transfer = mean([s.transfer_us for s in steps if s.transfer_us is not None])
    if wait is None or transfer is None:
        return ""
    return f"Of it {unit.text(wait)} wait for the last rank and {unit.text(transfer)} transfer."


def _shown(parts: Mapping[str, float], steps: Sequence[AnyStep]) -> list[str]:
    """The parts that some bar on the page holds, in the order of the bars."""
    walls = [parts, *(as_dict(s.parts_us) for s in steps if s.parts_us)]
    return [p for p in STACK if any(w[p] for w in walls)]


def _coverage(rank: Rank, kernels: Sequence[Kernel], cpu: bool) -> dict[str, float]:
    """Share of time by origin of its cost, in percent; of a CPU's ops it is summed here."""
    if not cpu:
        return {o: getattr(rank.coverage, o) for o in ORIGINS}
    total = sum(k.time_us for k in kernels)
    return {o: n.share(sum(k.time_us for k in kernels if k.origin == o), total) or 0.0 for o in ORIGINS}


def _coverage_bar(coverage: Mapping[str, float]) -> list[tuple[str, float, float]]:
    """Origins side by side: name, start and width in percent."""
    bar, at = [], 0.0
    for origin, width in coverage.items():
        bar.append((origin, at, width))
        at += width
    return bar


def _rank(document: Document, rank_n: int | None) -> Rank:
    found = [r for r in document.ranks if rank_n is None or r.rank == rank_n]
    if not found:
        raise KeyError(f"rank {rank_n}" if document.ranks else "the document holds no rank")
    return found[0]


def _chosen(steps: Sequence[AnyStep], step_n: int | None) -> Sequence[AnyStep]:
    chosen = [s for s in steps if step_n is None or s.n == step_n]
    if step_n is not None and not chosen:
        raise KeyError(f"step {step_n}")
    return chosen


def _regime(
    rank: Rank, chosen: Sequence[AnyStep], step_n: int | None
) -> tuple[str | None, str | None, str | None]:
    if step_n is not None:
        s = chosen[0]
        return s.regime, s.regime_confidence, s.regime_reason or rank.verdict_withheld
    source = rank.cpu if rank.cpu is not None and not rank.devices else rank
    return source.regime, source.regime_confidence, rank.verdict_withheld or source.regime_reason


def _per(steps: Sequence[AnyStep], step_n: int | None) -> str:
    if step_n is not None:
        return f"in step {step_n}"
    return "per step" if steps else "in all"


def _second(parts: Mapping[str, float], regime: str | None) -> tuple[str, float] | None:
    """The largest regime beside the one that was named, with its time."""
    groups = (
        "compute",
        "memory",
        "latency",
        "communication",
        "input",
        "host",
        "copy",
        "dependency",
        "unknown",
    )
    others = [(g, group_us(g, parts)) for g in groups if g != regime]
    best = max(others, key=lambda pair: pair[1])
    return best if best[1] > 0 else None


def _bar(s: AnyStep, top_us: float, p50: float | None, step_n: int | None) -> StepBar:
    pieces = stack(as_dict(s.parts_us), top_us) if s.parts_us else []
    change = None if not p50 else 100 * (s.step_time_us / p50 - 1)
    return StepBar(s.n, s.step_time_us, pieces, n.signed_percent(change), s.regime, s.n == step_n)


def _device_name(rank: Rank, roofs: Roofs, cpu: bool) -> str | None:
    if cpu and rank.cpu is not None:
        return rank.cpu.name or roofs.name or "CPU"
    main = rank.devices.get(main_device(rank) or "")
    return roofs.name or (main.name if main else None)


def _devices(rank: Rank) -> list[DeviceRow]:
    main = main_device(rank)
    return [DeviceRow(key, figures, key == main) for key, figures in rank.devices.items()]


def _ceilings(roofs: Roofs) -> list[Ceiling]:
    """Those that the chart may draw."""
    return [*roofs.compute.values(), *roofs.vector.values(), *([roofs.memory] if roofs.memory else [])]


def roof_rows(roofs: Roofs, drawn: list[Kernel]) -> list[RoofRow]:
    """The roofs that matter for the drawn rows, then the memory's."""
    rows = [
        RoofRow(
            ", ".join(f.dtypes) + ("" if f.used else ", not used here"),
            n.pair_of_rates(f.practical, f.datasheet, "FLOP/s"),
            CEILINGS.get(f.origin, f.origin),
            "",
        )
        for f in sorted(flats(roofs, drawn), key=lambda f: not f.used)
    ]
    memory = roofs.memory or Ceiling()
    if memory.practical or memory.datasheet:
        figures = n.pair_of_rates(memory.practical, memory.datasheet, "B/s")
        rows.append(RoofRow("Memory", figures, CEILINGS.get(memory.origin, memory.origin), memory.source))
    return rows


def _regime_order(regime: str) -> int:
    order = ("compute", "memory", "latency", "communication", "copy", "unknown")
    return order.index(regime) if regime in order else len(order)
