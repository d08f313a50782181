"""From an analysed document to everything the Run page shows.  Pure functions, no request, no database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.pages import numbers as n
from app.pages.kernel_view import MAX_ROWS, KernelRow, kernel_rows
from app.pages.verdict import Verdict, group_us, verdict
from app.pages.vocabulary import CEILINGS, GRADES
from app.pages.waterfall import STACK, Piece, Waterfall, stack, waterfall
from rooflight.figures.ceilings import flats
from rooflight.figures.points import place
from rooflight.figures.roofline import subject
from rooflight.protocol import (
    ORIGINS,
    PARTS,
    Ceiling,
    CpuStep,
    DeviceFigures,
    Document,
    Finding,
    Flag,
    Kernel,
    Parts,
    Rank,
    Roofs,
    Step,
)

#: Over this many steps the bars stand side by side with a scroll; over the second, the rest is counted.
ROWS_OF_STEPS = 24
MAX_STEPS = 400
TOO_FEW = 5


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
class StepTime:
    """Headline of the step time, in µs; p95 and p99 are null under five steps."""

    count: int
    p50: float | None
    p95: float | None
    p99: float | None


@dataclass(frozen=True, slots=True)
class DeviceRow:
    """A device's figures over the recording."""

    key: str
    figures: DeviceFigures
    main: bool


@dataclass(frozen=True, slots=True)
class RankRow:
    """One rank in the picker: its median step, its regime and the bar of its mean step."""

    rank: int
    p50: float | None
    regime: str | None
    grade: str
    pieces: list[Piece]
    selected: bool


@dataclass(frozen=True, slots=True)
class CollectiveRow:
    """One collective with its latest rank and the longest wait."""

    n: int
    group: str
    straggler: str | None
    transfer_us: float | None
    longest_wait_us: float | None


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
    devices: list[DeviceRow]
    ranks: list[RankRow]
    collectives: list[CollectiveRow]
    n_collectives: int
    mfu: float | None
    hfu: float | None
    device_key: str | None
    shown_parts: list[str]
    coverage_bar: list[tuple[str, float, float]]
    plotted_origins: list[str]
    n_plotted: int
    n_above: int
    n_held: int
    software: list[tuple[str, str]]


AnyStep = Step | CpuStep


def run_view(document: Document, rank_n: int | None = None, step_n: int | None = None) -> RunView:
    """The page of one rank, the first when ``rank_n`` is null; with ``step_n`` the waterfall is that step's.

    :class:`KeyError` when the document has no such rank or step.
    """
    rank = _rank(document, rank_n)
    cpu = rank.cpu is not None and not rank.devices
    steps, inferred = counted_steps(rank)
    chosen = _chosen(steps, step_n)
    parts, basis = _parts(rank, chosen, step_n, inferred)
    wall = sum(parts.values())
    times = step_time([s.step_time_us for s in steps])
    unit = n.unit_for(times.p50 or wall)
    regime, confidence, reason = _regime(rank, chosen, step_n)
    kernels, roofs = subject(rank)
    rows = kernel_rows(kernels, cpu=cpu)
    points, absent = place(kernels)
    longest = max([s.step_time_us for s in steps[:MAX_STEPS]] + [wall])
    attainable = _mean([s.attainable_us for s in chosen if s.attainable_us is not None])
    falls = waterfall(parts, attainable, longest_us=longest, device="CPU" if cpu else "GPU")
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
        origins=[(o, getattr(rank.coverage, o)) for o in ORIGINS],
        costed_pct=_costed(rank, kernels),
        flags=[*document.flags, *rank.flags],
        findings=rank.findings,
        devices=_devices(rank),
        ranks=_ranks(document, rank),
        collectives=_collectives(document),
        n_collectives=len(document.collectives),
        mfu=_mean([s.mfu for s in chosen if isinstance(s, Step) and s.mfu is not None]),
        hfu=_mean([s.hfu for s in chosen if isinstance(s, Step) and s.hfu is not None]),
        device_key=_main_device(rank),
        shown_parts=_shown(parts, steps[:MAX_STEPS]),
        coverage_bar=_coverage_bar(rank),
        plotted_origins=[o for o in ORIGINS if any(p.kernel.origin == o for p in points)],
        n_plotted=len(points),
        n_above=sum(k.above_peak for k in kernels),
        n_held=min(len(kernels), MAX_ROWS),
        software=[(k.replace("_version", "").replace("_", " "), v) for k, v in rank.software.items()][:4],
    )


def _shown(parts: Mapping[str, float], steps: Sequence[AnyStep]) -> list[str]:
    """The parts that some bar on the page holds, in the order of the bars."""
    walls = [parts, *(as_dict(s.parts_us) for s in steps if s.parts_us)]
    return [p for p in STACK if any(w[p] for w in walls)]


