"""The device's work cut otherwise: by phase of training and by module."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rooflight.protocol import Parts, Rank
from rooflight.report.bars import chip, draw, stack
from rooflight.report.markup import NB, Html, tag
from rooflight.report.summary import WATERFALL, Summary
from rooflight.report.text import fit
from rooflight.results.modules import Module, modules, outline
from rooflight.results.phases import WORK

TOP_MODULES = 24
_NAME, _FULL = 120, 600
_ORDER = tuple(reversed(WATERFALL))


@dataclass(frozen=True, slots=True)
class Phase:
    """Work of one phase, per step (without steps in all): its ``parts``, ``us`` in all."""

    name: str
    parts: Parts
    us: float
    share_pct: float


@dataclass(frozen=True, slots=True)
class ModuleRow:
    """A module's own time (what overlaps counts once), per step: ``us``, and its share of the wall time;
    ``indent`` is how many of those shown are around it."""

    module: Module
    indent: int
    us: float
    share_pct: float


def phases(rank: Rank, s: Summary) -> list[Phase]:
    """The phases with work, in their order; none where all of it is of one."""
    steps, found = _steps(s), []
    for name, total in rank.phase_parts_us.items():
        parts = Parts(**{p: getattr(total, p) / steps for p in WORK})
        us = sum(getattr(parts, p) for p in WORK)
        found.append(Phase(name, parts, us, 100 * us / s.wall_us if s.wall_us else 0.0))
    return found if len(found) > 1 else []


def module_rows(rank: Rank, s: Summary, most: int = TOP_MODULES) -> list[ModuleRow]:
    """The modules with most time, the inner under the outer; none where no module was recorded."""
    if s.on_cpu or not s.wall_us:
        return []
    mine = modules(k for k in rank.kernels if k.device == rank.headline)
    return [_own(m, indent, s) for indent, m in outline(mine, most) if m.exclusive_us is not None]


def _own(m: Module, indent: int, s: Summary) -> ModuleRow:
    us = (m.exclusive_us or 0.0) / _steps(s)
    return ModuleRow(m, indent, us, 100 * us / s.wall_us)


def cuts(rank: Rank, s: Summary) -> Html:
    """The panel; nothing where neither phases nor modules tell anything."""
    of_phases, of_modules = phases(rank, s), module_rows(rank, s)
    if not of_phases and not of_modules:
        return Html()
    longest = max((p.us for p in of_phases), default=0.0)
    rows = [*(_phase(p, longest, s) for p in of_phases), *(_module(r, s) for r in of_modules)]
    table = tag("table", tag("thead", tag("tr", *_head())), tag("tbody", *rows), cls="grid")
    title = " and ".join(t for t, there in (("Phases", of_phases), ("Modules", of_modules)) if there)
    return tag(
        "section",
        tag("header", tag("h2", title), tag("p", f"the device's work {s.unit}, what overlaps counted once")),
        tag("div", table, cls="scroll tall", tabindex=0, role="region", aria_label=f"Table of {title}"),
        cls="panel",
        id="modules",
    )


def _head() -> Iterator[Html]:
    for label, cls in (("Part of the model", ""), ("Bound by", ""), ("ms", "num"), ("Of wall", "num opt"),
                       ("Of roof", "num"), ("Calls", "num opt")):  # fmt: skip
        yield tag("th", label, scope="col", cls=cls or None)


def _phase(p: Phase, longest: float, s: Summary) -> Html:
    bar = tag("svg", draw(stack(p.parts, longest, _ORDER), 0, 10), cls="stack", aria_hidden="true")
    return _row(tag("b", p.name.capitalize()), bar, p.us, p.share_pct, (None, None), s, p.name)


def _module(r: ModuleRow, s: Summary) -> Html:
    m = r.module
    name = tag("span", f"{NB * 2 * r.indent}{fit(m.name, _NAME)}", cls="mono")
    roof = None if m.roof_fraction is None else f"{100 * m.roof_fraction:.0f}{NB}%"
    return _row(name, chip(fit(m.regime, 40)), r.us, r.share_pct, (roof, f"{m.count:,}"), s, m.path)


def _row(
    name: Html,
    bound: Html,
    us: float,
    share_pct: float,
    figures: Sequence[str | None],
    s: Summary,
    full: str,
) -> Html:
    roof, calls = (text or "–" for text in figures)
    return tag(
        "tr",
        tag("td", name, title=fit(full, _FULL)),
        tag("td", bound),
        tag("td", f"{us / 1000:,.{s.decimals}f}", cls="num"),
        tag("td", f"{share_pct:.1f}{NB}%", cls="num mute opt"),
        tag("td", roof, cls="num"),
        tag("td", calls, cls="num opt"),
    )


def _steps(s: Summary) -> int:
    return 1 if s.whole else max(1, sum(x.parts_us is not None for x in s.steps))


def phases_said(found: Sequence[Phase], decimals: int) -> str:
    """The phases in a line; "" without any."""
    return ", ".join(f"{p.name} {p.us / 1000:,.{decimals}f} ms ({p.share_pct:.0f} %)" for p in found)
