"""The device's work cut by phase and by module, and how far the steps differ from each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from app.pages.numbers import share
from app.pages.vocabulary import MEANING, name
from app.pages.waterfall import STACK, Piece, stack
from rooflight.protocol import Parts, Percentiles, Rank
from rooflight.report.cuts import ModuleRow, module_rows, phases
from rooflight.report.summary import Summary
from rooflight.report.text import fit
from rooflight.results.modules import SEPARATOR
from rooflight.results.phases import WORK

#: A link that names more of its rows than this many letters hold is none.
_LONGEST = 240
_NAME, _PATH = 120, 600


@dataclass(frozen=True, slots=True)
class PhaseBar:
    """A phase of training with the bar of its parts, all bars on one axis."""

    name: str
    us: float
    share_pct: float
    pieces: list[Piece]


@dataclass(frozen=True, slots=True)
class ModuleLine:
    """A module; ``picks`` are its rows of the kernel table, as the address writes them, "" when too many."""

    row: ModuleRow
    name: str
    path: str
    picks: str


@dataclass(frozen=True, slots=True)
class Spread:
    """Percentiles of the steps, of one part or of the whole step; places in percent of the longest p99."""

    key: str
    label: str
    meaning: str
    us: Percentiles
    x50: float
    x95: float
    x99: float


def phase_bars(rank: Rank, s: Summary) -> list[PhaseBar]:
    """The phases with work; none where all work is of one."""
    found = phases(rank, s)
    longest = max((p.us for p in found), default=0.0)
    return [PhaseBar(p.name, p.us, p.share_pct, _pieces(p.parts, longest)) for p in found]


def module_lines(rank: Rank, s: Summary) -> list[ModuleLine]:
    """The modules with most time, the inner under the outer."""
    return [_module(r, rank) for r in module_rows(rank, s)]


def _module(r: ModuleRow, rank: Rank) -> ModuleLine:
    path = r.module.path
    return ModuleLine(r, fit(r.module.name, _NAME), fit(path, _PATH), _picks(rank, path))


def spread(rank: Rank) -> list[Spread]:
    """The step time and its parts, in the order of the bars; none of fewer than five steps."""
    known = {k: p for k, p in rank.percentiles_us.items() if p.p95 is not None and p.p99 is not None}
    longest = max((p.p99 or 0.0 for p in known.values()), default=0.0)
    order = ("step_time", *STACK)
    return [_spread(k, known[k], longest) for k in order if k in known] if longest else []


def _spread(key: str, p: Percentiles, longest: float) -> Spread:
    label = "Step time" if key == "step_time" else name(key)
    places = [share(v, longest) or 0.0 for v in (p.p50, p.p95, p.p99)]
    return Spread(key, label, MEANING.get(key, "from the start of a step to its end"), p, *places)


def _pieces(parts: Parts, longest: float) -> list[Piece]:
    held = {p: float(getattr(parts, p)) for p in WORK}
    return stack(held, longest) if longest else []


def _picks(rank: Rank, path: str) -> str:
    """The rows of a module and of all that is inside it: ``0-4.9``."""
    inside = path + SEPARATOR
    own = (
        (i, k.module_path or k.module or "") for i, k in enumerate(rank.kernels) if k.device == rank.headline
    )
    mine = [i for i, p in own if p == path or p.startswith(inside)]
    text = ".".join(_ranges(mine))
    return text if len(text) <= _LONGEST else ""


def _ranges(indices: Iterable[int]) -> Iterator[str]:
    # Less its place in the list, an index is the same for all in a row.
    for _, group in groupby(enumerate(indices), lambda pair: pair[1] - pair[0]):
        run = [i for _, i in group]
        yield str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}"
