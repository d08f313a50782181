"""The rows of a roofline by what they speak for: kernel groups, ops, modules, steps or ranks.

A row above the kernel groups is the sum of its members: F = Σ FLOPs, B = Σ bytes, t = Σ time over those
whose FLOPs and bytes are both known.  Its place F / B, F / t is their centroid; how much of the members'
time it speaks for is its coverage.  Copies and communication are no members: no roof of arithmetic is theirs.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from rooflight.figures.points import LEAST_US, reason_absent
from rooflight.protocol import ORIGINS, Document, Kernel, Rank, Roofs, Step, StepWork

LEVELS = ("kernel", "op", "module", "step", "run")
#: What the rows of each level are called, one of them.
NOUNS = {"kernel": "group", "op": "op", "module": "module", "step": "step", "run": "rank"}
_NOT_ARITHMETIC = ("copy", "communication")
#: Thirty thousand years: no recording is longer, and sums of so many µs are finite.
_MOST_US = 1e18


@dataclass(frozen=True, slots=True)
class Row:
    """``kernel`` holds the sums; ``members`` are places in the kernel table.  ``known_us`` of ``total_us``
    is the time of members whose cost is known, ``dtypes`` are the types that those calculate in;
    ``label`` is what stands beside a point, where that is not the kernel's name."""

    kernel: Kernel
    members: tuple[int, ...]
    known_us: float
    total_us: float
    dtypes: frozenset[str]
    about: str | None = None
    label: str | None = None

    @property
    def coverage_pct(self) -> float | None:
        """Percent of the members' time; ``None`` when they took none."""
        return 100 * self.known_us / self.total_us if self.total_us else None


def rows_at(level: str, document: Document, rank: Rank, dtype: str | None = None) -> list[Row]:
    """The rows of a level, in the order of the document.

    ``dtype`` keeps the work of one number type.  :class:`ValueError` for a level that there is none of.
    """
    if level not in LEVELS:
        raise ValueError(f"no level {level!r}: there are {', '.join(LEVELS)}")
    kernels = subject(rank)[0]
    if level == "kernel":
        return [_single(i, k) for i, k in enumerate(kernels) if dtype in (None, k.dtype)]
    if level == "step":
        return [_step(s, dtype) for s in rank.steps or rank.inferred_steps]
    if level == "run":
        alike = (r for r in document.ranks if _device(r) == _device(rank))
        return [_gathered(f"rank {r.rank}", _members(subject(r)[0], dtype), own=r is rank) for r in alike]
    key = _op if level == "op" else _module
    parts: defaultdict[str, list[tuple[int, Kernel]]] = defaultdict(list)
    for i, k in _members(kernels, dtype):
        parts[key(k)].append((i, k))
    rows = (_gathered(name, members, own=True) for name, members in parts.items())
    return [replace(row, label=_last(row.kernel.name)) for row in rows] if level == "module" else list(rows)


def subject(rank: Rank) -> tuple[list[Kernel], Roofs]:
    """The rows and the roofs that the chart speaks of: those of the headline's device, else of the CPU."""
    if rank.cpu is not None and not rank.devices:
        return rank.cpu.ops, rank.cpu.roof
    device = rank.headline or next(iter(rank.devices), "")
    return rank.kernels, rank.roofs.get(device, Roofs())


def whole(rank: Rank, dtype: str | None = None) -> Row:
    """All that calculates on a rank as one row."""
    return _gathered(f"rank {rank.rank}", _members(subject(rank)[0], dtype), own=True)


def dtypes_of(kernels: Iterable[Kernel]) -> list[str]:
    """The number types that kernels of known cost calculate in, by name."""
    return sorted({k.dtype for k in kernels if k.dtype and k.flops and k.bytes})


def _single(i: int, k: Kernel) -> Row:
    return Row(k, (i,), k.time_us if _known(k) else 0.0, k.time_us, frozenset([k.dtype or ""]) - {""})


def _members(kernels: Sequence[Kernel], dtype: str | None) -> list[tuple[int, Kernel]]:
    """Kernel groups that calculate, with their place in the table."""
    return [
        (i, k)
        for i, k in enumerate(kernels)
        if dtype in (None, k.dtype) and reason_absent(k) not in _NOT_ARITHMETIC and _timed(k)
    ]


