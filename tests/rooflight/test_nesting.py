"""Innermost intervals against the definition, one instant at a time (DEFINITIONS §5)."""

from __future__ import annotations

import time

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rooflight.attribution.nesting import Spans, holding, innermost, parents

rows = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 25), st.integers(0, 12)), max_size=14)
queries = st.lists(st.tuples(st.integers(0, 3), st.integers(-2, 40)), max_size=14)


def spans(table: list[tuple[int, int, int]]) -> Spans:
    thread, start, dur = (np.array([r[i] for r in table], np.int64) for i in range(3))
    return Spans(thread, start, start + dur)


@given(rows, queries, st.sampled_from([1, 1 << 56]))
def test_the_innermost_is_the_latest_start_then_the_shortest(
    table: list[tuple[int, int, int]], asked: list[tuple[int, int]], unit: int
) -> None:
    """Also where the times lie so far apart that thread and distance do not fit one number."""
    s = spans(table)
    who, when = (np.array([q[i] for q in asked], np.int64) for i in range(2))
    got = innermost(Spans(s.thread, s.start * unit, s.end * unit), who, when * unit)
    for (thread, t), found in zip(asked, got.tolist(), strict=True):
        around = [(start, -dur) for th, start, dur in table if th == thread and start <= t < start + dur]
        if not around:
            assert found == -1
        else:
            th, start, dur = table[found]
            assert (th, (start, -dur)) == (thread, max(around))


@given(rows, queries, st.sampled_from([1, 1 << 40]))
def test_what_holds_an_instant_has_begun_and_not_ended(
    table: list[tuple[int, int, int]], asked: list[tuple[int, int]], unit: int
) -> None:
    s, instants = spans(table), [t for _, t in asked]
    got = holding(s.start * unit, s.end * unit, np.array(instants, np.int64) * unit).tolist()
    assert got == [i for i, (_, at, dur) in enumerate(table) if any(at <= t < at + dur for t in instants)]


@given(rows)
def test_a_parent_encloses_the_start_and_the_longer_of_two_is_outside(
    table: list[tuple[int, int, int]],
) -> None:
    got = parents(spans(table)).tolist()
    for i, ((thread, start, dur), parent) in enumerate(zip(table, got, strict=True)):
        around = [
            (s, -d)
            for j, (th, s, d) in enumerate(table)
            if th == thread and s <= start < s + d and j != i and (s, -d) < (start, -dur)
        ]
        twins = [j for j, row in enumerate(table) if row == (thread, start, dur) and j != i and dur]
        if parent in twins:
            continue  # of two equal intervals either may be inside the other
        if around and not twins:
            th, s, d = table[parent]
            assert (th, (s, -d)) == (thread, max(around))
        if not around and not twins:
            assert parent == -1
    for i in range(len(table)):  # nobody is its own ancestor
        at, steps = i, 0
        while at >= 0:
            at, steps = got[at], steps + 1
            assert steps <= len(table)


def test_deep_nests_and_overlaps_stay_near_linear() -> None:
    """100,000 calls inside each other, and a thread on which each overlaps the next."""
    n = 100_000
    deep = Spans(np.zeros(n, np.int64), np.arange(n), 3 * n - np.arange(n))
    chain = Spans(np.zeros(n, np.int64), 10 * np.arange(n), 10 * np.arange(n) + 15)
    begin = time.process_time()
    assert parents(deep).tolist() == list(range(-1, n - 1))
    assert parents(chain).tolist() == list(range(-1, n - 1))
    after = innermost(deep, np.zeros(n, np.int64), np.full(n, 4 * n))
    assert (after == -1).all()
    assert time.process_time() - begin < 10
