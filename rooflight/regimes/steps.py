"""The regime of a step from the exclusive parts of its wall time (DEFINITIONS §16)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rooflight.protocol import PARTS, REGIMES

#: The regime that each part of a step counts for.
GROUPS: Mapping[str, str] = {
    "compute": "compute",
    "memory": "memory",
    "latency": "latency",
    "launch": "latency",
    "dispatch": "latency",
    "communication": "communication",
    "input": "input",
    "host": "host",
    "sync": "host",
    "copy": "copy",
    "dependency": "dependency",
    "unknown": "unknown",
    "unknown_idle": "unknown",
}
#: Parts that are no kernel work: a regime of their own from a fifth of the wall on.
CAUSES = ("launch", "dispatch", "communication", "input", "host", "sync", "copy", "dependency")
KERNEL_WORK = ("compute", "memory", "latency", "unknown")
#: A cause counts from 20 % of the wall on; a dependency is unexplained above 5 % (as 1/n: exact in integers).
CAUSE_ONE_IN = 5
UNEXPLAINED_ONE_IN = 20
COSTS_UNKNOWN = "costs unknown"


@dataclass(frozen=True, slots=True)
class StepVerdict:
    """``regime`` and ``confidence`` are ``None`` when withheld or unknown; ``reason`` then says why,
    else what decided, in words."""

    regime: str | None
    confidence: str | None
    reason: str


def step_regime(
    parts: Mapping[str, int],
    *,
    grade: str,
    unknown_inferred_frac: float,
    withheld: str | None,
    factor_assumed: bool = False,
) -> StepVerdict:
    """The regime of a step whose ``parts`` (ns) sum to its wall time.

    ``unknown_inferred_frac`` is the share (0 to 1) of kernel time whose cost is unknown or inferred,
    ``withheld`` the reason why the recording allows no verdict.  ``factor_assumed`` says that the
    roofs rest on an assumed efficiency: a verdict that rests on roofs is then not high.  The lead that
    confidence asks for is over the second of the same contest: causes, or else kernel work.
    """
    wall = sum(parts.get(p, 0) for p in PARTS)
    if withheld:
        return StepVerdict(None, None, withheld)
    if wall <= 0:
        return StepVerdict(None, None, "no time was recorded")
    ranking, is_cause = _contest(parts, wall)
    regime, top_ns = ranking[0]
    if regime == "unknown":
        return StepVerdict(None, None, COSTS_UNKNOWN)
    lead = (top_ns - ranking[1][1]) / wall
    confidence = _confidence(
        complete=grade == "complete",
        lead=lead,
        doubt=unknown_inferred_frac,
        unexplained=unexplained_idle(parts),
        roof_assumed=factor_assumed and not is_cause,
    )
    return StepVerdict(regime, confidence, f"{regime} takes {100 * top_ns / wall:.0f} % of the wall time")


def run_regime(
    steps: Iterable[Mapping[str, int]],
    *,
    grade: str,
    unknown_inferred_frac: float,
    withheld: str | None,
    factor_assumed: bool = False,
) -> StepVerdict:
    """The regime of a run: that of its steps' parts (ns) taken together."""
    return step_regime(
        summed(steps),
        grade=grade,
        unknown_inferred_frac=unknown_inferred_frac,
        withheld=withheld,
        factor_assumed=factor_assumed,
    )


def summed(steps: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Part by part over the steps, in ns; every part is there."""
    total: Counter[str] = Counter()
    for parts in steps:
        total.update(parts)
    return {p: total[p] for p in PARTS}


def grouped(parts: Mapping[str, int]) -> dict[str, int]:
    """The parts by regime, in ns; every regime is there, in the order that breaks ties."""
    total: Counter[str] = Counter()
    for part in PARTS:
        total[GROUPS[part]] += parts.get(part, 0)
    return {r: total[r] for r in REGIMES}


def unexplained_idle(parts: Mapping[str, int]) -> bool:
    """Whether more than 5 % of the wall waited for something that is not in the recording."""
    wall = sum(parts.get(p, 0) for p in PARTS)
    return parts.get("dependency", 0) * UNEXPLAINED_ONE_IN > wall


def rests_on(verdict: StepVerdict, basis: str) -> StepVerdict:
    """The verdict over steps that were inferred from ``basis``: it says so, and is never sure."""
    if verdict.regime is None:
        return verdict
    return StepVerdict(
        verdict.regime, incomplete(verdict.confidence), f"{verdict.reason}, over steps inferred from {basis}"
    )


def incomplete(confidence: str | None) -> str | None:
    """The confidence of a verdict once its recording turns out to be incomplete: not high."""
    return "medium" if confidence == "high" else confidence


def _contest(parts: Mapping[str, int], wall: int) -> tuple[list[tuple[str, int]], bool]:
    """The candidates, largest first, and whether they are causes outside kernel work."""
    causes = grouped({p: parts.get(p, 0) for p in CAUSES})
    del causes["compute"], causes["memory"], causes["unknown"]
    ranking = _ranked(causes)
    if ranking[0][1] * CAUSE_ONE_IN >= wall:
        return ranking, True
    everything = grouped(parts)
    return _ranked({r: everything[r] for r in KERNEL_WORK}), False


def _ranked(by_regime: Mapping[str, int]) -> list[tuple[str, int]]:
    # sorted() is stable, so equal times stay in the order of the list.
    return sorted(by_regime.items(), key=lambda item: -item[1])


def _confidence(*, complete: bool, lead: float, doubt: float, unexplained: bool, roof_assumed: bool) -> str:
    if doubt > 0.40 or lead < 0.03 or unexplained:
        return "low"
    sure = complete and doubt < 0.10 and lead >= 0.10 and not roof_assumed
    return "high" if sure else "medium"
