"""Our own stored form: what comes back, which versions are read, what is refused."""

from __future__ import annotations

import gzip
import json
import random
import struct
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rooflight import Timeline, analyze, read
from rooflight.errors import Malformed, ProtocolMismatch, Refused, TooLarge, Truncated
from rooflight.protocol import encode
from rooflight.readers import Limits
from rooflight.trace import stored, upgrades
from rooflight.trace.tables import GpuEvents, HostEvents
from tests.drawing import timeline_from_events
from tests.shared import CHECKOUT, missing_traces, traces_dir

OLD_FILES = sorted((CHECKOUT / "tests/data").glob("stored_v*.rooflight"))
PREFIX = struct.Struct("<8sIQ")


def decoded(data: bytes) -> Timeline:
    return stored.decode([data], max_rows=1_000_000)


def plain(timeline: Timeline) -> bytes:
    data = stored.encode(timeline)
    return gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data


def event(cat: str, name: str, ts: float, dur: float, tid: int = 1, **args: Any) -> dict[str, Any]:
    on_gpu = cat in ("kernel", "gpu_memcpy")
    return {"ph": "X", "cat": cat, "name": name, "pid": 0 if on_gpu else 9, "tid": tid, "ts": ts, "dur": dur,
            "args": args}  # fmt: skip


def small() -> Timeline:
    """A step of 100 us in which aten::mm of two fp32 16 x 16 launches a kernel of 20 us."""
    inputs = {
        "Input Dims": [[16, 16], [16, 16]],
        "Input type": ["float", "float"],
        "Concrete Inputs": ["", ""],
    }
    rows = [
        event("user_annotation", "ProfilerStep#3", 0, 100),
        event("cpu_op", "aten::mm", 5, 10, **inputs, **{"Input Strides": [[16, 1], [16, 1]]}),
        event("cuda_runtime", "cudaLaunchKernel", 7, 2, correlation=11),
        event("kernel", "sgemm é", 20, 20, 7, device=0, context=1, stream=7, correlation=11,
              grid=[1, 1, 1], block=[128, 1, 1], **{"registers per thread": 32, "shared memory": 1024}),
        event("kernel", "ncclDevKernel_AllReduce", 50, 10, 8, device=0, context=1, stream=8, correlation=12,
              **{"Collective name": "allreduce", "In msg nelems": 64, "dtype": "Float", "Group size": 2}),
    ]  # fmt: skip
    info = {"distributedInfo": {"rank": 1, "world_size": 2}, "host_name": "h"}
    return timeline_from_events(
        rows, **info, deviceProperties=[{"id": 0, "name": "Tesla V100", "numSms": 80}]
    )


def random_timeline(seed: int) -> Timeline:
    """Ops, launches, kernels and copies at random times, some of them broken in one way or another."""
    rng = random.Random(seed)
    rows = [event("user_annotation", f"ProfilerStep#{n}", n * 100, 99) for n in range(rng.randint(0, 3))]
    for i in range(rng.randint(0, 40)):
        at, length = rng.uniform(0, 300), rng.choice([0, 0.5, 3, 40, -1])
        dims: dict[str, Any] = {"Input Dims": [[rng.randint(0, 9), 4], [4, 5]], "Input type": ["float"] * 2}
        dims["Record function id"] = rng.choice([0, -7, i, 2**63 - 1, 2**70, "x"])
        rows.append(event("cpu_op", rng.choice(["aten::mm", "aten::add"]), at, abs(length), **dims))
        rows.append(event("cuda_runtime", "cudaLaunchKernel", at, 1, correlation=i))
        where = {"device": rng.randint(0, 1), "stream": rng.randint(7, 8), "correlation": i}
        kind = rng.choice(["kernel", "gpu_memcpy"])
        shape = {"grid": [rng.randint(1, 9), 1, 1], "block": [32, 1, 1]}
        rows.append(event(kind, f"k{rng.randint(0, 4)}", at + 2, length, 7, **where, **shape, bytes=i * 1000))
    return timeline_from_events([*rows, event("cpu_op", "aten::mm", 0, 1)])


def assert_same(a: Timeline, b: Timeline) -> None:
    for table in ("gpu", "host"):
        for f in fields(GpuEvents if table == "gpu" else HostEvents):
            left, right = getattr(getattr(a, table), f.name), getattr(getattr(b, table), f.name)
            assert left.dtype == right.dtype, f.name
            assert np.array_equal(left, right), f.name
    others = [f.name for f in fields(Timeline) if f.name not in ("gpu", "host")]
    assert {n: getattr(a, n) for n in others} == {n: getattr(b, n) for n in others}


# -- what comes back ---------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32))
def test_a_stored_timeline_is_the_same_and_has_the_same_analysis(seed: int) -> None:
    timeline = random_timeline(seed)
    back = decoded(plain(timeline))
    assert_same(timeline, back)
    assert encode(analyze(back).document) == encode(analyze(timeline).document)


