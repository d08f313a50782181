"""What is left of a rank's recording once it is analysed: all that the other ranks need of it.

It is small, whatever the recording's size, and travels as bytes (:func:`encode`, :func:`decode`): from
the process that analysed the rank to the one that puts the run together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_args

import msgspec
import numpy as np
from msgspec import Struct

from rooflight.attribution.collectives import Calls
from rooflight.attribution.intervals import F64, Set
from rooflight.protocol import Rank
from rooflight.regimes.quality import QualityFacts
from rooflight.trace.tables import I64


@dataclass(frozen=True, slots=True)
class Exposed:
    """Exposed communication of the headline device as disjoint, sorted intervals, and the steps as
    ``rank.steps`` or ``rank.inferred_steps`` has them, the whole recording where it has none; in ns on the
    rank's own clock."""

    start: I64
    end: I64
    step_start: I64
    step_end: I64


@dataclass(frozen=True, slots=True)
class Advised:
    """What the findings of the rank alone speak of, where they have a saving: ``total_us`` is
    ``rank.findings_total_us`` without what the other ranks tell, ``start`` and ``end`` are its instants of
    :class:`Exposed`."""

    total_us: float | None
    start: I64
    end: I64

    @property
    def communication(self) -> Set:
        return np.column_stack((self.start, self.end))


@dataclass(frozen=True, slots=True)
class Messages:
    """What each call of :class:`Calls` moves, row-aligned with them; -1 is unknown.

    ``row`` is its place in ``rank.communication``, -1 for one that is cut off; ``message`` and ``bus`` are
    bytes.  Of an all-to-all: ``received`` bytes, and ``skew``, the largest of the parts that it sends over
    their mean, NaN where they were not recorded.  ``local`` is, for each row of the table, whether its ranks
    are on one host: 1 yes, 0 no.
    """

    row: I64
    message: I64
    bus: I64
    received: I64
    skew: F64
    local: I64


_NONE, _NOWHERE = np.empty(0, np.int64), np.empty(0, np.float64)
NOTHING_ADVISED = Advised(None, _NONE, _NONE)
NO_MESSAGES = Messages(_NONE, _NONE, _NONE, _NONE, _NOWHERE, _NONE)


class RankResult(Struct, frozen=True):
    """One rank: its row as if no rank were missing, and the evidence for what depends on the others.

    ``base_ns`` puts the rank's own clock on the wall clock.
    """

    source: str
    rank: Rank
    world_size: int | None
    base_ns: int
    facts: QualityFacts
    calls: Calls
    exposed: Exposed
    messages: Messages = msgspec.field(default_factory=lambda: NO_MESSAGES)
    advised: Advised = msgspec.field(default_factory=lambda: NOTHING_ADVISED)


def encode(value: Any) -> bytes:
    """A result, or whatever holds one, as MessagePack; columns are their bytes."""
    return _encoder.encode(value)


def decoder(kind: Any) -> Callable[[bytes], Any]:
    """Reads what :func:`encode` wrote of a ``kind``; raises ``msgspec.DecodeError`` for anything else."""
    return msgspec.msgpack.Decoder(kind, dec_hook=_column).decode


def _bytes_of(value: Any) -> bytes:
    if not isinstance(value, np.ndarray):
        # Any other type is a mistake in the structures above, not in their data.
        raise TypeError(f"{type(value).__name__} cannot be encoded")
    return value.tobytes()


def _column(kind: Any, data: bytes) -> Any:
    # The element type stands in the annotation: NDArray[np.int64] is ndarray[shape, dtype[int64]].
    return np.frombuffer(data, get_args(get_args(kind)[1])[0])


_encoder = msgspec.msgpack.Encoder(enc_hook=_bytes_of)
decode: Callable[[bytes], RankResult] = decoder(RankResult)
