"""The JSON of a comparison; the meaning of every field is in docs/compare.md.

Times are µs with three decimals.  They add up exactly, as the fractions behind them do.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from msgspec import Struct, field

from rooflight.comparison.comparability import comparable
from rooflight.comparison.comparison import Change, Comparison, GroupChange
from rooflight.comparison.groups import Group, Key
from rooflight.comparison.rounding import whole
from rooflight.comparison.side import Side
from rooflight.comparison.words import headline
from rooflight.units import us

SCHEMA_VERSION = 1
#: Whole ns of groups by part.
_Times = Mapping[Key, dict[str, int]]


class ComparedRun(Struct):
    """One of the two runs."""

    source: str
    device: str | None
    ranks: list[int]
    world_size: int | None
    n_steps: int
    steps_us: list[float]
    attainable_us: float | None
    grade: str
    regime: str | None
    software: dict[str, str] = field(default_factory=dict)
    host: str | None = None


class ComparabilityNote(Struct):
    """What makes the two hard to compare."""

    code: str
    weight: str
    words: str
    a: str | None = None
    b: str | None = None


class ChangeRow(Struct):
    """A time of A and of B, and whether they differ by more than noise."""

    a_us: float
    b_us: float
    difference_us: float
    difference_pct: float | None
    significance: str
    p: float | None
    shift_us: float | None
    shift_low_us: float | None
    shift_high_us: float | None
    words: str


class ComparedKernel(Struct, gc=False):
    """A kernel group of one run."""

    name: str
    short_name: str
    family: str | None
    dtype: str | None
    op: str | None
    module: str | None
    input_dims: str | None
    input_types: str | None
    kind: str
    calls: float
    time_us: float
    call_us: float | None
    launch_us: float | None
    flops: int | None
    bytes: int | None
    origin: str
    roof_fraction: float | None
    regime: str


class KernelChange(Struct, gc=False):
    """A kernel group in both runs."""

    match: str
    a: ComparedKernel | None
    b: ComparedKernel | None
    difference_us: float
    count_effect_us: float
    duration_effect_us: float
    parts_us: dict[str, float]


class ComparisonDocument(Struct):
    """B against A."""

    schema_version: int
    basis: str
    comparable: bool
    words: list[str]
    notes: list[ComparabilityNote]
    a: ComparedRun
    b: ComparedRun
    total: ChangeRow
    parts: dict[str, ChangeRow]
    kernels: list[KernelChange]
    rest_us: dict[str, float]


def document_of(c: Comparison) -> ComparisonDocument:
    """The comparison as it is printed and sent."""
    a, b = whole(c.a), whole(c.b)
    return ComparisonDocument(
        schema_version=SCHEMA_VERSION,
        basis=basis(c),
        comparable=comparable(c.notes),
        words=headline(c),
        notes=[ComparabilityNote(n.code, n.weight, n.words, n.a, n.b) for n in c.notes],
        a=_run(c.a),
        b=_run(c.b),
        total=_change(c.total, a.total, b.total),
        parts={p: _change(x, a.parts[p], b.parts[p]) for p, x in c.parts.items()},
        kernels=[_kernel_change(g, a.groups, b.groups) for g in c.groups],
        rest_us={p: us(b.rest[p] - a.rest[p]) for p in c.rest},
    )


def basis(c: Comparison) -> str:
    """What the means are of: steps, inferred steps where a side has no others, or the recording."""
    if not c.by_step:
        return "recording"
    inferred = any(r.inferred for s in (c.a, c.b) for r in s.recordings)
    return "inferred_steps" if inferred else "steps"


def us_of(ns: Fraction) -> float:
    """A fraction of nanoseconds as µs, to the nearest nanosecond."""
    return us(round(ns))


def _us(ns: Fraction | None) -> float | None:
    return None if ns is None else us_of(ns)


def _whole(amount: Fraction | None) -> int | None:
    return None if amount is None else round(amount)


def _run(s: Side) -> ComparedRun:
    first = s.recordings[0]
    return ComparedRun(
        source=s.document.source,
        device=first.name,
        ranks=[r.rank.rank for r in s.recordings],
        world_size=s.document.world_size,
        n_steps=len(s.steps),
        steps_us=[us(t) for t in s.steps],
        attainable_us=_us(s.attainable_ns),
        grade=first.rank.grade,
        regime=first.rank.cpu.regime if first.on_cpu and first.rank.cpu else first.rank.regime,
        software=first.rank.software,
        host=first.rank.host,
    )


def _change(c: Change, a_ns: int, b_ns: int) -> ChangeRow:
    shift = c.significance.shift
    return ChangeRow(
        a_us=us(a_ns),
        b_us=us(b_ns),
        difference_us=us(b_ns - a_ns),
        difference_pct=None if not c.a else round(float(100 * c.difference / c.a), 2),
        significance=c.significance.verdict,
        p=c.significance.p,
        shift_us=None if shift is None else us_of(shift.ns),
        shift_low_us=None if shift is None else _us(shift.low_ns),
        shift_high_us=None if shift is None else _us(shift.high_ns),
        words=c.significance.words,
    )


def _kernel_change(g: GroupChange, a_ns: _Times, b_ns: _Times) -> KernelChange:
    a, b = _own(g.pair.a, a_ns), _own(g.pair.b, b_ns)
    difference, duration = sum(b.values()) - sum(a.values()), round(g.duration_effect)
    if not g.count_effect:
        duration = difference
    elif not g.duration_effect:
        duration = 0
    return KernelChange(
        match=g.pair.match,
        a=None if g.pair.a is None else _kernel(g.pair.a, sum(a.values())),
        b=None if g.pair.b is None else _kernel(g.pair.b, sum(b.values())),
        difference_us=us(difference),
        count_effect_us=us(difference - duration),
        duration_effect_us=us(duration),
        parts_us={p: us(b.get(p, 0) - a.get(p, 0)) for p in g.by_part},
    )


def _own(g: Group | None, times: _Times) -> dict[str, int]:
    return {} if g is None else times[g.key]


def _kernel(g: Group, ns: int) -> ComparedKernel:
    row = g.row
    return ComparedKernel(
        name=row.name,
        short_name=row.short_name,
        family=row.family,
        dtype=row.dtype,
        op=row.op,
        module=row.module,
        input_dims=row.input_dims,
        input_types=row.input_types,
        kind=row.kind,
        calls=round(float(g.calls), 6),
        time_us=us(ns),
        call_us=_us(g.call_ns),
        launch_us=_us(g.launch_ns),
        flops=_whole(g.flops),
        bytes=_whole(g.bytes),
        origin=row.origin,
        roof_fraction=row.roof_fraction,
        regime=row.regime,
    )
