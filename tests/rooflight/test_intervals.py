"""Sets of instants against a set of integers."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rooflight.attribution.intervals import (
    Clipper,
    Set,
    cut,
    difference,
    intersection,
    measure,
    parted,
    union,
    union_of,
)
from rooflight.regimes.ownership import owned

spans = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 12)), max_size=12)


def as_set(rows: list[tuple[int, int]]) -> Set:
    start = np.array([s for s, _ in rows], np.int64)
    return union(start, start + np.array([d for _, d in rows], np.int64))


def instants(rows: list[tuple[int, int]]) -> set[int]:
    return {t for s, d in rows for t in range(s, s + d)}


def points(s: Set) -> set[int]:
    return {t for a, b in s.tolist() for t in range(a, b)}


@given(spans, spans)
def test_set_algebra_is_that_of_instants(a: list[tuple[int, int]], b: list[tuple[int, int]]) -> None:
    x, y = as_set(a), as_set(b)
    assert points(x) == instants(a)
    assert points(union_of(x, y)) == instants(a) | instants(b)
    assert points(intersection(x, y)) == instants(a) & instants(b)
    assert points(difference(x, y)) == instants(a) - instants(b)
    assert [points(part) for part in parted(x, y)] == [instants(a) & instants(b), instants(a) - instants(b)]
    assert measure(x) == len(instants(a))


@given(spans)
def test_a_set_is_sorted_disjoint_and_never_touching(a: list[tuple[int, int]]) -> None:
    s = as_set(a)
    assert (s[:, 0] < s[:, 1]).all()
    assert (s[1:, 0] > s[:-1, 1]).all()


@given(spans, st.integers(-5, 80), st.integers(0, 40))
def test_clipping_measures_the_window(a: list[tuple[int, int]], start: int, length: int) -> None:
    inside = {t for t in instants(a) if start <= t < start + length}
    windows = np.array([start, 0]), np.array([start + length, 80])
    assert Clipper(as_set(a)).within(*windows).tolist() == [len(inside), len(instants(a))]
    # Each instant counts as much as the start of its interval says.
    s = as_set(a)
    weight = {t: i + 0.5 for i, (b, e) in enumerate(s.tolist()) for t in range(b, e)}
    weighted = Clipper(s, np.arange(len(s)) + 0.5).within(*windows).tolist()
    assert weighted == [sum(weight[t] for t in inside), sum(weight.values())]


@given(spans, spans)
def test_a_cut_set_keeps_every_instant_in_its_interval(
    a: list[tuple[int, int]], b: list[tuple[int, int]]
) -> None:
    intervals = as_set(b)
    pieces, at = cut(as_set(a), intervals[:, 0], intervals[:, 1])
    got = {t: i for (s, e), i in zip(pieces.tolist(), at.tolist(), strict=True) for t in range(s, e)}
    where = {t: i for i, (s, e) in enumerate(intervals.tolist()) for t in range(s, e)}
    assert got == {t: where[t] for t in instants(a) if t in where}


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 12), st.integers(0, 3)), max_size=12))
def test_every_instant_has_the_owner_that_the_rule_names(rows: list[tuple[int, int, int]]) -> None:
    """Lowest rank first, then the earliest start, then the first row."""
    start, dur, rank = (np.array([r[i] for r in rows], np.int64) for i in range(3))
    got = owned(start, start + dur, rank)
    owner = {t: o for a, b, o in zip(got.start, got.end, got.owner, strict=True) for t in range(a, b)}
    for t in range(60):
        running = [(r, s, i) for i, (s, d, r) in enumerate(rows) if s <= t < s + d]
        assert owner.get(t) == (min(running)[2] if running else None)
