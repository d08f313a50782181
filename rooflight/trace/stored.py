"""A Timeline in a file of our own: what a reader made of a raw trace, to be analysed again without it.

The unpacked bytes are ``MAGIC``, the version (uint32), the length of the header (uint64), the header as
JSON, and the columns of :mod:`rooflight.trace.packing` one behind the other, in the order in which the
header names them; all numbers are little-endian.  The whole is one gzip member, or plain where it would
compress so well that a reader with limits took it for a bomb.

A newer version is refused by its number; an older one goes through :mod:`rooflight.trace.upgrades`.
"""

from __future__ import annotations

import math
import secrets
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

import msgspec
import numpy as np
from isal import igzip
from msgspec import Struct

from rooflight.errors import Malformed, ProtocolMismatch, Refused, TooLarge, Truncated
from rooflight.protocol import Flag, MemoryPeaks
from rooflight.trace.counters import CounterRows
from rooflight.trace.packing import TYPES, Columns, packed, table
from rooflight.trace.sane import check
from rooflight.trace.tables import I8, I32, GpuEvents, HostEvents, Table
from rooflight.trace.timeline import Meta, OpArgs, Timeline
from rooflight.trace.upgrades import VERSION, upgraded

MAGIC = b"\x89RFLGHT\n"
SUFFIX = ".rooflight"
#: Names and recorded inputs; those of real recordings are some hundred KiB.
MAX_HEADER = 256 << 20
#: What we write compresses at most so many times: half of what readers accept.
_MAX_RATIO = 100
_RATIO_FLOOR = 8 << 20
_LEVEL = 2
_PREFIX = struct.Struct("<8sIQ")
_NARROW = {I32: np.int32, I8: np.int8}
_HINT = "write it again from the raw trace"
T = TypeVar("T", bound=Table)
Scalar = bool | int | float | str | None


class Header(Struct):
    """All of a Timeline but its columns; ``gpu`` and ``host`` name these, with their type letters."""

    gpu_rows: int
    host_rows: int
    gpu: list[tuple[str, str]]
    host: list[tuple[str, str]]
    source: str
    names: list[str]
    device_keys: list[str]
    stream_keys: list[tuple[str, str, str, str]]
    threads: list[tuple[str, str]]
    #: Bytes as the text of the same code points: the fields of OpArgs.
    op_args: list[tuple[str, ...]]
    shapes: list[str]
    comms: list[dict[str, Scalar]]
    meta: Meta
    memory: MemoryPeaks | None
    flags: list[Flag]
    overlong_clipped: int
    salvaged: bool
    counters: CounterRows


def save(timeline: Timeline, path: Path) -> None:
    """As :func:`write`; :class:`~rooflight.errors.Refused` when that is not possible."""
    try:
        write(timeline, path)
    except OSError as e:
        reason = (e.strerror or type(e).__name__).lower()
        raise Refused(f"cannot write: {reason}", where=str(path), hint="give another path") from e


def write(timeline: Timeline, path: Path) -> None:
    """Write the timeline to ``path``, whole or not at all, whoever else writes there too."""
    partial = path.with_name(f"{path.name}.{secrets.token_hex(4)}.partial")
    try:
        partial.write_bytes(encode(timeline))
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def encode(timeline: Timeline) -> bytes:
    """The bytes of the file."""
    gpu, host = packed(timeline.gpu), packed(timeline.host)
    header = msgspec.json.encode(_header(timeline, gpu, host))
    prefix = _PREFIX.pack(MAGIC, VERSION, len(header))
    plain = b"".join([prefix, header, *(data for *_, data in gpu), *(data for *_, data in host)])
    small = igzip.compress(plain, _LEVEL, mtime=0)
    return plain if len(plain) > max(_RATIO_FLOOR, _MAX_RATIO * len(small)) else small


def _header(t: Timeline, gpu: list[tuple[str, str, bytes]], host: list[tuple[str, str, bytes]]) -> Header:
    return Header(
        gpu_rows=len(t.gpu),
        host_rows=len(t.host),
        gpu=[(name, letter) for name, letter, _ in gpu],
        host=[(name, letter) for name, letter, _ in host],
        source=t.source,
        names=list(t.names),
        device_keys=list(t.device_keys),
        stream_keys=list(t.stream_keys),
        threads=list(t.threads),
        op_args=[tuple(_text(part) for part in parts) for parts in map(_parts, t.op_args)],
        shapes=list(map(_text, t.shapes)),
        comms=[{key: _finite(value) for key, value in comm.items()} for comm in t.comms],
        meta=t.meta,
        memory=t.memory,
        flags=list(t.flags),
        overlong_clipped=t.overlong_clipped,
        salvaged=t.salvaged,
        counters=t.counters,
    )


