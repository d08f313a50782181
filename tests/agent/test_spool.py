"""The queue on disk: bounded, honest about what it gave up, and whole after any crash."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import agent.spool
import agent.tally
from agent.batch import Address, CorruptError
from agent.spool import Batch, Spool
from agent.store import replace
from rooflight.errors import Refused


def a_spool(folder: Path, limit: int = 10_000, notes: list[str] | None = None, **kw: Any) -> Spool:
    return Spool(folder, limit_bytes=limit, note=(notes if notes is not None else []).append, **kw)


def again(spool: Spool) -> Spool:
    """The spool as the next process finds it."""
    spool.close()
    return a_spool(spool.folder, spool.limit_bytes)


def keys(spool: Spool) -> list[str]:
    return [batch.key for batch in spool.batches()]


def first(spool: Spool) -> Batch:
    batch = spool.next()
    assert batch is not None
    return batch


NONE = {"telemetry": 0, "profile": 0, "trace": 0}


def test_what_was_put_comes_out_in_order_also_in_the_next_process(tmp_path: Path) -> None:
    spool = a_spool(tmp_path)
    run = Address(project="vision", run="nightly", host="gpu-7")
    assert spool.put("telemetry", b"one", "k1")
    assert spool.put("profile", b"two", "k2", address=run)
    spool = again(spool)
    assert (first(spool).key, first(spool).body(), first(spool).kind) == ("k1", b"one", "telemetry")
    spool.delivered(first(spool), NONE)
    assert (first(spool).body(), first(spool).head.address) == (b"two", run)
    spool.delivered(first(spool), NONE)
    assert spool.next() is None
    assert (len(spool), spool.bytes) == (0, 0)
    assert again(spool).next() is None


def test_a_key_that_waits_already_is_put_once(tmp_path: Path) -> None:
    spool = a_spool(tmp_path)
    assert spool.put("telemetry", b"one", "k")
    assert spool.put("telemetry", b"two", "k")
    assert [b.body() for b in spool.batches()] == [b"one"]


def test_a_file_is_taken_in_pieces(tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    trace.write_bytes(bytes(range(256)) * 4096)
    spool = a_spool(tmp_path / "spool", 2 << 20)
    assert spool.put("trace", trace, "t")
    assert first(spool).body() == trace.read_bytes()
    start = first(spool).start()
    assert first(spool).path.read_bytes()[start:] == trace.read_bytes()
    assert not spool.put("trace", tmp_path / "missing", "m")
    assert spool.dropped() == NONE | {"trace": 1}


def test_full_the_oldest_telemetry_goes_first_then_profiles_and_traces_last(tmp_path: Path) -> None:
    spool = a_spool(tmp_path, 4000)
    for kind, key in (("trace", "r1"), ("profile", "p1"), ("telemetry", "t1"), ("telemetry", "t2")):
        assert spool.put(kind, bytes(1000), key)  # type: ignore[arg-type]
    assert spool.put("trace", bytes(1000), "r2")
    assert keys(spool) == ["r1", "p1", "t2", "r2"]
    assert spool.put("profile", bytes(1500), "p2")  # t2's 1000 do not suffice: p1 goes too
    assert keys(spool) == ["r1", "r2", "p2"]
    assert spool.put("trace", bytes(2000), "r3")  # p2's 1500 do
    assert keys(spool) == ["r1", "r2", "r3"]
    assert not spool.put("telemetry", b"t", "t3"), "no trace gives way to telemetry"
    assert not spool.put("trace", bytes(4001), "r4"), "what cannot fit costs nothing"
    assert keys(spool) == ["r1", "r2", "r3"]
    assert spool.dropped() == {"telemetry": 3, "profile": 2, "trace": 1}
    assert again(spool).dropped() == {"telemetry": 3, "profile": 2, "trace": 1}


def test_many_small_ones_are_bounded_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent.spool, "MOST_BATCHES", 3)
    spool = a_spool(tmp_path)
    for i in range(5):
        assert spool.put("telemetry", b"x", f"t{i}")
    assert keys(spool) == ["t2", "t3", "t4"]
    assert spool.dropped() == NONE | {"telemetry": 2}


def test_the_dropped_are_told_until_they_are_acknowledged_and_once(tmp_path: Path) -> None:
    spool = a_spool(tmp_path, 2)
    for i in range(6):
        spool.put("telemetry", b"x", f"t{i}")
    assert spool.dropped() == NONE | {"telemetry": 4}
    batch = first(spool)
    told = spool.dropped()
    spool.put("telemetry", b"x", "t6")  # meanwhile one more: it pushed out the batch that is under way
    spool.delivered(batch, told)
    assert spool.dropped() == NONE | {"telemetry": 1}
    assert again(spool).dropped() == NONE | {"telemetry": 1}


def test_the_same_answer_after_a_crash_counts_once(tmp_path: Path) -> None:
    spool = a_spool(tmp_path, 2)
    for i in range(6):
        spool.put("telemetry", b"x", f"t{i}")
    batch = first(spool)
    kept = batch.path.read_bytes()
    spool.delivered(batch, NONE | {"telemetry": 3})
    batch.path.write_bytes(kept)  # as if the process had died before it removed the file
    spool = again(spool)
    spool.delivered(first(spool), NONE | {"telemetry": 3})
    assert spool.dropped() == NONE | {"telemetry": 1}


def test_many_drops_are_folded_into_a_number(tmp_path: Path) -> None:
    spool = a_spool(tmp_path, 1)
    for i in range(700):
        spool.put("telemetry", b"x", f"t{i}")
    assert spool.dropped() == NONE | {"telemetry": 699}
    assert len(list(tmp_path.iterdir())) < 300
    spool.delivered(first(spool), NONE)
    spool = again(spool)
    spool.put("telemetry", b"x", "a")
    spool.put("telemetry", b"x", "b")
    assert again(spool).dropped() == NONE | {"telemetry": 700}


class FullDisk:
    """Every ``nth`` write ends as on a full disk."""

    def __init__(self, nth: int, error: int = errno.ENOSPC) -> None:
        self.nth, self.error, self.writes = nth, error, 0

    def __call__(self, path: Path, chunks: Any) -> None:
        self.writes += 1
        if self.writes % self.nth == 0:
            raise OSError(self.error, os.strerror(self.error))
        replace(path, chunks)


def test_a_full_disk_costs_the_oldest_telemetry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spool = a_spool(tmp_path)
    for i in range(4):
        spool.put("telemetry", bytes(1000), f"t{i}")
    monkeypatch.setattr(agent.spool, "replace", FullDisk(2))
    assert spool.put("trace", bytes(500), "r1")  # write 1
    assert spool.put("telemetry", bytes(1000), "t4")  # write 2 fails, t0 goes, write 3
    assert keys(spool) == ["t1", "t2", "t3", "r1", "t4"]
    assert spool.dropped() == NONE | {"telemetry": 1}


def test_a_disk_that_stays_full_costs_no_more_than_would_help(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = a_spool(tmp_path)
    for i in range(4):
        spool.put("telemetry", bytes(1000), f"t{i}")
    monkeypatch.setattr(agent.spool, "replace", FullDisk(1))
    monkeypatch.setattr(agent.tally, "replace", FullDisk(1))
    assert not spool.put("telemetry", bytes(1000), "t4")
    assert not spool.put("trace", bytes(5000), "r1"), "4 x 1000 would not make room for it"
    assert keys(spool) == ["t1", "t2", "t3"]
    spool.delivered(first(spool), spool.dropped())  # told, though the disk takes no counter
    assert spool.dropped() == NONE
    monkeypatch.undo()
    assert spool.put("telemetry", b"x", "t5")
    assert keys(again(spool)) == ["t2", "t3", "t5"]


def test_another_error_of_the_disk_costs_the_new_batch_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes: list[str] = []
    spool = a_spool(tmp_path, notes=notes)
    spool.put("telemetry", b"x", "t0")
    monkeypatch.setattr(agent.spool, "replace", FullDisk(1, errno.EIO))
    assert not spool.put("telemetry", b"x", "t1")
    assert (keys(spool), spool.dropped()) == (["t0"], NONE | {"telemetry": 1})
    assert "Input/output error" in notes[0]


def test_half_written_files_go_and_broken_ones_are_set_apart(tmp_path: Path) -> None:
    spool = a_spool(tmp_path)
    for i in range(6):
        spool.put("telemetry", b"body", f"t{i}")
    files = [b.path for b in spool.batches()]
    spool.close()
    (tmp_path / ".0000000000000009-telemetry.batch-x1").write_bytes(b"half")
    files[0].write_bytes(files[0].read_bytes()[:-1])  # a byte short
    files[1].write_bytes(b"")
    files[2].write_bytes(files[2].read_bytes().replace(b'"t2"', b'"t9"'))  # the line's checksum tells
    files[3].write_bytes(files[3].read_bytes()[:-1] + b"?")  # the right length, another body
    (tmp_path / "nonsense-telemetry.batch").write_bytes(files[4].read_bytes())
    spool = a_spool(tmp_path)
    assert keys(spool) == ["t3", "t4", "t5"]
    with pytest.raises(CorruptError, match="checksum"):
        first(spool).body()
    with pytest.raises(CorruptError, match="checksum"):
        first(spool).start()
    spool.quarantine(first(spool), "corrupt")
    assert len(spool.quarantined.names()) == 5
    reasons = [spool.quarantined.reason(name) for name in spool.quarantined.names()]
    assert [r.reason.split()[0] for r in reasons if r] == ["corrupt:"] * 3 + ["corrupt", "corrupt:"]
    assert list(tmp_path.glob(".*")) == []


def test_the_quarantine_is_bounded(tmp_path: Path) -> None:
    spool = a_spool(tmp_path, quarantine_bytes=3000)
    for i in range(5):
        spool.put("profile", bytes(1000), f"p{i}")
        spool.quarantine(first(spool), f"reason {i}", 422)
    [one, two] = spool.quarantined.names()  # three with their first lines are more than 3000 bytes
    reasons = spool.quarantined.reason(one), spool.quarantined.reason(two)
    assert [r and (r.reason, r.status) for r in reasons] == [("reason 3", 422), ("reason 4", 422)]
    assert len(list((tmp_path / "quarantine").iterdir())) == 4
    assert (len(spool), spool.bytes) == (0, 0)


def test_halves_stand_where_the_whole_stood(tmp_path: Path) -> None:
    spool = a_spool(tmp_path)
    for key in ("a", "b", "c"):
        spool.put("telemetry", f"{key}{key}".encode(), key)
    whole = first(spool)
    kept = whole.path.read_bytes()
    assert spool.split(whole, (b"a", b"A"))
    assert keys(spool) == ["a/1", "a/2", "b", "c"]
    assert spool.bytes == 6
    whole.path.write_bytes(kept)  # died before the whole was removed
    spool = again(spool)
    assert keys(spool) == ["a", "a/1", "a/2", "b", "c"]
    assert spool.split(first(spool), (b"a", b"A"))
    assert (keys(spool), spool.bytes) == (["a/1", "a/2", "b", "c"], 6)
    assert keys(again(spool)) == ["a/1", "a/2", "b", "c"]


def test_a_full_disk_leaves_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spool = a_spool(tmp_path)
    spool.put("telemetry", b"aa", "a")
    monkeypatch.setattr(agent.spool, "replace", FullDisk(2))
    assert not spool.split(first(spool), (b"a", b"A"))
    assert keys(spool) == ["a"]


def test_a_second_agent_is_refused(tmp_path: Path) -> None:
    spool = a_spool(tmp_path)
    with pytest.raises(Refused, match="another agent"):
        a_spool(tmp_path)
    spool.close()
    a_spool(tmp_path).close()


OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["telemetry", "profile", "trace", "deliver", "quarantine", "restart", "half"]),
        st.integers(0, 400),
    ),
    max_size=60,
)


@settings(deadline=None, max_examples=60)
@given(OPERATIONS)
def test_nothing_is_lost_uncounted_or_there_twice(
    tmp_path_factory: pytest.TempPathFactory, operations: list[tuple[str, int]]
) -> None:
    """Every batch is in the queue, was delivered, is in quarantine, or is counted as dropped."""
    folder = tmp_path_factory.mktemp("spool")
    spool = a_spool(folder, 1000, quarantine_bytes=1 << 20)
    put, ended = 0, 0
    for operation, size in operations:
        batch = spool.next()
        if operation in ("telemetry", "profile", "trace"):
            spool.put(operation, random.Random(size).randbytes(size), f"k{put}")  # type: ignore[arg-type]
            put += 1
        elif operation == "restart":
            spool.close()
            spool = a_spool(folder, 1000, quarantine_bytes=1 << 20)
        elif operation == "half":
            (folder / f".{size:016d}-telemetry.batch-x").write_bytes(bytes(size))
        elif batch is not None and operation == "deliver":
            spool.delivered(batch, NONE)
            ended += 1
        elif batch is not None:
            spool.quarantine(batch, "test")
        assert spool.bytes == sum(b.size for b in spool.batches()) <= 1000
        dropped = sum(spool.dropped().values())
        assert len(spool) + ended + len(spool.quarantined.names()) + dropped == put
    assert [hashlib.sha256(b.body()).hexdigest() == b.head.sha256 for b in spool.batches()].count(False) == 0
    assert len(set(keys(spool))) == len(spool)
    spool.close()


def test_lines_are_json_for_whoever_looks(tmp_path: Path) -> None:
    spool = a_spool(tmp_path)
    spool.put("telemetry", b"{}", "k")
    line, _, body = first(spool).path.read_bytes().partition(b"\n")
    assert json.loads(line.split(b" ", 3)[3])["key"] == "k"
    assert body == b"{}"
