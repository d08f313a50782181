"""Exact fractions as whole ns whose sums stay exact, each side for itself.

Every part is rounded down, and those with the most left over get one more, until they add up to the rounded
whole.  So the JSON adds up to the last digit, and B against A is A against B with every sign turned round.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import floor
from typing import NamedTuple, TypeVar

from rooflight.comparison.groups import Key
from rooflight.comparison.recordings import WORK_PARTS
from rooflight.comparison.side import Side

K = TypeVar("K")


class Whole(NamedTuple):
    """A side in whole ns: ``total`` is the sum of ``parts``; the groups' parts with ``rest`` are the parts in
    which the device works."""

    total: int
    parts: dict[str, int]
    groups: dict[Key, dict[str, int]]
    rest: dict[str, int]


def whole(side: Side) -> Whole:
    """All times of a side in whole ns."""
    total = round(side.mean_ns)
    parts = apportioned(side.parts, total)
    groups: dict[Key, dict[str, int]] = {g.key: {} for g in side.groups or ()}
    rest = {}
    for part in WORK_PARTS:
        exact = {g.key: g.by_part[part] for g in side.groups or () if part in g.by_part}
        rest[part] = round(side.parts[part] - sum(exact.values(), Fraction())) if exact else parts[part]
        for key, ns in apportioned(exact, parts[part] - rest[part]).items():
            groups[key][part] = ns
    return Whole(total, parts, groups, rest)


def apportioned(exact: Mapping[K, Fraction], total: int) -> dict[K, int]:
    """Whole numbers near the fractions that add up to ``total``, the rounded sum of these."""
    down = {k: floor(x) for k, x in exact.items()}
    left = total - sum(down.values())
    for k in sorted(exact, key=lambda k: down[k] - exact[k])[:left]:
        down[k] += 1
    return down
