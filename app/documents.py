"""An analysis as it is kept: the strict JSON of the protocol, compressed."""

from __future__ import annotations

import zlib

from rooflight import protocol


def pack(document: protocol.Document) -> bytes:
    """Compressed JSON; real documents shrink about tenfold."""
    return zlib.compress(protocol.encode(document), 6)


def unpack(body: bytes) -> protocol.Document:
    """The document that :func:`pack` kept."""
    return protocol.decode(zlib.decompress(body))
