"""From an analysed document to the answer of a what-if."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from rooflight.errors import Malformed, Refused
from rooflight.prices.money import devices_used
from rooflight.protocol import PARTS, Document, Kernel, Parts, Rank, Roofs, Step
from rooflight.scenarios.kernels import Forecasts, Move, forecasts
from rooflight.scenarios.model import (
    KernelForecast,
    Money,
    Range,
    Scenario,
    StepForecast,
    WhatIf,
    exactly,
)
from rooflight.scenarios.money import OnGpu, by_cost, cost
from rooflight.scenarios.ranges import in_turn
from rooflight.scenarios.rows import Rows
from rooflight.scenarios.start import starts
from rooflight.scenarios.steps import part_factors, wall
from rooflight.scenarios.target import SIZES, Retyped, roofs_of
from rooflight.scenarios.words import assumptions
from rooflight.scenarios.world import MOST_RANKS, RankStep, together, without_waiting
from rooflight.trace.tables import rows_by

if TYPE_CHECKING:
    from rooflight.analysis import Analysis
    from rooflight.prices import Instance

AS_RECORDED = Scenario()
#: 95 years, as readers have it: longer than any recording.
MAX_US = 3e15


def whatif(
    analysis: Analysis | Document,
    gpu: str | None = None,
    scenario: Scenario = AS_RECORDED,
    *,
    money: Money | None = None,
    instances: Iterable[Instance] | None = None,
) -> WhatIf:
    """What an analysed run would take in ``scenario``, on ``gpu`` if one is named: its kernels are those of
    the first rank, its steps those of the slowest one, of at most sixteen.

    ``money`` prices a step; ``instances`` are compared by what a step costs on each.  Raises
    :class:`~rooflight.errors.Refused` for an unknown GPU or dtype, and for a run without GPU work.
    """
    document = analysis if isinstance(analysis, Document) else analysis.document
    asked = scenario if gpu is None else replace(scenario, gpu=gpu)
    if asked.dtype is not None and asked.dtype not in SIZES:
        raise Refused(f"unknown dtype {asked.dtype[:40]!r}", hint=f"one of {', '.join(SIZES)}")
    ranks = [_Rank(r, Rows.of(r.kernels, list(r.devices))) for r in _ranks(document)]
    found = _Run(document, ranks, asked).answer(money)
    if instances is not None:
        found.instances = by_cost(
            instances,
            lambda gpu_id: _Run(document, ranks, replace(asked, gpu=gpu_id)).step(),
            found.devices,
        )
    return found


def _ranks(document: Document) -> list[Rank]:
    """The first rank, and of the others with GPU work those that have most to do themselves."""
    if not document.ranks or not _has_work(document.ranks[0]):
        raise Refused("no GPU work was recorded, so there is none to move", where=document.source)
    odd = (us for rank in document.ranks for us in _times(rank) if not 0 <= us <= MAX_US)
    for us in odd:
        raise Malformed(
            f"not a time: {us} µs", where=document.source, hint="send the JSON of `rooflight analyze`"
        )
    first, *others = document.ranks
    others = sorted(filter(_has_work, others), key=lambda r: (-_own_us(r), r.rank))
    return [first, *others[: MOST_RANKS - 1]]


def _has_work(rank: Rank) -> bool:
    return any(d.n_gpu_events for d in rank.devices.values())


def _own_us(rank: Rank) -> float:
    return sum(s.step_time_us - (s.wait_us or 0.0) for s in rank.steps or rank.inferred_steps)


def _times(rank: Rank) -> list[float]:
    """All that is scaled and summed."""
    steps, kernels = (*rank.steps, *rank.inferred_steps), rank.kernels
    several = [*rank.parts_us.values(), *(s.parts_us for s in steps)]
    return [
        *(getattr(parts, p) for parts in several if parts is not None for p in PARTS),
        *(s.step_time_us for s in steps),
        *(s.wait_us or 0.0 for s in steps),
        *[k.time_us for k in kernels],
        *[k.exclusive_us or 0.0 for k in kernels],
        *[k.steps_exclusive_us or 0.0 for k in kernels],
    ]


@dataclass(frozen=True, slots=True)
class _Rank:
    """A rank with its kernels in columns, by the places of its devices."""

    rank: Rank
    rows: Rows


class _Run:
    """A run in one scenario, seen from its first rank."""

    def __init__(self, document: Document, ranks: Sequence[_Rank], scenario: Scenario) -> None:
        first, *others = ranks
        rank = first.rank
        self._document, self._rank, self._scenario = document, rank, scenario
        self._others = [_Run(document, [other], scenario) for other in others]
        other = None if scenario.gpu is None else roofs_of(scenario.gpu)
        self._moves = {d: _move(rank.roofs.get(d, Roofs()), other, scenario.dtype) for d in rank.devices}
        self._headline = rank.headline or next(iter(rank.devices))
        self._rows, self._home = first.rows, list(rank.devices).index(self._headline)
        self._forecasts = self._forecast()

    def _forecast(self) -> Forecasts:
        """What is on no known device goes by the headline's."""
        rows, moves = self._rows, list(self._moves.values())
        device = np.where(rows.device < 0, self._home, rows.device)
        parts = [(at, forecasts(rows.take(at), moves[d], self._scenario)) for d, at in rows_by(device)]
        return Forecasts.together(parts) if parts else forecasts(rows, moves[self._home], self._scenario)

    def step(self) -> OnGpu:
        """The mean step alone."""
        mean = _mean([s.predicted_us for s in self._steps()])
        return OnGpu(mean.rounded() if mean else None, self._unknown_share(), self._fallback)

    def answer(self, money: Money | None) -> WhatIf:
        steps = self._steps()
        mean = _mean([s.predicted_us for s in steps])
        recorded = [s.recorded_us for s in steps]
        kernels, time_us, _ = self._kernel_time
        devices = self._devices()
        whole = self._rank.parts_us.get(self._headline)
        usd = None if money is None else money.usd_per_gpu_hour
        move = self._moves[self._headline]
        fallback = self._fallback
        return WhatIf(
            source=self._document.source,
            gpu=move.asked.name,
            recorded_gpu=move.recorded.name,
            dtype=self._scenario.dtype,
            dtype_fallback=fallback,
            kernel_time_us=kernels.rounded(),
            recorded_kernel_time_us=round(time_us, 3),
            step_time_us=mean.rounded() if mean else None,
            recorded_step_time_us=round(sum(recorded) / len(recorded), 3) if recorded else None,
            recording_us=None if whole is None else self._wall(whole, steps=False).rounded(),
            recorded_us=None if whole is None else round(_length(whole), 3),
            unknown_share=self._unknown_share(),
            per_kernel=self._kernels(),
            steps=[StepForecast(s.n, s.recorded_us, s.predicted_us.rounded()) for s in steps],
            cost_per_step=cost(mean, usd, devices),
            usd_per_gpu_hour=usd,
            devices=devices,
            assumptions=list(
                assumptions(
                    self._scenario, moved=not move.same, fallback=fallback, several=bool(self._others)
                )
            ),
            withheld=self._rank.verdict_withheld,
            gpu_id=move.asked.gpu_id,
            ranks=1 + len(self._others),
        )

    def _kernels(self) -> list[KernelForecast]:
        f = self._forecasts
        predicted = f.factor.times(self._rows.time_us)
        columns = (predicted.low, predicted.mid, predicted.high, f.basis, f.known, f.bound_us)
        told = zip(self._rank.kernels, *(c.tolist() for c in columns), strict=True)
        return [_row(k, Range(low, mid, high).rounded(), *rest) for k, low, mid, high, *rest in told]

    @property
    def _fallback(self) -> dict[str, str]:
        return {k: v for m in self._moves.values() for k, v in m.types.fallback.items()}

    def _unknown_share(self) -> float | None:
        kernels, _, unknown = self._kernel_time
        return round(100 * unknown / kernels.mid, 2) if kernels.mid else None

    @cached_property
    def _kernel_time(self) -> tuple[Range, float, float]:
        """All kernels: predicted, recorded, and how much of the middle rests on unknowns."""
        kernels, f = self._rows.is_kernel, self._forecasts
        time_us = self._rows.time_us[kernels]
        predicted = f.factor.take(kernels).times(time_us)
        return predicted.total(), in_turn(time_us), in_turn(predicted.mid[~f.known[kernels]])

    def _steps(self) -> list[StepForecast]:
        return together([run.own_steps() for run in (self, *self._others)])

    def own_steps(self) -> list[RankStep]:
        """The steps of this rank alone."""
        steps = self._rank.steps or self._rank.inferred_steps
        return [self._step(s, s.parts_us) for s in steps if s.parts_us is not None]

    def _step(self, step: Step, parts: Parts) -> RankStep:
        own, wait = without_waiting(parts, step.wait_us)
        return RankStep(step.n, step.step_time_us, wait, self._wall(own, steps=True))

    def _wall(self, parts: Parts, *, steps: bool) -> Range:
        factors = self._in_steps if steps else self._in_all
        return wall(parts, factors, self._scenario, self._rank.devices[self._headline])

    @cached_property
    def _in_steps(self) -> dict[str, Range]:
        return part_factors(self._rows, self._forecasts.factor, self._home, steps=True)

    @cached_property
    def _in_all(self) -> dict[str, Range]:
        return part_factors(self._rows, self._forecasts.factor, self._home, steps=False)

    def _devices(self) -> int:
        return devices_used(self._document) or 1


def _move(recorded: Roofs, other: Roofs | None, dtype: str | None) -> Move:
    """To another device; to the same one its own roofs, which may have been measured, are kept."""
    same = other is None or (recorded.gpu_id is not None and other.gpu_id == recorded.gpu_id)
    asked = recorded if same or other is None else other
    return Move(recorded, asked, Retyped(dtype, asked), starts(recorded, asked))


def _row(k: Kernel, predicted: Range, basis: str, known: bool, bound_us: float) -> KernelForecast:
    return KernelForecast(
        name=k.name,
        short_name=k.short_name,
        op=k.op,
        family=k.family,
        dtype=k.dtype,
        device=k.device,
        kind=k.kind,
        count=k.count,
        regime=k.regime,
        time_us=k.time_us,
        predicted_us=predicted,
        bound_us=None if math.isnan(bound_us) else round(bound_us, 3),
        basis=basis,
        known=known,
    )


def _mean(ranges: Sequence[Range]) -> Range | None:
    if not ranges:
        return None
    total = exactly(0.0)
    for r in ranges:
        total += r
    return total.times(1 / len(ranges))


def _length(parts: Parts) -> float:
    return float(sum(getattr(parts, p) for p in PARTS))