def _gathered(name: str, members: Sequence[tuple[int, Kernel]], *, own: bool) -> Row:
    """Members as one row; those of another rank than the table's (``own``) have no place in it."""
    all_of = [k for _, k in members]
    known = [k for k in all_of if _known(k)]
    known_us, total_us = (sum(k.time_us for k in ks) for ks in (known, all_of))
    dtypes = frozenset(k.dtype for k in known if k.dtype and k.flops)
    regime, share = _regime(all_of, total_us)
    kernel = Kernel(
        name=name,
        count=sum(k.count for k in known),
        time_us=known_us if known else total_us,
        flops=sum(k.flops or 0 for k in known) if known else None,
        bytes=sum(k.bytes or 0 for k in known) if known else None,
        dtype=next(iter(dtypes)) if len(dtypes) == 1 else None,
        origin=_weakest(known),
        roof_fraction=_fraction(known, known_us),
        regime=regime,
        reason=f"{share:.0f} % of its time",
    )
    about = f"{len(members):,} kernel group{'s' if len(members) != 1 else ''}"
    places = tuple(i for i, _ in members) if own else ()
    return Row(kernel, places, known_us, total_us, dtypes, _with_coverage(about, known_us, total_us))


def _step(s: Step, dtype: str | None) -> Row:
    work = [w for w in s.work if dtype in (None, w.dtype) and _timed(w)]
    dtypes = frozenset(w.dtype for w in work if w.dtype and w.flops)
    known_us = sum(w.time_us for w in work)
    whole_us = max(known_us, min(s.work_of_us or 0.0, _MOST_US))
    # Of one number type it is not told how much time is unknown.
    total_us = 0.0 if dtype else whole_us
    kernel = Kernel(
        name=f"step {s.n}",
        count=sum(w.count for w in work),
        time_us=known_us if work else whole_us,
        flops=sum(w.flops for w in work) if work else None,
        bytes=sum(w.bytes for w in work) if work else None,
        dtype=next(iter(dtypes)) if len(dtypes) == 1 else None,
        origin=_weakest(work),
        roof_fraction=_fraction(work, known_us),
        regime=s.regime or "unknown",
        reason=s.regime_reason or "",
    )
    about = _with_coverage("kernels that start in it", known_us, total_us)
    return Row(kernel, (), known_us, total_us, dtypes, about)


def _with_coverage(about: str, known_us: float, total_us: float) -> str:
    if not total_us:
        return about
    return f"{about}, costs known for {100 * known_us / total_us:.0f} % of {total_us / 1e3:,.4g} ms"


def _known(k: Kernel) -> bool:
    return k.flops is not None and k.bytes is not None and k.time_us >= LEAST_US


def _timed(k: Kernel | StepWork) -> bool:
    return 0 <= k.time_us <= _MOST_US


def _fraction(known: Sequence[Kernel | StepWork], known_us: float) -> float | None:
    """Σ bound / Σ time; ``None`` when a member's bound is unknown."""
    bounds = [k.bound_us for k in known if k.bound_us is not None and math.isfinite(k.bound_us)]
    return sum(bounds) / known_us if known_us and len(bounds) == len(known) else None


def _regime(kernels: Sequence[Kernel], total_us: float) -> tuple[str, float]:
    """The regime of most of the time, and its share in percent; of several the first that occurs."""
    spent: defaultdict[str, float] = defaultdict(float)
    for k in kernels:
        spent[k.regime] += k.time_us
    most = max(spent, key=lambda r: spent[r], default="unknown")
    return most, 100 * spent[most] / total_us if total_us else 0.0


def _weakest(kernels: Iterable[Kernel | StepWork]) -> str:
    """The origin that all of it can claim."""
    order = {o: i for i, o in enumerate(ORIGINS)}
    return max((k.origin for k in kernels), key=lambda o: order.get(o, len(order)), default="unknown")


def _op(k: Kernel) -> str:
    return k.op or "no op"


def _module(k: Kernel) -> str:
    return k.module_path or k.module or "no module"


def _last(path: str) -> str:
    """The module itself, without those around it."""
    return path.rsplit(" > ", 1)[-1]


def _device(rank: Rank) -> str | None:
    roofs = subject(rank)[1]
    return roofs.gpu_id or roofs.name