def shared() -> list[str]:
    """The shared traces but the largest, which cost seconds each."""
    truth = {} if missing_traces() else json.loads((traces_dir() / "TRUTH.json").read_text())
    whole = [name for name, t in truth.items() if "error" not in t]
    return [name for name in whole if (traces_dir() / name).stat().st_size < 1_000_000]


@pytest.mark.traces
@pytest.mark.parametrize("name", shared())
def test_a_shared_trace_is_analysed_alike_without_itself(name: str, tmp_path: Path) -> None:
    timeline = read(traces_dir() / name)
    timeline.save(tmp_path / "x.rooflight")
    back = read(tmp_path / "x.rooflight")
    assert encode(analyze(back).document) == encode(analyze(timeline).document)


@pytest.mark.traces
def test_a_large_recording_is_a_fifth_of_its_gzip(tmp_path: Path) -> None:
    """216 k events: 2,992,153 bytes of .json.gz."""
    raw = traces_dir() / "hta/v100_rank1of2_216k_events.json.gz"
    read(raw).save(tmp_path / "x.rooflight")
    assert (tmp_path / "x.rooflight").stat().st_size * 5 < raw.stat().st_size
    assert_same(read(tmp_path / "x.rooflight"), read(raw))


def test_the_content_tells_the_format_whatever_the_name(tmp_path: Path) -> None:
    small().save(tmp_path / "looks-like.json")
    assert_same(read(tmp_path / "looks-like.json"), small())


def test_numbers_that_no_json_holds_come_back_as_texts() -> None:
    odd = replace(small(), comms=({"Group size": float("inf")},), shapes=(b"[1],\xff,null,7",))
    back = decoded(plain(odd))
    assert back.comms == ({"Group size": "inf"},)
    assert back.shapes == (b"[1],\xff,null,7",)


def test_extreme_numbers_keep_their_value() -> None:
    t = small()
    correlation = np.array([-(2**63), 2**63 - 1], np.int64)
    odd = replace(t, gpu=replace(t.gpu, correlation=correlation))
    assert decoded(plain(odd)).gpu.correlation.tolist() == correlation.tolist()


def test_what_compresses_like_a_bomb_is_written_plain_and_read_back(tmp_path: Path) -> None:
    """2 M equal rows of 9 columns of a byte are 18 MB of equal bytes: over 100 times smaller by gzip."""
    t = small()
    rows = np.zeros(2_000_000, np.int64)
    many = replace(t, host=t.host.take(rows))
    many.save(tmp_path / "x.rooflight")
    assert (tmp_path / "x.rooflight").read_bytes()[:8] == stored.MAGIC
    assert len(read(tmp_path / "x.rooflight").host) == 2_000_000


def test_a_failed_write_leaves_what_was_there_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "x.rooflight").mkdir()
    with pytest.raises(Refused, match=r"cannot write: is a directory"):
        small().save(tmp_path / "x.rooflight")
    with pytest.raises(Refused, match=r"cannot write: no such file or directory"):
        small().save(tmp_path / "nowhere" / "x.rooflight")
    assert [p.name for p in tmp_path.iterdir()] == ["x.rooflight"]


# -- versions ----------------------------------------------------------------------------------------
# When the form changes: raise VERSION, add the upgrade, write docs/stored.md, and keep a file of the new
# version: small().save("tests/data/stored_vN.rooflight").


def test_a_file_of_every_version_is_kept() -> None:
    assert [p.name for p in OLD_FILES] == [f"stored_v{n}.rooflight" for n in range(1, upgrades.VERSION + 1)]
    assert set(upgrades.UPGRADES) == set(range(1, upgrades.VERSION))


@pytest.mark.parametrize("path", OLD_FILES, ids=lambda p: p.name)
def test_an_old_file_is_read_and_analysed(path: Path) -> None:
    """mm of 16 x 16: 2 x 16^3 = 8,192 FLOPs, 3 x 256 x 4 = 3,072 bytes, in 20 us of a step of 100."""
    assert PREFIX.unpack(gzip.decompress(path.read_bytes())[: PREFIX.size])[1] == int(path.stem[8:])
    timeline = read(path)
    rank = analyze(timeline).document.ranks[0]
    by_name = {k.name: k for k in rank.kernels}
    k = by_name["sgemm é"]
    assert (k.flops, k.bytes, k.time_us, k.op) == (8_192, 3_072, 20.0, "aten::mm")
    assert (rank.rank, rank.host, [s.step_time_us for s in rank.steps]) == (1, "h", [100.0])
    assert timeline.shape(0) is not None
    assert timeline.shape(0).registers == 32  # type: ignore[union-attr]
    assert by_name["ncclDevKernel_AllReduce"].family == "collective"