def _coverage_bar(rank: Rank) -> list[tuple[str, float, float]]:
    """Origins side by side: name, start and width in percent."""
    bar, at = [], 0.0
    for origin in ORIGINS:
        width = getattr(rank.coverage, origin)
        bar.append((origin, at, width))
        at += width
    return bar


def _rank(document: Document, rank_n: int | None) -> Rank:
    found = [r for r in document.ranks if rank_n is None or r.rank == rank_n]
    if not found:
        raise KeyError(f"rank {rank_n}" if document.ranks else "the document holds no rank")
    return found[0]


def counted_steps(rank: Rank) -> tuple[Sequence[AnyStep], bool]:
    """The steps that figures rest on, and whether they were inferred rather than recorded."""
    if rank.cpu is not None and not rank.devices:
        return rank.cpu.steps, False
    if rank.steps:
        return rank.steps, False
    return rank.inferred_steps, bool(rank.inferred_steps)


def _chosen(steps: Sequence[AnyStep], step_n: int | None) -> Sequence[AnyStep]:
    chosen = [s for s in steps if step_n is None or s.n == step_n]
    if step_n is not None and not chosen:
        raise KeyError(f"step {step_n}")
    return chosen


def _parts(
    rank: Rank, chosen: Sequence[AnyStep], step_n: int | None, inferred: bool
) -> tuple[dict[str, float], str]:
    """The parts that the headline shows, and in words what they are of."""
    with_parts = [as_dict(s.parts_us) for s in chosen if s.parts_us is not None]
    if with_parts:
        kind = "inferred step" if inferred else "step"
        one = step_n if step_n is not None else chosen[0].n
        of = f"{kind} {one}" if len(with_parts) == 1 else f"mean of {n.count(len(with_parts))} {kind}s"
        return {p: _mean([d[p] for d in with_parts]) or 0.0 for p in PARTS}, of
    if rank.cpu is not None and not rank.devices:
        return as_dict(rank.cpu.parts_us or Parts()), "whole recording"
    main = _main_device(rank)
    return as_dict(rank.parts_us.get(main or "", Parts())), "whole recording"


def as_dict(parts: Parts) -> dict[str, float]:
    """Parts by name, in the order of the protocol."""
    return {p: getattr(parts, p) for p in PARTS}


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def step_time(times_us: list[float]) -> StepTime:
    """Median and tails of the step time; the tails of fewer than five steps are not known."""
    tails = len(times_us) >= TOO_FEW
    return StepTime(
        len(times_us),
        n.percentile(times_us, 50),
        n.percentile(times_us, 95) if tails else None,
        n.percentile(times_us, 99) if tails else None,
    )


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


def _main_device(rank: Rank) -> str | None:
    named = next((s.device for s in rank.steps if s.device), None)
    return named or max(rank.devices, key=lambda d: rank.devices[d].kernel_sum_us, default=None)


def _device_name(rank: Rank, roofs: Roofs, cpu: bool) -> str | None:
    if cpu and rank.cpu is not None:
        return rank.cpu.name or roofs.name or "CPU"
    main = rank.devices.get(_main_device(rank) or "")
    return roofs.name or (main.name if main else None)


def _devices(rank: Rank) -> list[DeviceRow]:
    main = _main_device(rank)
    return [DeviceRow(key, figures, key == main) for key, figures in rank.devices.items()]


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


def _costed(rank: Rank, kernels: list[Kernel]) -> float | None:
    return 100 - rank.coverage.unknown if kernels else None


def _ranks(document: Document, selected: Rank) -> list[RankRow]:
    longest = max((_rank_wall(r) for r in document.ranks), default=0.0) or 1.0
    return [_rank_row(r, longest, r is selected) for r in document.ranks]


def _rank_row(rank: Rank, longest: float, selected: bool) -> RankRow:
    steps, inferred = counted_steps(rank)
    parts, _ = _parts(rank, steps, None, inferred)
    p50 = n.percentile([s.step_time_us for s in steps], 50)
    return RankRow(rank.rank, p50, rank.regime, rank.grade, stack(parts, longest), selected)


def _rank_wall(rank: Rank) -> float:
    steps, inferred = counted_steps(rank)
    return sum(_parts(rank, steps, None, inferred)[0].values())


def _collectives(document: Document) -> list[CollectiveRow]:
    """The hundred collectives with the longest wait."""
    rows = [
        CollectiveRow(c.n, c.group, c.straggler, c.transfer_us, max(c.wait_us.values(), default=None))
        for c in document.collectives
    ]
    return sorted(rows, key=lambda c: -(c.longest_wait_us or 0.0))[:100]
