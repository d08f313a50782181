"""Exact fractions as whole ns whose sums stay exact, each side for itself.

Every part is rounded down, and those with the most left over get one more, until they add up to the rounded
whole.  So the JSON adds up to the last digit, and B against A is A against B with every sign turned round.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple, TypeVar

from rooflight.comparison.exact import in_one_unit, total
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
    mean = round(side.mean_ns)
    parts = apportioned(side.parts, mean)
    groups: dict[Key, dict[str, int]] = {g.key: {} for g in side.groups or ()}
    rest = {}
    for part in WORK_PARTS:
        exact = {g.key: g.by_part[part] for g in side.groups or () if part in g.by_part}
        rest[part] = round(side.parts[part] - total(exact.values())) if exact else parts[part]
        for key, ns in apportioned(exact, parts[part] - rest[part]).items():
            groups[key][part] = ns
    return Whole(mean, parts, groups, rest)


def apportioned(exact: Mapping[K, Fraction], whole: int) -> dict[K, int]:
    """Whole numbers near the fractions that add up to ``whole``, the rounded sum of these."""
    times, unit = in_one_unit(exact.values())
    down = {k: t // unit for k, t in zip(exact, times, strict=True)}
    over = {k: t % unit for k, t in zip(exact, times, strict=True)}
    left = whole - sum(down.values())
    for k in sorted(over, key=lambda k: -over[k])[:left]:
        down[k] += 1
    return down
