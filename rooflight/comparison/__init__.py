"""Compare two runs: what differs, where it comes from, and whether it is more than noise."""

from __future__ import annotations

from typing import Protocol

from rooflight.comparison.comparison import Change, Comparison, GroupChange, compare_documents
from rooflight.protocol import Document

__all__ = ["Change", "Comparison", "GroupChange", "compare"]


class Analysed(Protocol):
    """An analysis, such as :class:`rooflight.Analysis`."""

    @property
    def document(self) -> Document: ...


def compare(a: Analysed | Document, b: Analysed | Document) -> Comparison:
    """Where the difference between two runs comes from; ``b`` is seen against ``a``, so a positive
    difference is what ``b`` takes longer.

    The difference of the mean steps (of the whole recordings where there are no steps) is split by part of
    the wall time and by kernel group, exactly.  What speaks against comparing the two is in ``notes``.
    Raises :class:`~rooflight.errors.Refused` when one of them says nothing of where its time went.
    """
    return compare_documents(*(x if isinstance(x, Document) else x.document for x in (a, b)))
