"""The bounds of many pieces of work at once, in columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from rooflight.attribution.intervals import F64
from rooflight.protocol import Roofs
from rooflight.roofline.bounds import Rates, Work, counts_in_integers, rates
from rooflight.trace.tables import I64, Mask, distinct
from rooflight.units import NS_PER_S


@dataclass(frozen=True, slots=True)
class Works:
    """Work in columns, NaN where it is unknown; ``kind`` is the place in ``kinds`` of work that meets the
    same roofs, whose own amounts say nothing."""

    flops: F64
    bytes: F64
    link_bytes: F64
    kind: I64
    kinds: Sequence[Work]

    def __getitem__(self, rows: I64 | Mask) -> Self:
        """The work at ``rows``, with the kinds that it has."""
        used = distinct(self.kind[rows])
        kind = np.searchsorted(used, self.kind[rows])
        kinds = [self.kinds[i] for i in used.tolist()]
        return type(self)(self.flops[rows], self.bytes[rows], self.link_bytes[rows], kind, kinds)


class Least(NamedTuple):
    """``ns`` is ``bound_ns`` of :class:`rooflight.roofline.bounds.Bound`, NaN where it is ``None``; ``lacks``
    as :func:`rooflight.roofline.bounds.lacks_roof` says."""

    ns: F64
    lacks: Mask


def least(works: Works, roofs: Roofs) -> Least:
    """The bound of each piece of work, and whether it lacks a roof that a verdict would need."""
    met = [rates(kind, roofs) for kind in works.kinds]
    compute_ns = np.where(works.flops == 0, 0.0, _times(works.flops, works.kind, met, lambda r: r.compute))
    memory_ns = _times(works.bytes, works.kind, met, lambda r: r.memory)
    link_ns = _times(works.link_bytes, works.kind, met, lambda r: r.link)
    judged = np.array([k.matrix or not counts_in_integers(k) for k in works.kinds], bool)[works.kind]
    lacks = _missing(works.bytes, memory_ns) | (_missing(works.flops, compute_ns) & judged)
    return Least(np.fmax(np.fmax(compute_ns, memory_ns), link_ns), lacks)


def _times(amount: F64, kind: I64, met: Sequence[Rates], rate: Callable[[Rates], float | None]) -> F64:
    per_s = np.array([rate(r) for r in met], np.float64)[kind]
    with np.errstate(over="ignore"):
        return amount / per_s * NS_PER_S


def _missing(amount: F64, time_ns: F64) -> Mask:
    missing: Mask = (amount > 0) & np.isnan(time_ns)
    return missing
