"""The verdict in one sentence: the cause, its price per step, and what to do first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from app.pages.numbers import NB, TimeUnit, percent, share
from rooflight.protocol import KERNEL_PARTS
from rooflight.regimes.advice import MEANING, advice, meaning
from rooflight.regimes.steps import COSTS_UNKNOWN, GROUPS


@dataclass(frozen=True, slots=True)
class Verdict:
    """``regime`` is null when the verdict is withheld; ``text`` then holds the reason, ``advice``
    what to do about it where that is known."""

    regime: str | None
    lead: str
    us: float
    share_pct: float | None
    text: str
    advice: str


def group_us(regime: str, parts: Mapping[str, float]) -> float:
    """Time of all parts of a regime."""
    return sum(us for part, us in parts.items() if GROUPS[part] == regime)


def verdict(
    regime: str | None, reason: str | None, parts: Mapping[str, float], unit: TimeUnit, *, per: str, cpu: bool
) -> Verdict:
    """The sentence for a regime over ``parts``; ``per`` is ``per step`` or what else they are of."""
    wall = sum(parts.values())
    if regime is None or regime not in MEANING:
        if reason == COSTS_UNKNOWN:
            return Verdict(None, "No verdict.", 0.0, None, _unknown(parts, cpu), advice(None, on_cpu=cpu))
        return Verdict(None, "No verdict.", 0.0, None, reason or "no regime was found", "")
    us = group_us(regime, parts)
    part = share(us, wall)
    spent = f"{unit.text(us)} of {unit.text(wall)} {per} ({percent(part)}{NB}%)"
    text = f"{spent} are {meaning(regime, on_cpu=cpu)}."
    return Verdict(regime, f"{_lead(regime)}.", us, part, text, advice(regime, on_cpu=cpu))


def _unknown(parts: Mapping[str, float], cpu: bool) -> str:
    """How much of the work nothing is known to bound, where the parts tell."""
    what = "operator" if cpu else "kernel"
    pct = share(parts["unknown"], sum(parts[p] for p in KERNEL_PARTS))
    return COSTS_UNKNOWN if not pct else f"what bounds {percent(pct)}{NB}% of the {what} time is unknown"


def _lead(regime: str) -> str:
    return "Cause unknown" if regime == "unknown" else f"{regime.capitalize()}-bound"
