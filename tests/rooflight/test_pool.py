"""Files of a run in several processes: the same answer as in one, and an end to everything."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from rooflight import analyze, analyze_files, pool, read, readers, worker
from rooflight.errors import NotATrace, ProtocolMismatch, Refused, TooLarge
from rooflight.protocol import encode
from rooflight.results.file import Analyst, FileTask
from rooflight.results.result import RankResult
from rooflight.trace import stored
from tests.shared import CHECKOUT


def trace(folder: Path, rank: int, *, world: int = 4) -> Path:
    """A rank that arrives ``rank`` µs later than rank 0 and leaves at 200 as all do."""
    events: list[dict[str, Any]] = [
        {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 9, "tid": 9,
         "ts": 0, "dur": 300},
        {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "pid": 0, "tid": 20,
         "ts": 100 + rank, "dur": 100 - rank, "args": {"device": 0, "stream": 20, "Seq": 1,
                                                        "Process Group Name": "world",
                                                        "Collective name": "allreduce"}},
    ]  # fmt: skip
    path = folder / f"rank{rank}.json"
    info = {"rank": rank, "world_size": world}
    path.write_text(json.dumps({"distributedInfo": info, "traceEvents": events}))
    return path


@pytest.fixture
def traces(tmp_path: Path) -> list[Path]:
    return [trace(tmp_path, rank) for rank in (2, 0, 1)]


def fake(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """Processes that run ``code`` instead of the worker."""
    monkeypatch.setattr(pool, "COMMAND", (sys.executable, "-c", code))


def test_processes_and_this_one_give_the_same_json(traces: list[Path]) -> None:
    """Rank 2 is last by 2 and 1 µs; of its wait-free 98 µs all is transfer.  Rank 3 is missing."""
    documents = [encode(analyze_files(traces, jobs=jobs).document) for jobs in (1, 2)]
    assert documents[0] == documents[1] == encode(analyze([read(p) for p in traces]).document)
    document = json.loads(documents[0])
    assert document["collectives"] == [
        {"n": 0, "group": "world", "straggler": 2, "transfer_us": 98, "wait_us": {"0": 2, "1": 1, "2": 0}}
    ]
    assert [(r["steps"][0]["wait_us"], r["steps"][0]["transfer_us"]) for r in document["ranks"]] == [
        (2, 98), (1, 98), (0, 98)
    ]  # fmt: skip
    assert document["missing_ranks"] == [3]
    assert all("1 ranks of the run are missing" in r["grade_reasons"] for r in document["ranks"])


@pytest.mark.parametrize("jobs", [1, 3])
def test_the_first_file_in_order_that_cannot_be_used_is_named(traces: list[Path], jobs: int) -> None:
    for bad in traces[1:]:
        bad.write_text('{"traceEvents": []}')
    with pytest.raises(NotATrace, match=r"rank0\.json"):
        analyze_files(traces, jobs=jobs)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_file_that_is_not_there_is_named(traces: list[Path], jobs: int) -> None:
    with pytest.raises(Refused, match=r"no such file .*gone\.json"):
        analyze_files([*traces, "gone.json"], jobs=jobs)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_stored_timeline_of_a_newer_version_is_named(traces: list[Path], jobs: int) -> None:
    kept = bytearray(gzip.decompress(stored.encode(read(traces[0]))))
    kept[len(stored.MAGIC)] = 255  # the version follows
    traces[0].write_bytes(kept)
    with pytest.raises(ProtocolMismatch, match=r"rank2\.json: "):
        analyze_files(traces, jobs=jobs)


def test_a_name_that_is_no_text_reaches_the_process(tmp_path: Path) -> None:
    odd = os.fsencode(tmp_path) + b"/\xff.json"
    trace(tmp_path, 1).rename(os.fsdecode(odd))
    assert (
        analyze_files([trace(tmp_path, 0), os.fsdecode(odd)], jobs=2).document.source
        == "rank0.json, \\udcff.json"
    )


def test_no_files_are_no_run() -> None:
    with pytest.raises(NotATrace, match="no trace was given"):
        analyze_files([])


def test_a_process_that_is_killed_names_its_file(traces: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    fake(monkeypatch, "import os, sys; sys.stdin.buffer.read(8); os.kill(os.getpid(), 9)")
    with pytest.raises(Refused, match=r"process that analysed it was killed \(SIGKILL\) \(.*rank2\.json\)"):
        analyze_files(traces, jobs=2)


def test_a_process_that_ends_early_names_its_file(
    traces: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    fake(monkeypatch, "import sys; sys.stdin.buffer.read(8); sys.exit(3)")
    with pytest.raises(Refused, match=r"ended with status 3 \(.*rank2\.json\)"):
        analyze_files(traces, jobs=2)


class Failing(Analyst):
    """Raises what it is given."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def result(self, task: FileTask) -> RankResult:
        raise self.error


def test_memory_that_runs_out_is_a_refusal_with_the_file() -> None:
    reply = worker._reply(FileTask(b"/data/rank7.json"), Failing(MemoryError()))
    assert isinstance(reply, worker.NotTaken)
    assert (reply.kind, reply.where) == ("TooLarge", "/data/rank7.json")
    assert type(pool._error(reply)) is TooLarge


def test_an_error_nobody_expected_says_which_file_and_where() -> None:
    reply = worker._reply(FileTask(b"x.json"), Failing(ZeroDivisionError("oops")))
    assert isinstance(reply, worker.Broken)
    assert "ZeroDivisionError: oops" in reply.text


def test_a_recording_that_all_files_share_is_read_once(
    traces: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def reading(path: str, **kwargs: Any) -> Any:
        seen.append(Path(path).name)
        return read(path, **kwargs)

    monkeypatch.setattr(readers, "read", reading)
    (other := tmp_path / "other").mkdir()
    analyze_files(traces, jobs=1, eager=trace(other, 3).rename(other / "eager.json"))
    assert seen == ["eager.json", "rank2.json", "rank0.json", "rank1.json"]


SCRIPT = (
    "import sys; import rooflight; print(len(rooflight.analyze_files(sys.argv[1:], jobs=2).document.ranks))"
)


def test_the_script_that_asks_is_not_run_again(traces: list[Path], tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, script, *traces],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
    )
    assert (done.stdout, done.stderr) == ("3\n", "")


def test_an_interrupt_ends_the_processes(traces: list[Path], tmp_path: Path) -> None:
    """The parent alone is interrupted; its two processes, which never answer, end with it."""
    touch = f"pathlib.Path({str(tmp_path)!r}, f'{{os.getpid()}}.pid').touch()"
    code = f"import os, time, pathlib; {touch}; time.sleep(60)"
    script = f"from rooflight import pool; pool.COMMAND = ({sys.executable!r}, '-c', {code!r})\n{SCRIPT}"
    parent = subprocess.Popen(
        [sys.executable, "-c", script, *traces],
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
    )
    deadline = time.monotonic() + 30
    while len(pids := list(tmp_path.glob("*.pid"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    parent.send_signal(signal.SIGINT)
    _, errors = parent.communicate(timeout=30)
    assert b"KeyboardInterrupt" in errors
    assert len(pids) == 2
    assert not any(Path("/proc", p.stem).exists() for p in pids)
