"""Where a step goes: bars that hang from one another, from the wall time down to the attainable time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from app.pages.numbers import share
from app.pages.vocabulary import IDLE, MEANING, name
from rooflight.protocol import KERNEL_PARTS, PARTS

#: Order of the bars that hang from the wall: what idles first, then what only moves data.
LOSSES = (
    "input",
    "sync",
    "host",
    "dispatch",
    "launch",
    "dependency",
    "unknown_idle",
    "communication",
    "copy",
)
#: Losses that have no line where they are 0: rare ones, and on a CPU those that only a GPU has.
SILENT = frozenset({"unknown_idle", "communication"})
GPU_ONLY = frozenset({*SILENT, "dispatch", "launch", "dependency", "copy"})
#: Order of the pieces inside the bar of one step: work, traffic, then the waits.
STACK = (
    *KERNEL_PARTS,
    *("communication", "copy", "input", "dispatch", "launch", "sync", "host", "dependency", "unknown_idle"),
)


@dataclass(frozen=True, slots=True)
class Piece:
    """A filled stretch of a bar: ``x`` and ``w`` in percent of the axis, ``us`` its time."""

    part: str
    us: float
    x: float
    w: float
    idle: bool


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the waterfall.  ``kind`` is sum, part, excess or zero; ``start_x``, ``end_x`` are where
    the hairlines to its neighbours hang, in percent."""

    kind: str
    key: str
    label: str
    us: float
    share_pct: float | None
    pieces: list[Piece]
    meaning: str
    start_x: float | None = None
    end_x: float | None = None


@dataclass(frozen=True, slots=True)
class Waterfall:
    """Rows, and the axis that they and the bars of the single steps share."""

    rows: list[Row]
    ticks: list[tuple[float, float]] = field(default_factory=list)
    top_us: float = 0.0


def axis(longest_us: float, *, about: int = 4) -> tuple[list[tuple[float, float]], float]:
    """Round tick values in µs with their place in percent, and the end of the axis."""
    if longest_us <= 0:
        return [(0.0, 0.0)], 1.0
    rough = longest_us / about
    base = 10.0 ** math.floor(math.log10(rough))
    step = next(m * base for m in (1, 2, 2.5, 5, 10) if m * base >= rough)
    n = math.ceil(longest_us / step - 1e-9)
    return [(i * step, 100 * i / n) for i in range(n + 1)], n * step


def stack(parts: Mapping[str, float], top_us: float, order: tuple[str, ...] = STACK) -> list[Piece]:
    """The parts of one wall side by side, in percent of the axis; empty parts take no place."""
    pieces, at = [], 0.0
    for part in order:
        us = parts.get(part, 0.0)
        if us > 0:
            pieces.append(Piece(part, us, 100 * at / top_us, 100 * us / top_us, part in IDLE))
            at += us
    return pieces


def waterfall(
    parts: Mapping[str, float],
    attainable_us: float | None,
    *,
    longest_us: float,
    device: str = "GPU",
    notes: Mapping[str, str] | None = None,
) -> Waterfall:
    """From the wall (the sum of the parts) through every loss to the kernel time and what is attainable.

    ``attainable_us`` is null where no roof is known: the last two rows are left out then.
    ``notes`` adds to the meaning of a part what this recording tells about it.
    """
    ticks, top = axis(longest_us)
    wall = sum(parts.get(p, 0.0) for p in PARTS)
    kernel = sum(parts.get(p, 0.0) for p in KERNEL_PARTS)
    rows = [
        _sum(
            "wall", "Wall time", wall, wall, [Piece("ink", wall, 0, 100 * wall / top, False)], "start to end"
        )
    ]
    at = wall
    silent = SILENT if device == "GPU" else GPU_ONLY
    for part in LOSSES:
        us = parts.get(part, 0.0)
        if us or part not in silent:
            rows.append(_loss(part, us, at, wall, top, (notes or {}).get(part, "")))
            at -= us
    label = "Kernel time" if device == "GPU" else "Operator time"
    work = stack({p: parts.get(p, 0.0) for p in KERNEL_PARTS}, top)
    rows.append(_sum("kernel", label, kernel, wall, work, "work runs; each instant is counted once"))
    if attainable_us is not None:
        rows += _speed_of_light(kernel, attainable_us, wall, top)
    return Waterfall(rows, ticks, top)


def _sum(key: str, label: str, us: float, wall: float, pieces: list[Piece], meaning: str) -> Row:
    end = pieces[-1].x + pieces[-1].w if pieces else 0.0
    return Row("sum", key, label, us, share(us, wall), pieces, meaning, None, end)


def _loss(part: str, us: float, at: float, wall: float, top: float, note: str) -> Row:
    end = 100 * at / top
    start = 100 * (at - us) / top
    pieces = [Piece(part, us, start, end - start, part in IDLE)] if us else []
    kind, meaning = ("part" if us else "zero"), f"{MEANING[part]} {note}".strip()
    return Row(kind, part, name(part), us, share(us, wall), pieces, meaning, end, start)


def _speed_of_light(kernel: float, attainable: float, wall: float, top: float) -> list[Row]:
    excess = max(0.0, kernel - attainable)
    x, w = 100 * attainable / top, 100 * excess / top
    return [
        Row(
            "excess" if excess else "zero", "excess", "Above its bound", excess, share(excess, wall),
            [Piece("ink", excess, x, w, False)] if excess else [],
            "kernel time beyond what the practical roofs allow", x + w, x,
        ),
        _sum(
            "attainable", "Attainable", attainable, wall, [Piece("ink", attainable, 0, x, False)],
            "kernel time if every kernel ran at its practical roof; kernels of unknown cost count in full",
        ),
    ]  # fmt: skip