def _parts(args: OpArgs) -> tuple[bytes, ...]:
    return args.dims, args.types, args.strides, args.concrete, args.extra, args.results, args.source.encode()


def _text(raw: bytes) -> str:
    return raw.decode("latin-1")


def _finite(value: Any) -> Any:
    # JSON has no infinity; as a text it is as little of a count.
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


# -- reading -----------------------------------------------------------------------------------------


def decode(pieces: Iterable[bytes], *, max_rows: int) -> Timeline:
    """The timeline in the unpacked bytes; :class:`~rooflight.errors.Refused` says why there is none."""
    source = _Source(iter(pieces))
    magic, version, size = _PREFIX.unpack(source.take(_PREFIX.size))
    if magic != MAGIC:
        raise Malformed("not a stored timeline: it does not begin as one", where="byte 0", hint=_HINT)
    if not 1 <= version <= VERSION:
        raise ProtocolMismatch(
            f"a stored timeline of version {version}: this program reads 1 to {VERSION}; "
            "read it with the program that wrote it, or a newer one"
        )
    if size > MAX_HEADER:
        raise TooLarge(f"too large: the header of the stored timeline passes {MAX_HEADER >> 20} MiB")
    header = _document(source.take(size))
    columns = {name: _columns(source, header, name, max_rows) for name in ("gpu", "host")}
    source.end()
    header, columns = upgraded(version, header, columns)
    return _timeline(header, columns)


def _document(data: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(data, type=dict[str, Any])
    except (msgspec.DecodeError, ValueError, RecursionError) as e:
        raise _broken(str(e)) from e


def _columns(source: _Source, header: dict[str, Any], which: str, max_rows: int) -> Columns:
    try:
        rows = msgspec.convert(header.get(f"{which}_rows"), int)
        names = msgspec.convert(header.get(which), list[tuple[str, str]])
    except msgspec.ValidationError as e:
        raise _broken(str(e)) from e
    if not 0 <= rows <= max_rows:
        raise TooLarge(f"too large: more than the limit of {max_rows} events", where=f"{which}_rows")
    if len(names) > len({n for n, _ in names}) or any(letter not in TYPES for _, letter in names):
        raise _broken(f"the columns of {which} are not what a writer makes")
    types = [(name, TYPES[letter]) for name, letter in names]
    return {name: np.frombuffer(source.take(rows * t.itemsize), t).astype(np.int64) for name, t in types}


def _timeline(header: dict[str, Any], columns: dict[str, Columns]) -> Timeline:
    try:
        h = msgspec.convert(header, Header)
        timeline = Timeline(
            source=h.source,
            names=tuple(h.names),
            gpu=_table(GpuEvents, columns["gpu"]),
            host=_table(HostEvents, columns["host"]),
            device_keys=tuple(h.device_keys),
            stream_keys=tuple(h.stream_keys),
            threads=tuple(h.threads),
            op_args=tuple(_op_args(*map(_bytes, parts)) for parts in h.op_args),
            shapes=tuple(map(_bytes, h.shapes)),
            comms=tuple(h.comms),
            meta=h.meta,
            memory=h.memory,
            flags=tuple(h.flags),
            overlong_clipped=h.overlong_clipped,
            salvaged=h.salvaged,
            counters=h.counters,
        )
    except (msgspec.ValidationError, UnicodeError, ValueError) as e:
        raise _broken(str(e)) from e
    check(timeline)
    return timeline


def _op_args(*parts: bytes) -> OpArgs:
    dims, types, strides, concrete, extra, results, source = parts
    return OpArgs(dims, types, strides, concrete, extra, results, source.decode())


def _table(kind: type[T], columns: Columns) -> T:
    hints = get_type_hints(kind)
    return table(kind, columns, {name: t for name, hint in hints.items() if (t := _NARROW.get(hint))})


def _bytes(text: str) -> bytes:
    return text.encode("latin-1")


def _broken(how: str) -> Malformed:
    return Malformed(f"the stored timeline is broken: {how}", hint=_HINT)


class _Source:
    """Bytes in the portions that are asked for; no more is ever held than the input really has."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = b""

    def take(self, size: int) -> bytes:
        parts, have = [self._rest], len(self._rest)
        while have < size:
            piece = next(self._pieces, None)
            if piece is None:
                raise Truncated("the stored timeline is truncated: it ends before its columns do", hint=_HINT)
            parts.append(piece)
            have += len(piece)
        data = b"".join(parts)
        self._rest = data[size:]
        return data[:size]

    def end(self) -> None:
        """Nothing may follow."""
        if self._rest or any(self._pieces):
            raise _broken("something follows its columns")
