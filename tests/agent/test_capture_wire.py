"""The datagrams, byte for byte as Kineto writes them."""

from __future__ import annotations

import struct

import pytest

from agent.capture import wire


def _datagram(kind: bytes, body: bytes, *, size: int | None = None) -> bytes:
    return struct.pack("<Q32s", len(body) if size is None else size, kind) + body


def _poll(bits: int, pids: list[int], job: int = 0) -> bytes:
    return _datagram(b"req", struct.pack(f"<iiq{len(pids)}i", bits, len(pids), job, *pids))


@pytest.mark.parametrize(
    ("bits", "free"),
    [
        (0, False),  # newer Kineto, profiling
        (1, False),  # EVENTS only: a recording runs or waits
        (2, True),  # newer Kineto, idle
        (3, True),  # EVENTS and ACTIVITIES
    ],
)
def test_a_poll_tells_its_pids_and_whether_the_process_is_free(bits: int, free: bool) -> None:
    assert wire.parse(_poll(bits, [4711, 4700, 1], job=77)) == wire.Poll((4711, 4700, 1), free, 77)


def test_a_context_tells_who_asks() -> None:
    body = struct.pack("<iiq", 2, 4711, 77)
    assert wire.parse(_datagram(b"ctxt", body)) == wire.Context(gpu=2, pid=4711, job=77)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"req",
        _datagram(b"req", b""),
        _datagram(b"req", b"\0" * 15),
        _datagram(b"req", struct.pack("<iiq", 3, 0, 0)),  # no pid at all
        _datagram(b"req", struct.pack("<iiq", 3, -1, 0)),
        _datagram(b"req", struct.pack("<iiq", 3, 2**31 - 1, 0)),  # says 2 billion pids, brings none
        _datagram(b"req", struct.pack("<iiqi", 3, 2, 0, 7)),  # says two, brings one
        _datagram(b"req", struct.pack("<iiqi", 3, 1, 0, 7), size=2**63),
        _datagram(b"ctxt", b"\0" * 17),
        _datagram(b"other", b"hello"),
        b"\xff" * 400,
    ],
)
def test_anything_else_is_nothing(data: bytes) -> None:
    assert wire.parse(data) is None


def test_an_order_is_a_length_a_type_of_32_bytes_and_the_text() -> None:
    # "A=1\n" has 4 bytes; the type is padded with zeros.
    assert wire.order("A=1\n") == (4).to_bytes(8, "little") + b"req" + b"\0" * 29 + b"A=1\n"
    assert wire.order("") == b"\0" * 8 + b"req" + b"\0" * 29


def test_a_welcome_counts_the_processes() -> None:
    assert wire.welcome(1) == (4).to_bytes(8, "little") + b"ctxt" + b"\0" * 28 + b"\x01\0\0\0"
