"""A zip with one trace: layouts of many writers, and what is refused."""

from __future__ import annotations

import gzip
import io
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooflight import read
from rooflight.errors import Malformed, NotATrace, Refused, TooLarge, Truncated
from rooflight.readers.source import Checker, Unpacker

DOC = b'{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1, "dur": 2}]}'
METHODS = {"stored": zipfile.ZIP_STORED, "deflated": zipfile.ZIP_DEFLATED}


class Pipe(io.RawIOBase):
    """Takes bytes and cannot be sought: sizes and checksums then follow the data."""

    def __init__(self) -> None:
        self.data = b""

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.data += bytes(data)
        return len(data)


def zipped(
    files: dict[str, bytes], *, method: int = zipfile.ZIP_DEFLATED, streamed: bool = False, wide: bool = False
) -> bytes:
    """A zip as Python writes it; ``streamed`` with descriptors, ``wide`` with 64-bit sizes."""
    target: Any = Pipe() if streamed else io.BytesIO()
    with zipfile.ZipFile(target, "w", method) as archive:
        for name, data in files.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = method
            with archive.open(info, "w", force_zip64=wide) as file:
                file.write(data)
    return target.data if streamed else target.getvalue()


def opened(data: bytes, size: int = 1 << 20) -> bytes:
    unpacker, out = Unpacker(), b""
    for i in range(0, len(data), size):
        out += b"".join(unpacker.feed(data[i : i + size]))
    return out + b"".join(unpacker.finish())


@given(
    st.binary(max_size=300),
    st.sampled_from(sorted(METHODS)),
    st.booleans(),
    st.booleans(),
    st.integers(1, 64),
)
def test_every_writer_and_every_piece_give_the_same(
    body: bytes, method: str, streamed: bool, wide: bool, size: int
) -> None:
    """Data that looks like a descriptor is data, with and without descriptors."""
    body = b"[" + body + b"PK\7\x08" + body
    files = {"out/": b"", "out/log.txt": body, "__MACOSX/a.json": b"x", ".b.json": b"x", "out/c.json": body}
    packed = zipped(files, method=METHODS[method], streamed=streamed, wide=wide)
    assert opened(packed, size) == body


@pytest.mark.parametrize("size", [(1 << 20) - 1, (1 << 20) + 1, (2 << 20) + 5])
def test_a_step_of_inflating_that_is_just_full_loses_nothing(size: int) -> None:
    assert opened(zipped({"a.json": b"[" + bytes(size)}, streamed=True)) == b"[" + bytes(size)


def test_a_trace_in_gzip_in_a_zip_is_a_trace(tmp_path: Path) -> None:
    file = tmp_path / "artifact.zip"
    file.write_bytes(zipped({"a/rank0.json.gz": gzip.compress(DOC)}, method=zipfile.ZIP_STORED))
    t = read(file)
    assert t.source == "artifact.zip"
    assert t.gpu.dur.tolist() == [2000]


def test_several_traces_are_refused_with_their_names() -> None:
    with pytest.raises(Refused, match=r"several traces: a\.json, b/c\.json\.gz") as caught:
        opened(zipped({"a.json": DOC, "b/c.json.gz": gzip.compress(DOC), "log.txt": b"x"}))
    assert "unpack" in caught.value.hint
    with pytest.raises(Refused, match=r"7\.json and more"):
        opened(zipped({f"{i}.json": DOC for i in range(9)}))


def test_a_zip_without_a_trace_says_what_it_holds() -> None:
    with pytest.raises(NotATrace, match=r"log\.txt"):
        opened(zipped({"log.txt": b"{}", "__MACOSX/a.json": b"{}"}))
    with pytest.raises(NotATrace, match="holds no"):
        opened(zipped({}))


def test_a_name_that_climbs_is_only_a_name(tmp_path: Path) -> None:
    file = tmp_path / "in" / "a.zip"
    file.parent.mkdir()
    file.write_bytes(zipped({"../../evil.json": DOC, "/etc/evil\n.txt": b"x"}))
    assert len(read(file).gpu) == 1
    assert sorted(tmp_path.rglob("*")) == [file.parent, file]
    with pytest.raises(NotATrace, match=r"evil\?\.txt"):
        opened(zipped({"/etc/evil\n.txt": b"x"}))


@pytest.mark.parametrize(
    ("method", "says"), [(zipfile.ZIP_BZIP2, "bzip2"), (zipfile.ZIP_LZMA, "LZMA")], ids=["bzip2", "lzma"]
)
def test_other_methods_are_refused_by_name(method: int, says: str) -> None:
    with pytest.raises(Refused, match=f"t.json is packed with {says}"):
        opened(zipped({"t.json": DOC}, method=method))
    with pytest.raises(NotATrace):  # a file that is no trace is not opened at all
        opened(zipped({"log.txt": b"x"}, method=method))


