"""Common runs against the definition, on short sequences (rooflight/attribution/runs.py)."""

from __future__ import annotations

import time

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rooflight.attribution.runs import Run, common_runs

letters = st.lists(st.integers(0, 2), max_size=40)


def runs(wanted: list[int], known: list[int], meaning: list[int], shortest: int) -> list[Run]:
    return common_runs(
        np.array(wanted, np.int64),
        np.array(known, np.int64),
        np.array(meaning, np.int64),
        np.full(len(wanted), shortest, np.int64),
    )


def meant(found: list[Run], meaning: list[int], size: int) -> list[int | None]:
    """The meaning of each wanted place."""
    result: list[int | None] = [None] * size
    for run in found:
        for i in range(run.length):
            result[run.start + i] = meaning[run.known + i] if run.agreed[i] else None
    return result


@given(letters, letters, st.data())
def test_a_run_is_the_longest_from_where_it_begins_and_means_what_all_its_places_mean(
    wanted: list[int], known: list[int], data: st.DataObject
) -> None:
    meaning = data.draw(st.lists(st.integers(0, 1), min_size=len(known), max_size=len(known)))
    got = runs(wanted, known, meaning, 3)
    at, want = 0, []
    while at < len(wanted):
        ends = range(at, len(wanted) + 1)
        inside = [
            e - at for e in ends if any(known[i : i + e - at] == wanted[at:e] for i in range(len(known)))
        ]
        length = max(inside, default=0)
        if length < 3:
            at += 1
            continue
        places = [
            e for e in range(len(known) - length + 1) if known[e : e + length] == wanted[at : at + length]
        ]
        agreed = [len({meaning[e + i] for e in places}) == 1 for i in range(length)]
        want.append((at, places[0], length, agreed))
        at += length
    assert [(r.start, r.known, r.length, r.agreed.tolist()) for r in got] == want


def test_layers_that_look_alike_are_told_apart_by_what_is_around_them() -> None:
    """Two gemms of one name: the one after the norm is q, the one after attention is o."""
    #        norm gemm attn gemm  norm gemm attn gemm
    known = [0, 1, 2, 1, 0, 1, 2, 1]
    named = [10, 11, 12, 13, 10, 11, 12, 13]
    assert meant(runs([0, 1, 2, 1], known, named, 4), named, 4) == [10, 11, 12, 13]
    assert meant(runs([1, 0], known, named, 2), named, 2) == [13, 10]


def test_what_places_do_not_agree_on_has_no_meaning() -> None:
    """The same kernels twice, attention with other dims the second time."""
    known, named = [0, 1, 2, 0, 1, 2], [10, 11, 12, 10, 99, 12]
    assert meant(runs([0, 1, 2], known, named, 3), named, 3) == [10, None, 12]


def test_a_run_that_is_too_short_is_none() -> None:
    assert runs([0, 1, 7], [0, 1, 2], [5, 6, 7], 3) == []
    assert runs([], [], [], 1) == runs([1], [], [], 1) == runs([], [1], [1], 1) == []


def test_equal_symbols_by_the_ten_thousand_take_a_second() -> None:
    """Every window of the one is everywhere in the other: given up rather than compared one by one."""
    begin = time.process_time()
    n = 30_000
    same = np.zeros(n, np.int64)
    marked = np.where(np.arange(n) % 9 == 8, np.arange(n) + 1, 0)  # runs of eight, each in 30,000 places
    for wanted in (same, marked):
        common_runs(wanted, same, np.arange(n), np.full(n, 8))
    assert time.process_time() - begin < 5
