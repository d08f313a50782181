"""Sorting in one whole number of 64 bits is sorting, whatever the numbers."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rooflight.trace.tables import I64, in_order, in_order_of, numbered, rows_by, sorted_within

NARROW = st.integers(-3, 3)
#: Near both ends of the range no key has room beside it for a place.
WIDE = st.integers(-(2**63), 2**63 - 1)
rows = st.lists(st.tuples(NARROW | WIDE, st.integers(-(2**61), 2**61) | NARROW), max_size=40)


def _columns(pairs: list[tuple[int, int]]) -> tuple[I64, I64]:
    both = np.array(pairs, np.int64).reshape(-1, 2)
    return both[:, 0].copy(), both[:, 1].copy()


@given(rows)
def test_places_come_in_the_order_of_their_keys_and_equal_ones_as_they_stand(
    pairs: list[tuple[int, int]],
) -> None:
    keys, _ = _columns(pairs)
    assert in_order(keys).tolist() == sorted(range(len(pairs)), key=lambda i: (pairs[i][0], i))


@given(rows)
def test_equal_keys_come_by_the_second_column(pairs: list[tuple[int, int]]) -> None:
    keys, then = _columns(pairs)
    assert in_order_of(keys, then).tolist() == sorted(range(len(pairs)), key=lambda i: (*pairs[i], i))


@given(rows)
def test_values_are_sorted_within_their_key(pairs: list[tuple[int, int]]) -> None:
    assert sorted_within(*_columns(pairs)).tolist() == [value for _, value in sorted(pairs)]


@given(rows)
def test_keys_are_numbered_in_order_with_their_first_place(pairs: list[tuple[int, int]]) -> None:
    keys = [key for key, _ in pairs]
    first, number = numbered(_columns(pairs)[0])
    known = sorted(set(keys))
    assert first.tolist() == [keys.index(key) for key in known]
    assert number.tolist() == [known.index(key) for key in keys]
    assert {k: at.tolist() for k, at in rows_by(_columns(pairs)[0])} == {
        k: [i for i, other in enumerate(keys) if other == k] for k in known
    }
