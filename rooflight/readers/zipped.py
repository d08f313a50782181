"""A zip with one trace in it, as CI systems hand out what a job left, while it streams in.

The shape, as far as it is read (PKWARE APPNOTE 6.3.10):

    {local header, name, extra, data, [data descriptor]}*  {central directory header}*  end

Files are taken one behind the other; the central directory, which comes last, must list as many.  What
a local header does not know (flag bit 3) follows the data in a descriptor, whose sizes have 4 or 8 bytes.
Names are only looked at: nothing is ever written by them.
"""

from __future__ import annotations

import struct
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass

from isal import isal_zlib

from rooflight.errors import Malformed, NotATrace, Refused, Truncated
from rooflight.readers.limits import Meter

LOCAL, END = b"PK\3\4", b"PK\5\6"
_CENTRAL, _END64, _LOCATOR, _DESCRIPTOR = b"PK\1\2", b"PK\6\6", b"PK\6\7", b"PK\7\x08"
_MARK_BYTES, _END_BYTES = 4, 22
#: What follows the files: bytes of each record, and where the lengths of its variable parts lie.
_TAIL = {_CENTRAL: (46, "<HHH", 28), _END64: (12, "<Q", 4), _LOCATOR: (20, "", 0)}
#: signature, version, flags, method, time, date, crc, packed and plain size, lengths of name and extra.
_HEADER = struct.Struct("<4sHHHHHIIIHH")
_ENCRYPTED, _DESCRIBED = 1, 8
_STORED, _DEFLATED = 0, 8
_METHODS = {9: "Deflate64", 12: "bzip2", 14: "LZMA", 93: "Zstandard", 95: "xz", 98: "PPMd"}
_ZIP64_EXTRA, _IN_EXTRA = 1, 0xFFFFFFFF
#: Longest first: of two that fit, the shorter one is a part of the longer one.
_DESCRIPTORS = tuple(struct.Struct(form) for form in ("<4sIQQ", "<4sIII", "<IQQ", "<III"))
_DESCRIPTOR_BYTES = 24
_WBITS = -15
_SLICE = 64 << 10
_CHUNK = 1 << 20
_NAMES_SHOWN = 8
_TRACES = (".json", ".json.gz")

#: Bytes that a file unpacks to, or ``None``: more of the archive is needed.
Pieces = Generator[bytes | None, None, None]


@dataclass(frozen=True, slots=True)
class _File:
    """A local header; ``packed`` and ``plain`` are sizes, which the descriptor may know better."""

    name: str
    flags: int
    method: int
    crc: int
    packed: int
    plain: int

    @property
    def described(self) -> bool:
        """Whether checksum and sizes follow the data."""
        return bool(self.flags & _DESCRIBED)

    @property
    def is_trace(self) -> bool:
        """By its name: no folder, no dot file, nothing that macOS adds."""
        *folders, base = self.name.replace("\\", "/").split("/")
        return not base.startswith(".") and "__MACOSX" not in folders and base.lower().endswith(_TRACES)


@dataclass(slots=True)
class _Sum:
    """Checksum and sizes as they turn out."""

    crc: int = 0
    packed: int = 0
    plain: int = 0

    def add(self, piece: bytes) -> bytes:
        self.crc = isal_zlib.crc32(piece, self.crc)
        self.plain += len(piece)
        return piece


