"""Regimes of a run, summed: which rows are in which regime and how long."""

from __future__ import annotations

from collections import Counter

from app.runs.schemas import RankRegimes, Regimes, RegimeShare
from rooflight.protocol import REGIMES, Document, Kernel, Rank
from rooflight.units import NS_PER_US, pct, us


def regimes(document: Document) -> Regimes:
    """Per rank: kernel groups, launches and time of each regime, and steps by regime."""
    return Regimes(items=[_of_rank(r) for r in document.ranks])


def _of_rank(rank: Rank) -> RankRegimes:
    rows, verdict = (rank.cpu.ops, rank.cpu) if rank.cpu is not None else (rank.kernels, rank)
    steps = rank.cpu.steps if rank.cpu is not None else rank.steps
    return RankRegimes(
        rank=rank.rank,
        regime=verdict.regime,
        regime_confidence=verdict.regime_confidence,
        regime_reason=verdict.regime_reason,
        kernels=_shares(rows),
        steps=dict(Counter(s.regime or "withheld" for s in steps)),
    )


def _shares(rows: list[Kernel]) -> list[RegimeShare]:
    total = sum(_ns(k) for k in rows)
    shares = []
    for regime in REGIMES:
        members = [k for k in rows if k.regime == regime]
        if members:
            ns = sum(_ns(k) for k in members)
            shares.append(
                RegimeShare(
                    regime=regime,
                    kernels=len(members),
                    launches=sum(k.count for k in members),
                    time_us=us(ns),
                    share_pct=pct(ns, total),
                )
            )
    return shares


def _ns(kernel: Kernel) -> int:
    return round(kernel.time_us * NS_PER_US)
