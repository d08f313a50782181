"""Devices of one model beside each other: which of them is behind.

Two devices of a model should reach the same.  One whose figure is further below the median of the others
than noise explains has a bad cable, a clogged cooler, a lower power cap or a neighbour.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from rooflight.calibration import Calibration

#: Percent below the median of its siblings from which a device may be named, and in spreads.
LEAST_BEHIND_PCT = 5.0
SPREADS = 3.0


class Identity(NamedTuple):
    """One device: a GPU by its UUID, else a host's device of so many threads."""

    kind: str
    model: str
    threads: str
    uuid: str
    host: str


class Behind(Struct):
    """A figure of one device that is ``behind_pct`` percent below ``median``, that of its ``siblings``
    other devices; ``allowed_pct`` is what noise explains."""

    device: str
    uuid: str | None
    host: str | None
    figure: str
    value: float
    median: float
    behind_pct: float
    allowed_pct: float
    siblings: int


def behind(calibrations: Iterable[Calibration]) -> list[Behind]:
    """The figures that are behind, of the newest calibration of each device, farthest first."""
    models: dict[tuple[str, str, str], list[Calibration]] = {}
    for key, newest in latest(calibrations).items():
        models.setdefault(key[:3], []).append(newest)
    found = [b for group in models.values() for one in group for b in _behind(one, group)]
    return sorted(found, key=lambda b: -b.behind_pct)


def latest(calibrations: Iterable[Calibration]) -> dict[Identity, Calibration]:
    """The newest calibration of each device; times are ISO 8601 in one zone, as the agent writes them."""
    newest: dict[Identity, Calibration] = {}
    for c in sorted(calibrations, key=lambda c: c.measured_at):
        newest[identity(c)] = c
    return newest


def identity(c: Calibration) -> Identity:
    """Who was measured.  Half the threads are half a CPU, and so another one."""
    model = " ".join(c.device.casefold().split())
    threads = c.conditions.get("threads", "") if c.kind == "cpu" else ""
    return Identity(c.kind, model, threads, c.uuid or "", "" if c.uuid else c.host or "")


def figures(c: Calibration) -> dict[str, float]:
    """Rates by the names that their spreads have; more is better in all of them.

    A GPU's copy is from the host, and there under its own name where both directions were measured.
    """
    found = {f"gemm_{dtype}": rate for dtype, rate in c.gemm_tflops.items()}
    copy = None if "h2d" in c.link_gbs else c.copy_gbs
    single = {"stream": c.stream_gbs, "read": c.streams_gbs.get("read"), "copy": copy}
    found |= {name: rate for name, rate in single.items() if rate is not None}
    return found | c.link_gbs


def _behind(one: Calibration, group: Sequence[Calibration]) -> Iterable[Behind]:
    others = [(figures(c), c.spread_pct) for c in group if c is not one]
    for name, value in figures(one).items():
        rates = [rates[name] for rates, _ in others if name in rates]
        if not rates:
            continue
        median = statistics.median(rates)
        short_pct = 100 * (median - value) / median
        allowed_pct = max(LEAST_BEHIND_PCT, SPREADS * _spread_pct(name, one, others))
        if short_pct > allowed_pct:
            yield Behind(
                one.device, one.uuid, one.host, name, value, median, short_pct, allowed_pct, len(rates)
            )


def _spread_pct(
    name: str, one: Calibration, others: Sequence[tuple[Mapping[str, float], Mapping[str, float]]]
) -> float:
    """The wider of the device's own spread and the median of its siblings'."""
    theirs = [spreads[name] for _, spreads in others if name in spreads]
    return max(one.spread_pct.get(name, 0.0), statistics.median(theirs) if theirs else 0.0)
