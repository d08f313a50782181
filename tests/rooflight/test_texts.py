"""Packed texts against a plain table."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rooflight.trace import texts
from rooflight.trace.texts import Texts

rows = st.none() | st.sampled_from([b"", b"a", b"b", b"a,b", b"\0", b"x" * 9])


@given(st.lists(st.lists(rows, max_size=6), max_size=8), st.integers(0, 20))
def test_every_row_has_its_text_and_every_text_is_there_once(
    chunks: list[list[bytes | None]], packed: int
) -> None:
    """Whenever chunks are merged."""
    with patch.object(texts, "PACKED_BYTES", packed):
        collected = Texts()
        numbers = [collected.add(chunk) for chunk in chunks]
        distinct, places = collected.table()
    at = [int(places[n]) for chunk in numbers for n in chunk]
    plain = [text for chunk in chunks for text in chunk]
    assert [None if n < 0 else distinct[n] for n in at] == plain
    assert distinct == tuple(sorted({text for text in plain if text is not None}))


def test_repeated_chunks_are_kept_once() -> None:
    """200 chunks of the same 1000 texts of 1000 bytes: 200 MB in all, 1 MB distinct."""
    chunk = [b"%0999d," % n for n in range(1000)]
    collected = Texts()
    for _ in range(200):
        collected.add(chunk)
    kept = sum(len(c.joined) for c in [collected._merged, *collected._chunks])
    assert kept <= texts.PACKED_BYTES + 2 * 1_000_000
    assert collected.table()[0] == tuple(chunk)
    assert np.array_equal(collected.table()[1][-1001:-1], np.arange(1000))
