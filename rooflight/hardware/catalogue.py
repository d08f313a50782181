"""The catalogue: one entry per SKU, what was measured on it, and what an SM of its kind holds.

specs/catalogue.json has the records of specs/*.toml, which are for people, in the form that is read at once;
it travels in the wheel and is read on first use.  Each record names its sources, its date and its condition
(dense).  An absent key is unknown.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from rooflight.hardware.model import Gpu

_FILE = Path(__file__).with_name("specs") / "catalogue.json"


@dataclass(frozen=True, slots=True)
class Measurement:
    """A ceiling reached on a model: ``fraction`` of ``peak_used``.

    ``use`` is the roof that it stands for: a matrix dtype, ``memory``, ``link`` or ``pcie``; empty for
    one that stands for none (a read, an initialisation, a run with too few bytes in flight).
    """

    gpu_id: str
    metric: str
    unit: str
    measured: float
    peak_used: float
    fraction: float
    conditions: str
    source: str
    confidence: str
    use: str = ""


@cache
def gpus() -> tuple[Gpu, ...]:
    """All entries in the order of the files."""
    factors = _factors()
    return tuple(_gpu(row, factors.get(row["id"], {})) for row in _tables()["gpu"])


@cache
def by_id() -> dict[str, Gpu]:
    """Entries by id."""
    return {g.id: g for g in gpus()}


@cache
def measurements() -> tuple[Measurement, ...]:
    """What was measured, on any model."""
    return tuple(Measurement(**_known(row, Measurement)) for row in _tables()["measured"])


def limits() -> list[dict[str, Any]]:
    """What one SM holds at most: a record per compute capability or gfx name."""
    return _tables()["limits"]


def _factors() -> dict[str, dict[str, float]]:
    """Per model and roof the median fraction of its datasheet figure."""
    rows: dict[tuple[str, str], list[float]] = {}
    for m in measurements():
        if m.use:
            rows.setdefault((m.gpu_id, m.use), []).append(m.fraction)
    out: dict[str, dict[str, float]] = {}
    for (gpu_id, use), fractions in rows.items():
        out.setdefault(gpu_id, {})[use] = round(_median(fractions), 4)
    return out


def _median(values: list[float]) -> float:
    # The standard library's would cost the command line a tenth of its start.
    ordered, middle = sorted(values), len(values) // 2
    return ordered[middle] if len(values) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def _gpu(row: dict[str, Any], efficiency: dict[str, float]) -> Gpu:
    known = _known(row, Gpu)
    known["names"], known["sources"] = tuple(row["names"]), tuple(row["sources"])
    return Gpu(**known, efficiency=efficiency)


def _known(row: dict[str, Any], kind: type) -> dict[str, Any]:
    """The keys that the record has."""
    names = {f.name for f in fields(kind)}
    return {k: v for k, v in row.items() if k in names}


@cache
def _tables() -> dict[str, list[dict[str, Any]]]:
    tables: dict[str, list[dict[str, Any]]] = json.loads(_FILE.read_text(encoding="utf-8"))
    return tables