def patched(data: bytes, at: int, value: bytes) -> bytes:
    return data[:at] + value + data[at + len(value) :]


def test_an_encrypted_zip_is_refused_by_name() -> None:
    with pytest.raises(Refused, match=r"t\.json is encrypted"):
        opened(patched(zipped({"t.json": DOC}), 6, b"\1\0"))  # bit 0 of the flags


@pytest.mark.parametrize("streamed", [False, True])
def test_every_cut_is_truncation(streamed: bool) -> None:
    whole = zipped({"log.txt": b"x" * 50, "t.json": DOC}, streamed=streamed)
    for end in range(4, len(whole)):
        with pytest.raises(Truncated, match="zip is truncated"):
            opened(whole[:end])


SIZES = {"checksum": 14, "packed size": 18, "plain size": 22}


@pytest.mark.parametrize("field", SIZES)
@pytest.mark.parametrize("method", METHODS)
def test_a_header_that_lies_is_damage(field: str, method: str) -> None:
    whole = zipped({"t.json": DOC}, method=METHODS[method])
    value = struct.unpack_from("<I", whole, SIZES[field])[0]
    with pytest.raises(Refused, match=r"damaged|truncated"):
        opened(patched(whole, SIZES[field], struct.pack("<I", value - 1)))


def test_a_descriptor_that_lies_is_damage() -> None:
    whole = zipped({"t.json": DOC}, streamed=True)
    at = whole.index(b"PK\7\x08") + 4
    with pytest.raises(Malformed, match=r"checksum or size of t\.json"):
        opened(patched(whole, at, bytes([whole[at] ^ 1])))


def test_files_that_overlap_are_damage() -> None:
    """A directory that lists one file twice, as bombs do whose entries share their data."""
    whole = zipped({"t.json": DOC})
    start = whole.index(b"PK\1\2")
    end = whole.index(b"PK\5\6")
    with pytest.raises(Malformed, match="lists 2 files, and 1 are there"):
        opened(whole[:end] + whole[start:end] + whole[end:])


def test_what_follows_the_end_or_a_file_is_damage() -> None:
    whole = zipped({"t.json": DOC})
    with pytest.raises(Malformed, match="follows its end"):
        opened(whole + b"x")
    start = whole.index(b"PK\1\2")
    with pytest.raises(Malformed, match="follows a file"):
        opened(whole[:start] + b"xxxx" + whole[start:])


@pytest.mark.parametrize("name", ["t.json", "log.txt"])
def test_a_bomb_is_refused_while_it_inflates(name: str) -> None:
    """64 MiB of zeros pack to about 64 KiB: over 200 times beyond the floor of 16 MiB."""
    packed = zipped({name: bytes(64 << 20)}, streamed=True)
    unpacker, seen = Unpacker(), 0
    pieces = unpacker.feed(packed)
    with pytest.raises(TooLarge, match="200 times its size"):  # noqa: PT012 (what came before counts too)
        while True:
            piece = len(next(pieces))
            seen += piece
            assert piece <= 1 << 20
    assert seen <= 17 << 20


def test_a_size_beyond_the_file_is_truncation() -> None:
    whole = zipped({"log.txt": b"x" * 10, "t.json": DOC}, method=zipfile.ZIP_STORED)
    with pytest.raises(Truncated):
        opened(patched(whole, 18, b"\xfe\xff\xff\xff" * 2))


def test_the_checker_takes_a_zip_in_single_bytes_and_refuses_half_a_document() -> None:
    for body, error in ((DOC, None), (DOC[:-1], Truncated), (b"hello", NotATrace)):
        checker = Checker()
        packed = zipped({"t.json": body}, streamed=True)
        if error is None:
            for i in range(len(packed)):
                checker.feed(packed[i : i + 1])
            checker.finish()
            continue
        with pytest.raises(error):  # noqa: PT012 (it may come at either moment)
            checker.feed(packed)
            checker.finish()


def test_a_descriptor_without_its_mark_is_known_by_what_it_says() -> None:
    """APPNOTE 4.3.9.3: writers may leave the signature out."""
    raw = zlib.compressobj(9, zlib.DEFLATED, -15)
    body = raw.compress(DOC) + raw.flush()
    local = struct.pack("<4sHHHHHIIIHH", b"PK\3\4", 20, 8, 8, 0, 0, 0, 0, 0, 6, 0) + b"t.json"
    described = struct.pack("<III", zlib.crc32(DOC), len(body), len(DOC))
    central = b"PK\1\2" + bytes(24) + struct.pack("<HHH", 6, 0, 0) + bytes(12) + b"t.json"
    end = b"PK\5\6" + bytes(18)
    assert opened(local + body + described + central + end) == DOC
