"""Medians of columns, in one sort; ``np.median`` imports masked arrays."""

from __future__ import annotations

import numpy as np

from rooflight.attribution.intervals import F64
from rooflight.trace.tables import I64, sorted_within


def median(values: I64 | F64) -> float:
    """The middle of at least one value, of an even number the mean of the two in the middle."""
    return float(medians(np.zeros(values.size, np.int64), values, 1)[0])


def medians(group: I64, values: I64 | F64, n: int) -> F64:
    """The median of the values of each of ``n`` groups, NaN of one without any."""
    ordered = _in_order(group, values)
    size = np.bincount(group, minlength=n)
    first = np.cumsum(size) - size
    found = np.full(n, np.nan)
    some = np.flatnonzero(size)
    middle = first[some] + size[some] // 2
    found[some] = (ordered[middle] + ordered[first[some] + (size[some] - 1) // 2]) / 2
    return found


def _in_order(group: I64, values: I64 | F64) -> F64:
    if np.issubdtype(values.dtype, np.integer):
        return sorted_within(group, values.astype(np.int64)).astype(np.float64)
    return values[np.lexsort((values, group))].astype(np.float64)
