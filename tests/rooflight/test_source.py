"""Unpacking: members, limits, damage; and the watch over an upload."""

from __future__ import annotations

import gzip
import io
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooflight.errors import Malformed, NotATrace, Refused, TooLarge, Truncated
from rooflight.readers import gzipped
from rooflight.readers.source import Checker, Limits, Unpacker, unpacked


def feed(unpacker: Unpacker, data: bytes, size: int) -> bytes:
    out = b""
    for i in range(0, len(data), size):
        out += b"".join(unpacker.feed(data[i : i + size]))
    return out + b"".join(unpacker.finish())


@given(st.lists(st.binary(max_size=200), max_size=5), st.integers(1, 64))
def test_members_join_whatever_the_pieces(parts: list[bytes], size: int) -> None:
    packed = b"".join(gzip.compress(p) for p in parts)
    assert feed(Unpacker(), packed, size) == b"".join(parts)


@given(st.binary(max_size=300).filter(lambda b: not b.startswith((b"\x1f\x8b", b"PK"))), st.integers(1, 64))
def test_plain_bytes_pass_through(data: bytes, size: int) -> None:
    assert feed(Unpacker(), data, size) == data


def test_zero_padding_after_the_last_member_is_allowed() -> None:
    assert feed(Unpacker(), gzip.compress(b"{}") + bytes(512), 100) == b"{}"


@pytest.mark.parametrize("cut", [1, 4, 8, 12])
def test_a_missing_trailer_is_truncation(cut: int) -> None:
    with pytest.raises(Truncated, match="gzip data is truncated"):
        feed(Unpacker(), gzip.compress(b'{"traceEvents": []}')[:-cut], 1000)


def test_a_wrong_checksum_is_damage() -> None:
    packed = bytearray(gzip.compress(b'{"traceEvents": []}'))
    packed[-8] ^= 1  # the first byte of the CRC-32
    with pytest.raises(Malformed, match="damaged"):
        feed(Unpacker(), bytes(packed), 1000)


def test_tiny_members_are_neither_copied_over_and_over_nor_handed_out_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What follows a member is copied, so no more than 16 KiB are given to one; 1 MiB of members of one
    byte gives 64 KiB pieces."""
    seen: list[int] = []
    make = gzipped.isal_zlib.decompressobj

    class Watched:
        def __init__(self, wbits: int) -> None:
            self._inner = make(wbits=wbits)

        def decompress(self, part: bytes, most: int) -> bytes:
            seen.append(len(part))
            return bytes(self._inner.decompress(part, most))

        def __getattr__(self, name: str) -> Any:
            return getattr(self._inner, name)

    monkeypatch.setattr(gzipped.isal_zlib, "decompressobj", Watched)
    member = gzip.compress(b"x")
    n = (1 << 20) // len(member)
    pieces = list(Unpacker().feed(member * n))
    assert sum(map(len, pieces)) == n
    assert len(seen) == n
    assert max(seen) <= 16 << 10
    assert len(pieces) <= n // (64 << 10) + 1


def test_text_after_a_member_is_damage() -> None:
    with pytest.raises(Malformed, match="damaged"):
        feed(Unpacker(), gzip.compress(b"{}") + b"garbage", 1000)


def test_a_bomb_is_refused_before_it_is_inflated() -> None:
    """64 MiB of zeros pack to about 64 KiB: over 200 times beyond the floor of 16 MiB."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = b"".join(packer.compress(bytes(1 << 20)) for _ in range(64)) + packer.flush()
    unpacker, seen = Unpacker(), 0
    pieces = unpacker.feed(bomb)
    with pytest.raises(TooLarge, match="200 times its size"):  # noqa: PT012 (what came before counts too)
        while True:
            piece = len(next(pieces))
            seen += piece
            assert piece <= 1 << 20
    assert 0 < seen <= 17 << 20


def test_the_size_limit_holds_for_plain_files_too() -> None:
    with pytest.raises(TooLarge, match="limit of 10 bytes"):
        list(unpacked(io.BytesIO(b"{" + b" " * 20 + b"}"), Limits(max_bytes=10)))


def check(data: bytes) -> None:
    checker = Checker()
    checker.feed(data)
    checker.finish()


@pytest.mark.parametrize(
    ("data", "error", "says"),
    [
        (b"", NotATrace, "empty"),
        (b" \n", NotATrace, "empty"),
        (b"hello", NotATrace, "no JSON object or array"),
        (b'{"traceEvents": [{"ph": "X"', Truncated, "truncated"),
        (gzip.compress(b'{"traceEvents": [')[:-9], Truncated, "gzip"),
    ],
)
def test_the_checker_refuses_what_cannot_be_a_trace(data: bytes, error: type[Refused], says: str) -> None:
    with pytest.raises(error, match=says):
        check(data)


@pytest.mark.parametrize(
    "data", [b'{"traceEvents": []}\n', b'[{"ph": "X"},', b"\xef\xbb\xbf{}", gzip.compress(b" [1]")]
)
def test_the_checker_lets_whole_documents_pass(data: bytes) -> None:
    checker = Checker()
    for i in range(len(data)):
        checker.feed(data[i : i + 1])
    checker.finish()
