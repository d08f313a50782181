"""What is kept of a trace's analysis, so that the next rank of its run does not read the trace again.

It holds for the program and the calibrations that it was made with; with others the trace is read anew.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct

import rooflight
from rooflight.calibration import Calibration
from rooflight.protocol import Rank
from rooflight.results.result import RankResult, decode, encode


class Kept(Struct):
    """A result, and digests of what it was made with."""

    program: str
    calibrations: str
    result: bytes


def keep(result: RankResult, calibrations: Iterable[Calibration]) -> bytes:
    """The result in bytes, with what it holds for."""
    judged_by = _digest(_judges(calibrations, result.rank))
    return zlib.compress(msgspec.msgpack.encode(Kept(_program(), judged_by, encode(result))), 1)


def kept(body: bytes | None, calibrations: Iterable[Calibration]) -> RankResult | None:
    """What :func:`keep` kept, if a new analysis would say the same."""
    if body is None:
        return None
    found = msgspec.msgpack.decode(zlib.decompress(body), type=Kept)
    if found.program != _program():
        return None
    result = decode(found.result)
    return result if found.calibrations == _digest(_judges(calibrations, result.rank)) else None


def fitting(calibrations: Iterable[Calibration], host: str | None) -> list[Calibration]:
    """Those that may judge a trace of ``host``: of a CPU only what was measured there.

    No trace names its CPU, so that its host is all that ties it to a calibration.
    """
    return [c for c in calibrations if c.kind != "cpu" or (host is not None and c.host == host)]


def _judges(calibrations: Iterable[Calibration], rank: Rank) -> list[Calibration]:
    """Those whose device the rank ran on: others may come and go."""
    devices = {d.name for d in rank.devices.values()}
    return [
        c
        for c in fitting(calibrations, rank.host)
        if (rank.cpu is not None if c.kind == "cpu" else c.device in devices)
    ]


def _digest(calibrations: list[Calibration]) -> str:
    rows = sorted(msgspec.msgpack.encode(c) for c in calibrations)
    return hashlib.sha256(b"".join(hashlib.sha256(row).digest() for row in rows)).hexdigest()


@cache
def _program() -> str:
    """The library as it is installed: its version does not tell every change of an analysis."""
    folder = Path(rooflight.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file() and "__pycache__" not in p.parts):
        digest.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()
