"""Texts of many rows, each distinct one once.

They are packed chunk by chunk: small objects that live on, scattered among the rows of a chunk that do
not, would slow down all that is allocated after them.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate, count, pairwise

import numpy as np

from rooflight.trace.tables import I32

#: Chunks of this size together are searched for texts that they share.
PACKED_BYTES = 32 << 20


@dataclass(frozen=True, slots=True)
class _Packed:
    """Texts in one piece."""

    joined: bytes
    lengths: array[int]

    @classmethod
    def of(cls, texts: list[bytes]) -> _Packed:
        return cls(b"".join(texts), array("Q", map(len, texts)))

    def __iter__(self) -> Iterator[bytes]:
        for begin, end in pairwise(accumulate(self.lengths, initial=0)):
            yield self.joined[begin:end]


class Texts:
    """Collects texts; a row without one has -1."""

    def __init__(self) -> None:
        self._size = self._bytes = 0
        self._merged, self._places = _Packed.of([]), np.empty(0, np.int32)
        self._chunks: list[_Packed] = []

    def add(self, texts: Iterable[bytes | None]) -> I32:
        """A number for each row of a chunk, for :meth:`table` to translate."""
        known: defaultdict[bytes, int] = defaultdict(count(self._size).__next__)
        numbers = np.array([-1 if text is None else known[text] for text in texts], np.int32)
        chunk = _Packed.of(list(known))
        self._chunks.append(chunk)
        self._size += len(known)
        self._bytes += len(chunk.joined)
        if self._bytes > PACKED_BYTES + len(self._merged.joined):
            self._merge()
        return numbers

    def table(self) -> tuple[tuple[bytes, ...], I32]:
        """The distinct texts, sorted, and for each number its place among them; the last entry is that of
        -1."""
        seen = {text: n for n, text in enumerate(self._merged)}
        later = [seen.setdefault(text, len(seen)) for chunk in self._chunks for text in chunk]
        ordered = sorted(seen)
        place = np.empty(len(seen) + 1, np.int32)
        place[[seen[text] for text in ordered]] = np.arange(len(seen))
        place[-1] = -1
        return tuple(ordered), place[np.concatenate((self._places, np.array([*later, -1], np.int32)))]

    def _merge(self) -> None:
        """Keep what chunks have in common once, so that memory follows the distinct texts."""
        texts, places = self.table()
        self._merged, self._places = _Packed.of(list(texts)), places[:-1]
        self._chunks, self._bytes = [], 0