class Unzip:
    """The one trace in a zip.  Memory is bounded by the piece fed."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._data = b""
        self._at = 0  # of what is not read yet, in _data
        self._files = 0
        self._traces: list[str] = []
        self._others: list[str] = []
        self._ended = False
        self._pieces = self._archive()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The bytes of the trace that ``data`` adds."""
        self._data = self._data[self._at :] + data
        self._at = 0
        for piece in self._pieces:
            if piece is None:
                return
            yield piece

    def finish(self) -> None:
        """The end of the input: :class:`Truncated` unless the zip has come to its own."""
        if not self._ended:
            raise Truncated(
                "the zip is truncated: its central directory never arrived whole",
                where=f"byte {self._meter.bytes_in} of the zip",
                hint="download the file again",
            )

    # -- the parts of an archive -------------------------------------------------------------------

    def _archive(self) -> Pieces:
        while (yield from self._mark()) == LOCAL:
            yield from self._file()
        yield from self._directory()
        self._judge()
        self._ended = True
        yield from self._need(1)
        raise self._damaged("something follows its end")

    def _file(self) -> Pieces:
        file = yield from self._header()
        self._files += 1
        self._note(file)
        if file.is_trace and len(self._traces) == 1:
            yield from self._body(file)
        elif file.packed and not file.described:
            yield from self._skip(file.packed)
        else:
            for piece in self._body(file):
                if piece is None:
                    yield None
                else:
                    self._meter.unpacked(len(piece))

    def _header(self) -> Generator[None, None, _File]:
        yield from self._need(_HEADER.size)
        fields = _HEADER.unpack_from(self._data, self._at)
        _, _, flags, method, _, _, crc, packed, plain, n_name, n_extra = fields
        yield from self._need(_HEADER.size + n_name + n_extra)
        rest = self._take(_HEADER.size + n_name + n_extra)[_HEADER.size :]
        packed, plain = _zip64(rest[n_name:], packed, plain)
        return _File(_text(rest[:n_name]), flags, method, crc, packed, plain)

    def _body(self, file: _File) -> Pieces:
        """What a file unpacks to, checked against its header or descriptor."""
        self._check_method(file)
        found = _Sum()
        if file.method == _DEFLATED:
            yield from self._inflated(found)
        elif file.packed or not file.described:
            yield from self._stored(file.packed, found)
        else:
            yield from self._stored_up_to_descriptor(found)
        if file.described:
            yield from self._need(_DESCRIPTOR_BYTES)
            size = self._descriptor(found)
            self._take(size or 0)
        else:
            size = (found.crc, found.packed, found.plain) == (file.crc, file.packed, file.plain)
        if not size:
            raise self._damaged(f"checksum or size of {file.name} is not what it says")

    def _inflated(self, found: _Sum) -> Pieces:
        inflater = isal_zlib.decompressobj(wbits=_WBITS)
        while not inflater.eof:
            yield from self._need(1)
            part = self._take(_SLICE)
            found.packed += len(part)
            while part and not inflater.eof:
                try:
                    piece = inflater.decompress(part, _CHUNK)
                except isal_zlib.error as e:  # type: ignore[misc]
                    raise self._damaged(str(e)) from e
                yield found.add(piece)
                part = inflater.unconsumed_tail
        self._at -= len(inflater.unused_data)
        found.packed -= len(inflater.unused_data)

    def _stored(self, size: int, found: _Sum) -> Pieces:
        while found.packed < size:
            yield from self._need(1)
            piece = self._take(min(_SLICE, size - found.packed))
            found.packed += len(piece)
            yield found.add(piece)

    def _stored_up_to_descriptor(self, found: _Sum) -> Pieces:
        """Data of unknown size: it ends where a descriptor tells its checksum and its size."""
        while True:
            yield from self._need(_DESCRIPTOR_BYTES)
            place = self._data.find(_DESCRIPTOR, self._at)
            if place == self._at:
                if self._descriptor(found):
                    return
                place = self._data.find(_DESCRIPTOR, self._at + 1)
            # The last bytes may be the beginning of one.
            end = place if place >= 0 else len(self._data) - len(_DESCRIPTOR) + 1
            piece = self._take(min(_SLICE, end - self._at))
            found.packed += len(piece)
            yield found.add(piece)

    def _descriptor(self, found: _Sum) -> int:
        """The size of the descriptor here, if there is one that tells what was found."""
        for form in _DESCRIPTORS:
            *mark, crc, packed, plain = form.unpack_from(self._data, self._at)
            if mark in ([], [_DESCRIPTOR]) and (crc, packed, plain) == (found.crc, found.packed, found.plain):
                return form.size
        return 0

    def _directory(self) -> Generator[None, None, None]:
        listed = 0
        while (mark := (yield from self._mark())) != END:
            if mark not in _TAIL:
                raise self._damaged("what follows a file is none")
            yield from self._record(*_TAIL[mark])
            listed += mark == _CENTRAL
        if listed != self._files:
            raise self._damaged(f"its directory lists {listed} files, and {self._files} are there")
        yield from self._record(_END_BYTES, "<H", 20)

    def _record(self, size: int, lengths: str, at: int) -> Generator[None, None, None]:
        """Skip ``size`` bytes and as many as ``lengths`` at byte ``at`` of them say."""
        yield from self._need(size)
        yield from self._skip(size + sum(struct.unpack_from(lengths, self._data, self._at + at)))

    # -- bytes -------------------------------------------------------------------------------------

    def _mark(self) -> Generator[None, None, bytes]:
        yield from self._need(_MARK_BYTES)
        return self._data[self._at : self._at + _MARK_BYTES]

    def _need(self, n: int) -> Generator[None, None, None]:
        while len(self._data) - self._at < n:
            yield None

    def _take(self, n: int) -> bytes:
        piece = self._data[self._at : self._at + n]
        self._at += len(piece)
        return piece

    def _skip(self, n: int) -> Generator[None, None, None]:
        while n:
            yield from self._need(1)
            step = min(n, len(self._data) - self._at)
            self._at += step
            n -= step

    # -- what is refused ---------------------------------------------------------------------------

    def _note(self, file: _File) -> None:
        names = self._traces if file.is_trace else self._others
        if not file.name.endswith("/") and len(names) <= _NAMES_SHOWN:
            names.append(file.name)

    def _judge(self) -> None:
        if len(self._traces) > 1:
            raise Refused(
                f"the zip holds several traces: {_listed(self._traces)}",
                hint="unpack it, and name the traces or their folder",
            )
        if not self._traces:
            others = f": {_listed(self._others)}" if self._others else ""
            raise NotATrace(
                f"not a trace: the zip holds no *.json or *.json.gz{others}",
                hint="zip the .json or .json.gz that the torch profiler wrote",
            )

    def _check_method(self, file: _File) -> None:
        if file.flags & _ENCRYPTED:
            how, hint = "encrypted", "unpack it with its password"
        elif file.method not in (_STORED, _DEFLATED):
            method = _METHODS.get(file.method, f"method {file.method}")
            how, hint = f"packed with {method}", "unpack it, or zip it with deflate"
        else:
            return
        raise Refused(f"cannot open the zip: {file.name} is {how}", where=self._where(), hint=hint)

    def _damaged(self, how: str) -> Malformed:
        return Malformed(f"the zip is damaged: {how}", where=self._where(), hint="download the file again")

    def _where(self) -> str:
        return f"near byte {self._meter.bytes_in - len(self._data) + self._at} of the zip"


def _zip64(extra: bytes, packed: int, plain: int) -> tuple[int, int]:
    """The sizes of a header; those that pass 32 bits lie in its extra field, the plain one first."""
    while len(extra) >= 4:
        kind, size = struct.unpack_from("<HH", extra)
        field, extra = extra[4 : 4 + size], extra[4 + size :]
        if kind == _ZIP64_EXTRA:
            wide = iter(struct.unpack_from(f"<{len(field) // 8}Q", field))
            plain = next(wide, plain) if plain == _IN_EXTRA else plain
            packed = next(wide, packed) if packed == _IN_EXTRA else packed
            break
    return packed, plain


def _text(name: bytes) -> str:
    """The name as it can be shown; archives without the UTF-8 flag mostly hold UTF-8 too."""
    return "".join(c if c.isprintable() else "?" for c in name.decode("utf-8", "backslashreplace"))


def _listed(names: Sequence[str]) -> str:
    more = " and more" if len(names) > _NAMES_SHOWN else ""
    return ", ".join(name[-100:] for name in names[:_NAMES_SHOWN]) + more