@pytest.mark.parametrize("version", [0, upgrades.VERSION + 1, 2**32 - 1])
def test_an_unknown_version_is_refused_by_its_number(version: int) -> None:
    data = bytearray(plain(small()))
    data[8:12] = struct.pack("<I", version)
    with pytest.raises(ProtocolMismatch, match=f"version {version}: this program reads 1 to"):
        decoded(bytes(data))


# -- hostile files -----------------------------------------------------------------------------------


def changed(change: Callable[[dict[str, Any]], object]) -> bytes:
    """A stored file whose header was tampered with."""
    data = plain(small())
    _, version, size = PREFIX.unpack(data[: PREFIX.size])
    header = json.loads(data[PREFIX.size : PREFIX.size + size])
    change(header)
    text = json.dumps(header).encode()
    return PREFIX.pack(stored.MAGIC, version, len(text)) + text + data[PREFIX.size + size :]


@pytest.mark.parametrize("cut", [1, 19, 40, -1])
def test_a_cut_file_is_truncated(cut: int) -> None:
    with pytest.raises(Truncated, match="truncated"):
        decoded(plain(small())[:cut])


def test_what_follows_is_refused() -> None:
    with pytest.raises(Malformed, match="something follows"):
        decoded(plain(small()) + b"x")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("host_rows", 10**6 + 1),
        ("gpu_rows", -1),
        ("gpu_rows", "2"),
        ("gpu", [["name", "q"], ["name", "q"]]),
        ("gpu", [["name", "O"]]),
        ("host", None),
        ("names", []),
        ("names", ["a", "a", "b", "c", "d"]),
        ("device_keys", []),
        ("stream_keys", [["0", "0", "1", "7"]]),
        ("threads", []),
        ("op_args", []),
        ("op_args", [["a"] * 99]),
        ("op_args", [["\u1234", "", "", "", ""]]),
        ("shapes", []),
        ("comms", []),
        ("comms", [{"a": [1]}]),
        ("meta", {"base_ns": -1}),
        ("meta", {"rank": 2**63}),
        ("meta", {"devices": [{"id": "0", "name": "x", "limits": {"a": -1}}]}),
        ("overlong_clipped", -1),
        ("flags", [{"code": 1}]),
    ],
)
def test_a_header_that_no_writer_makes_is_refused(key: str, value: Any) -> None:
    with pytest.raises((Malformed, TooLarge, Truncated)):
        decoded(changed(lambda h: h.update({key: value})))


def test_a_header_of_many_gigabytes_is_refused_before_it_is_read() -> None:
    with pytest.raises(TooLarge, match="header"):
        decoded(PREFIX.pack(stored.MAGIC, 1, 2**40))


def test_a_header_nested_without_end_is_refused() -> None:
    text = b'{"names": ' + b"[" * 100_000
    with pytest.raises(Malformed):
        decoded(PREFIX.pack(stored.MAGIC, 1, len(text)) + text)


@pytest.mark.parametrize("table", ["gpu", "host"])
@pytest.mark.parametrize("value", [-7, 127, 2**40, -(2**62)])
def test_a_column_that_points_outside_is_refused(table: str, value: int) -> None:
    t = small()
    rows = getattr(t, table)
    for name in ("name", "kind", "device", "stream", "shape", "comm", "invalid", "thread", "args"):
        if hasattr(rows, name):
            column = np.full(len(rows), value, np.int64)
            with pytest.raises(Malformed, match=r"out of range"):
                decoded(plain(replace(t, **{table: replace(rows, **{name: column})})))


@pytest.mark.parametrize(
    ("name", "value"), [("start", 2**63 - 1), ("start", -(2**63)), ("end", -1), ("dur", -1), ("dur", 1)]
)
def test_a_time_that_no_reader_makes_is_refused(name: str, value: int) -> None:
    t = small()
    column = np.full(len(t.gpu), value, np.int64)
    with pytest.raises(Malformed, match=r"out of range"):
        decoded(plain(replace(t, gpu=replace(t.gpu, **{name: column}))))


def test_a_bomb_is_refused_while_it_is_unpacked(tmp_path: Path) -> None:
    """64 MiB of zeros after the prefix pack over 200 times."""
    (tmp_path / "x.rooflight").write_bytes(gzip.compress(PREFIX.pack(stored.MAGIC, 1, 100) + bytes(64 << 20)))
    with pytest.raises((TooLarge, Malformed)):
        read(tmp_path / "x.rooflight")


def test_more_rows_than_the_limit_are_refused(tmp_path: Path) -> None:
    small().save(tmp_path / "x.rooflight")
    with pytest.raises(TooLarge, match="limit of 1 events"):
        read(tmp_path / "x.rooflight", limits=Limits(max_events=1))


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 10_000), st.binary(min_size=1, max_size=9))
def test_any_damage_is_refused_or_harmless(at: int, junk: bytes) -> None:
    data = bytearray(plain(small()))
    at %= len(data)
    data[at : at + len(junk)] = junk
    try:
        timeline = decoded(bytes(data))
    except (Refused, ProtocolMismatch):
        return
    analyze(timeline)
