"""One of the two runs: its mean step (or recording) by part, its steps as samples, its kernel groups."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from rooflight.comparison.groups import Group, groups_of
from rooflight.comparison.recordings import Recording
from rooflight.protocol import PARTS, Document


@dataclass(frozen=True, slots=True)
class Side:
    """Every rank weighs the same, and in it every step.

    ``parts`` are means in ns that add up to ``mean_ns``.  ``steps`` and ``part_steps`` are the samples in ns,
    in order of their number: steps of one number on several ranks belong together, so their mean is one
    sample.  They are empty where whole recordings are compared.
    """

    document: Document
    recordings: tuple[Recording, ...]
    by_step: bool
    parts: dict[str, Fraction]
    attainable_ns: Fraction | None
    steps: tuple[int, ...]
    part_steps: dict[str, tuple[int, ...]]
    groups: list[Group] | None

    @property
    def mean_ns(self) -> Fraction:
        return sum(self.parts.values(), Fraction())


def side(document: Document, several: Sequence[Recording], *, by_step: bool) -> Side:
    """A run with the ranks that it has."""
    samples = _samples(several) if by_step else []
    return Side(
        document=document,
        recordings=tuple(several),
        by_step=by_step,
        parts={p: _mean([_mean(_values(r, p, by_step)) for r in several]) for p in PARTS},
        attainable_ns=_attainable(several) if by_step else None,
        steps=tuple(sum(s.values()) for s in samples),
        part_steps={p: tuple(s[p] for s in samples) for p in PARTS},
        groups=groups_of(several, by_step=by_step),
    )


def _values(r: Recording, part: str, by_step: bool) -> Sequence[int]:
    return [s.parts[part] for s in r.steps] if by_step else [r.whole[part]]


def _mean(values: Sequence[int | Fraction]) -> Fraction:
    return Fraction(sum(values, Fraction()), len(values))


def _attainable(several: Sequence[Recording]) -> Fraction | None:
    means = []
    for r in several:
        known = [s.attainable_ns for s in r.steps if s.attainable_ns is not None]
        if len(known) < len(r.steps):
            return None
        means.append(_mean(known))
    return _mean(means)


def _samples(several: Sequence[Recording]) -> list[dict[str, int]]:
    """The parts of each step in whole ns, the mean over the ranks that have it."""
    by_key: dict[tuple[int, int], list[dict[str, int]]] = defaultdict(list)
    for r in several:
        for s in r.steps:
            by_key[s.key].append(s.parts)
    return [{p: round(_mean([parts[p] for parts in by_key[key]])) for p in PARTS} for key in sorted(by_key)]
