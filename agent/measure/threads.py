"""Torch's threads while something is measured."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def one_thread(torch: Any) -> Iterator[None]:
    """One thread waits for no other.  Where other programs take a core away, operators on several threads
    can be slower by far than on one, which then shows what the device reaches at the least."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
