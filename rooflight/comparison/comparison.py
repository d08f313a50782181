"""Two runs against each other: where the difference of their mean steps comes from, exactly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from msgspec import Struct

from rooflight.comparison import significance
from rooflight.comparison.alignment import Pair, align
from rooflight.comparison.comparability import Note, notes
from rooflight.comparison.exact import in_one_unit, total
from rooflight.comparison.recordings import WORK_PARTS, all_have_steps, recordings
from rooflight.comparison.side import Side, side
from rooflight.comparison.significance import Significance
from rooflight.protocol import PARTS, Document

if TYPE_CHECKING:
    from rooflight.comparison.document import ComparisonDocument


@dataclass(frozen=True, slots=True)
class Change:
    """A mean of A and of B in ns; ``difference`` is B - A."""

    a: Fraction
    b: Fraction
    significance: Significance

    @property
    def difference(self) -> Fraction:
        return self.b - self.a


class GroupChange(Struct, frozen=True, gc=False):
    """A kernel group in A and B.  Its time per step is calls x time per call, so that its difference is

        (calls of B - calls of A) x mean time per call of both      the count effect
      + (time per call of B - that of A) x mean calls of both       the duration effect

    exactly, whichever run is called A.  Where a side has no calls, all of it is the count effect.

    ``by_part`` is the difference by part: a group whose regime moved leaves one and enters another.
    """

    pair: Pair
    by_part: dict[str, Fraction]
    difference: Fraction
    duration_effect: Fraction

    @property
    def count_effect(self) -> Fraction:
        return self.difference - self.duration_effect


@dataclass(frozen=True)
class Comparison:
    """B against A.  Times are ns as exact fractions, means per step, or of the whole recording where
    ``by_step`` is false; ``parts`` add up to ``total``, and the groups' ``by_part`` with ``rest`` to the
    parts 1 to 6.  ``groups`` come by the size of their difference; ``rest`` is what no group has, 0 unless a
    document is not our own."""

    a: Side
    b: Side
    by_step: bool
    notes: tuple[Note, ...]
    total: Change
    parts: dict[str, Change]
    groups: tuple[GroupChange, ...]
    rest: dict[str, Fraction]

    @property
    def document(self) -> ComparisonDocument:
        """The same as the JSON of `rooflight compare`."""
        from rooflight.comparison.document import document_of

        return document_of(self)


def compare_documents(a: Document, b: Document) -> Comparison:
    """Raises :class:`~rooflight.errors.Refused` when a run says nothing of where its time went."""
    several = [recordings(a, "A"), recordings(b, "B")]
    by_step = all(all_have_steps(s) for s in several)
    one, other = (side(d, s, by_step=by_step) for d, s in zip((a, b), several, strict=True))
    groups = _groups(one, other)
    parts = _parts(one, other)
    return Comparison(
        a=one,
        b=other,
        by_step=by_step,
        notes=tuple(notes(one, other)),
        total=_total(one, other),
        parts=parts,
        groups=groups,
        rest=_rest(parts, groups),
    )


def _total(a: Side, b: Side) -> Change:
    found = significance.of_total(a.steps, b.steps) if a.by_step else significance.without_steps(_NO_STEPS)
    return _change(a.mean_ns, b.mean_ns, found)


def _parts(a: Side, b: Side) -> dict[str, Change]:
    if a.by_step:
        found = significance.of_parts(a.part_steps, b.part_steps)
    else:
        found = dict.fromkeys(PARTS, significance.without_steps(_NO_STEPS))
    return {p: _change(a.parts[p], b.parts[p], found[p]) for p in PARTS}


_NO_STEPS = "there are no steps whose noise could be measured"


def _change(a: Fraction, b: Fraction, found: Significance) -> Change:
    sign = (b > a) - (b < a)
    return Change(a, b, significance.contrary(found, sign))


def _groups(a: Side, b: Side) -> tuple[GroupChange, ...]:
    if a.groups is None or b.groups is None:
        return ()
    found = [_group_change(pair) for pair in align(a.groups, b.groups)]
    sizes, _ = in_one_unit([abs(g.difference) for g in found])
    order = sorted(range(len(found)), key=lambda i: (-sizes[i], *_place(found[i])))
    return tuple(found[i] for i in order)


def _group_change(pair: Pair) -> GroupChange:
    a, b = (g.by_part if g else {} for g in (pair.a, pair.b))
    by_part = {p: b.get(p, _NOTHING) - a.get(p, _NOTHING) for p in WORK_PARTS if p in a or p in b}
    difference = total(by_part.values())
    return GroupChange(pair, by_part, difference, _duration_effect(pair, difference))


_NOTHING = Fraction()


def _duration_effect(pair: Pair, difference: Fraction) -> Fraction:
    a, b = pair.a, pair.b
    if a is None or b is None:
        return _NOTHING
    if not a.calls or not b.calls:
        # Without calls on either side only a launch from before the steps is left of it.
        return difference if a.calls == b.calls else _NOTHING
    return (b.ns / b.calls - a.ns / a.calls) * (a.calls + b.calls) / 2


def _place(g: GroupChange) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Of equals by what they are, in an order that does not change with the sides."""
    a, b = (x.key.text if x else () for x in (g.pair.a, g.pair.b))
    return min(a or b, b or a), max(a, b)


def _rest(parts: dict[str, Change], groups: Sequence[GroupChange]) -> dict[str, Fraction]:
    told = {p: [g.by_part[p] for g in groups if p in g.by_part] for p in WORK_PARTS}
    return {p: parts[p].difference - total(told[p]) for p in WORK_PARTS}
