"""Orders and the processes that ask, in made-up time: a process asks every 5 s."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from agent.capture.coordinator import Coordinator
from agent.capture.wire import Poll
from agent.processes import Processes
from rooflight.captures import Order, read_order
from rooflight.errors import Refused

ME, ROOT, OTHER = 1000, 0, 1001
T0 = 1_764_500_000.0


@dataclass
class Host:
    """A /proc of made-up processes, and those of them that ask."""

    root: Path
    uid: int = ME
    coordinator: Coordinator = field(init=False)

    def __post_init__(self) -> None:
        self.coordinator = Coordinator(Processes(self.root), uid=self.uid)

    def start(self, pid: int, parent: int = 1, ticks: int = 5000, **environ: str) -> None:
        folder = self.root / str(pid)
        folder.mkdir(parents=True, exist_ok=True)
        # Field 4 is the parent, field 22 the start; the name in brackets may hold brackets itself.
        middle = " ".join(["0"] * 17)
        (folder / "stat").write_text(f"{pid} (a) name) S {parent} {middle} {ticks} 0 0\n")
        (folder / "cmdline").write_bytes(b"python\0train.py\0")
        (folder / "environ").write_bytes(b"".join(f"{k}={v}\0".encode() for k, v in environ.items()))

    def end(self, pid: int) -> None:
        for file in (self.root / str(pid)).iterdir():
            file.unlink()

    def poll(self, pid: int, at: float, *, uid: int = ME, free: bool = True, job: int = 0) -> str:
        return self.coordinator.poll(Poll((pid,), free, job), pid, uid, T0 + at)

    def take(self, at: float, **order: Any) -> Any:
        given = {"id": "c1"} | order
        if "iterations" not in order:
            given = {"duration_ms": 500} | given
        return self.coordinator.take(Order(**given), T0 + at)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    made = Host(tmp_path)
    for pid in (10, 20, 21):
        made.start(pid)
    return made


def _lines(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines())


def test_without_an_order_a_process_is_told_nothing(host: Host) -> None:
    assert host.poll(20, 0) == ""


def test_a_timed_order_of_one_process_starts_at_once(host: Host) -> None:
    host.poll(20, 0)
    host.take(1, pids=(20,), duration_ms=300)
    lines = _lines(host.poll(20, 5))
    assert lines["ACTIVITIES_DURATION_MSECS"] == "300"
    assert lines["PROFILE_START_TIME"] == "0"
    assert lines["PROFILE_REPORT_INPUT_SHAPES"] == "true"
    assert host.poll(20, 10) == ""  # it has the order


def test_several_processes_start_at_one_moment_after_each_has_asked_once_more(host: Host) -> None:
    host.poll(20, 0)
    host.poll(21, 3)
    host.take(4, duration_ms=300)
    first, second = _lines(host.poll(20, 5)), _lines(host.poll(21, 8))
    # 4 s + a round of 6 s + 1 s of warm-up + 1 s = 12 s.
    assert first["PROFILE_START_TIME"] == second["PROFILE_START_TIME"] == str(int(1000 * (T0 + 12)))
    assert first["ACTIVITIES_LOG_FILE"] != second["ACTIVITIES_LOG_FILE"]


def test_one_that_asks_after_that_moment_is_left_out_by_name(host: Host) -> None:
    host.poll(20, 0)
    host.poll(21, 0)
    capture = host.take(1)
    assert host.poll(20, 5)
    assert host.poll(21, 9) == ""
    assert capture.members[21].answer.state == "failed"
    assert "process 21 asked too late" in str(capture.members[21].answer.problem)


def test_iterations_of_one_process_start_at_the_next(host: Host) -> None:
    host.poll(20, 0)
    host.take(1, pids=(20,), iterations=3)
    lines = _lines(host.poll(20, 5))
    assert (lines["ACTIVITIES_ITERATIONS"], lines["PROFILE_START_ITERATION_ROUNDUP"]) == ("3", "1")
    assert "PROFILE_START_TIME" not in lines


def test_iterations_of_several_start_at_a_common_multiple(host: Host) -> None:
    host.poll(20, 0)
    host.poll(21, 0)
    host.take(1, iterations=3)
    assert {_lines(host.poll(pid, 5))["PROFILE_START_ITERATION_ROUNDUP"] for pid in (20, 21)} == {"100"}


def test_a_launcher_stands_for_its_ranks(host: Host) -> None:
    host.start(30, parent=10, RANK="0")
    host.start(31, parent=10, RANK="1")
    for pid in (20, 30, 31):
        host.poll(pid, 0)
    capture = host.take(1, pids=(10,))
    assert {pid: m.answer.rank for pid, m in capture.members.items()} == {30: 0, 31: 1}


def test_a_job_number_selects_its_processes(host: Host) -> None:
    host.poll(20, 0, job=5)
    host.poll(21, 0, job=6)
    assert list(host.take(1, job=6).members) == [21]


def test_a_pid_that_does_not_exist_is_answered_at_once_by_name(host: Host) -> None:
    outcome = host.take(0, pids=(99999,)).outcome
    assert outcome.state == "failed"
    assert "99999" in str(outcome.problem)
    assert "no such process" in str(outcome.problem)


def test_of_two_pids_the_missing_one_is_named_and_the_other_recorded(host: Host) -> None:
    host.poll(20, 0)
    capture = host.take(1, pids=(20, 99999))
    assert host.poll(20, 5)
    assert capture.outcome.state == "open"
    assert [row.pid for row in capture.outcome.processes if row.problem] == [99999]


def test_a_process_that_never_asks_is_named_with_what_to_do(host: Host) -> None:
    capture = host.take(0, pids=(10,))
    host.coordinator.tick(T0 + 16)
    assert capture.open
    host.coordinator.tick(T0 + 16.1)
    assert "process 10 has not asked" in str(capture.outcome.problem)
    assert "KINETO_USE_DAEMON=1" in str(capture.outcome.problem)


def test_a_process_that_ended_is_named(host: Host) -> None:
    host.poll(20, 0)
    capture = host.take(1, pids=(20,))
    host.poll(20, 5)
    host.end(20)
    host.coordinator.tick(T0 + 6)
    assert capture.outcome.problem == "process 20 ended before its recording was written"


def test_a_pid_that_was_given_to_another_process_is_not_the_same(host: Host) -> None:
    host.poll(20, 0)
    capture = host.take(1, pids=(20,))
    host.poll(20, 5)
    host.start(20, ticks=9999)
    host.coordinator.tick(T0 + 6)
    assert "process 20 ended" in str(capture.outcome.problem)


def test_a_recording_that_does_not_come_is_given_up(host: Host) -> None:
    host.poll(20, 0)
    capture = host.take(1, pids=(20,), duration_ms=500)
    host.poll(20, 5)
    # Sent at 5 s + 1 s of warm-up + 0.5 s + 60 s for writing = 66.5 s.
    host.coordinator.tick(T0 + 66.5)
    assert capture.open
    host.coordinator.tick(T0 + 66.6)
    assert "process 20 has written no recording in time" in str(capture.outcome.problem)


def test_a_process_is_recorded_once_at_a_time(host: Host) -> None:
    host.poll(20, 0)
    host.take(1, pids=(20,))
    host.poll(20, 5)
    second = host.take(6, id="c2", pids=(20,))
    assert second.outcome.problem == "process 20 is being recorded already, by capture c1"
    assert host.poll(20, 10) == ""


def test_a_process_that_profiles_itself_is_left_alone(host: Host) -> None:
    host.poll(20, 0, free=False)
    assert "process 20 is profiling itself" in str(host.take(1, pids=(20,)).outcome.problem)
    host.poll(21, 0)
    capture = host.take(1, id="c2", pids=(21,))
    assert host.poll(21, 5, free=False) == ""
    assert "process 21 is profiling itself" in str(capture.outcome.problem)


def test_only_the_agents_own_user_is_answered(host: Host) -> None:
    host.take(0)
    assert host.poll(20, 1, uid=OTHER) == ""
    assert host.poll(20, 1, uid=ROOT) == ""
    assert host.coordinator.refused == 2
    assert host.poll(21, 1, uid=ME)


def test_roots_agent_answers_everybody(tmp_path: Path) -> None:
    host = Host(tmp_path, uid=ROOT)
    host.start(20)
    host.take(0)
    assert host.poll(20, 1, uid=OTHER)


def test_a_sender_outside_of_our_processes_is_not_answered(host: Host) -> None:
    host.take(0)
    assert host.poll(0, 1) == ""
    assert host.poll(12345, 1) == ""


def test_an_answer_that_was_not_heard_is_given_again(host: Host) -> None:
    host.poll(20, 0)
    host.take(1, pids=(20,), iterations=2)
    first = host.poll(20, 5)
    host.coordinator.unheard(20)
    assert host.poll(20, 10) == first


def test_the_same_order_again_is_the_same_capture(host: Host) -> None:
    assert host.take(0) is host.take(1)


@pytest.mark.parametrize(
    ("document", "named"),
    [
        ({"id": "c1"}, "duration_ms or iterations"),
        ({"id": "c1", "duration_ms": 5, "iterations": 5}, "duration_ms or iterations"),
        ({"id": "../x", "duration_ms": 5}, "id"),
        ({"id": "c1", "duration_ms": 60_001}, "duration_ms"),
        ({"id": "c1", "iterations": 0}, "iterations"),
        ({"id": "c1", "iterations": 3, "pids": [-1]}, "pids"),
        ({"id": "c1", "iterations": 3, "pids": list(range(1, 1026))}, "pids"),
        ({"id": "c1", "iterations": 3, "ACTIVITIES_LOG_FILE": "/etc/passwd"}, "ACTIVITIES_LOG_FILE"),
        ({"id": "c1", "iterations": "3\nACTIVITIES_LOG_FILE=/etc/passwd"}, "iterations"),
    ],
)
def test_an_order_that_cannot_be_is_refused_by_field(document: dict[str, Any], named: str) -> None:
    with pytest.raises(Refused, match="not an order for a capture") as refused:
        read_order(document)
    assert named in str(refused.value)
