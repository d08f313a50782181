"""Lines of a stream from outside, none of which fills the memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def bounded(stream: Any, limit: int) -> Iterator[bytes]:
    """The lines of a binary stream; of one longer than ``limit`` bytes only its beginning comes."""
    while line := stream.readline(limit):
        yield line
        while line and not line.endswith(b"\n") and len(line) == limit:
            line = stream.readline(limit)
