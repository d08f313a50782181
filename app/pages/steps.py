"""Which steps the figures of a rank rest on, and the parts of their mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.pages import numbers as n
from rooflight.protocol import PARTS, CpuStep, Parts, Rank, Step

#: Under so many steps the tails of the step time are not known.
TOO_FEW = 5
AnyStep = Step | CpuStep


@dataclass(frozen=True, slots=True)
class StepTime:
    """Headline of the step time, in µs; p95 and p99 are null under five steps."""

    count: int
    p50: float | None
    p95: float | None
    p99: float | None


def counted_steps(rank: Rank) -> tuple[Sequence[AnyStep], bool]:
    """The steps that figures rest on, and whether they were inferred rather than recorded."""
    if rank.cpu is not None and not rank.devices:
        return rank.cpu.steps, False
    if rank.steps:
        return rank.steps, False
    return rank.inferred_steps, bool(rank.inferred_steps)


def parts_of(
    rank: Rank, chosen: Sequence[AnyStep], step_n: int | None, inferred: bool
) -> tuple[dict[str, float], str]:
    """The parts that the headline shows, and in words what they are of."""
    with_parts = [as_dict(s.parts_us) for s in chosen if s.parts_us is not None]
    if with_parts:
        kind = "inferred step" if inferred else "step"
        one = step_n if step_n is not None else chosen[0].n
        of = f"{kind} {one}" if len(with_parts) == 1 else f"mean of {n.count(len(with_parts))} {kind}s"
        return {p: mean([d[p] for d in with_parts]) or 0.0 for p in PARTS}, of
    if rank.cpu is not None and not rank.devices:
        return as_dict(rank.cpu.parts_us or Parts()), "whole recording"
    main = main_device(rank)
    return as_dict(rank.parts_us.get(main or "", Parts())), "whole recording"


def as_dict(parts: Parts) -> dict[str, float]:
    """Parts by name, in the order of the protocol."""
    return {p: getattr(parts, p) for p in PARTS}


def mean(values: Sequence[float]) -> float | None:
    """The mean; ``None`` of nothing."""
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


def main_device(rank: Rank) -> str | None:
    """The device whose parts are the headline; one without GPU work where there is no other."""
    return rank.headline or next(iter(rank.devices), None)
