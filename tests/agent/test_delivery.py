"""What is sent again and when, and what becomes of a batch that is not taken."""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agent.batch import Address
from agent.delivery import PROBE_S, Verdict, verdict_of
from agent.pushes import addressed, halved, telemetry
from rooflight.client import Rejected, Unreachable
from tests.agent.simulated import Answer, Asked, World, windows
from tests.cases import load as load_case
from tests.cases import load_input

GONE = ConnectionRefusedError(111, "Connection refused")


class Script:
    """The server of the case: what it says to each batch, in turn."""

    def __init__(self, plan: dict[str, list[Any]], renewed: str) -> None:
        self.plan, self.renewed = plan, renewed
        self.turns: Counter[str] = Counter()
        self.delivered: list[str] = []
        self.world: World
        self.back_at: float | None = None

    def __call__(self, asked: Asked) -> Answer:
        batch = asked.key.partition("/")[0]
        if batch not in self.plan:  # the probe, which is of no batch
            return (201, {}) if self.world.settings.token == self.renewed else (401, {"title": "no"})
        turn = self.plan[batch][min(self.turns[batch], len(self.plan[batch]) - 1)]
        if turn == "connection refused for 3600 s":
            self.back_at = self.back_at or asked.t + 3600
            if asked.t < self.back_at:
                raise GONE
            turn = 200
        self.turns[batch] += 1
        return self.say(asked, turn)

    def say(self, asked: Asked, turn: Any) -> Answer:
        if turn == "timeout":
            raise TimeoutError("timed out")
        if turn == "token renewed after 150 s":
            turn = 200
        if turn == 401 or (asked.key == "b5" and self.world.settings.token != self.renewed):
            return 401, {"title": "the token is not valid"}
        if turn == "then each half: 200":
            turn = 200
        if isinstance(turn, dict):
            return turn["status"], {}, turn.get("Retry-After")
        if turn == 200:
            self.delivered.append(asked.key)
        return turn, {}


def case_95(tmp_path: Path, seed: int) -> tuple[World, Script, float]:
    """The case played to its end; when the token was renewed."""
    given = load_input("95-what-to-retry")
    script = Script(given["server"], "rfl_new_1")
    world = World(tmp_path, script, random.Random(seed).random)
    script.world = world
    for batch in given["batches"]:
        world.spool.put("telemetry", windows(4), batch)
    while not world.requests("b5"):
        world.run(world.now + 1e-9)
    renewed_at = world.requests("b5")[0].t + 150
    world.run(renewed_at)
    world.renew("rfl_new_1")
    world.run(renewed_at + 4200)
    return world, script, renewed_at


@pytest.mark.parametrize("seed", range(5))
def test_case_95(tmp_path: Path, seed: int) -> None:
    expect = load_case("95-what-to-retry")["expect"]
    world, script, renewed_at = case_95(tmp_path, seed)
    assert script.delivered == expect["delivered"]
    names = world.spool.quarantined.names()
    assert len(names) == len(expect["quarantined"]) == 1
    assert b'"key":"b2"' in (world.spool.quarantined.folder / names[0]).read_bytes()
    for batch, requests in expect["requests"].items():
        assert len(world.requests(batch)) == requests, batch
    third, fourth = world.requests("b1")[2:]
    assert fourth.t - third.t >= expect["b1_wait_before_4th_request_s_min"]
    assert len({asked.key for asked in world.requests("b1")}) == expect["b1_idempotency_keys_distinct"]
    assert world.requests("b4")[0].t == world.requests("b2")[0].t, "b4 does not wait for b2"
    since = world.asked.index(world.requests("b5")[0])
    during = [a for a in world.asked[since:] if a.t < renewed_at]
    assert len(during) <= expect["b5_requests_in_150_s_max"]
    assert [a.key for a in during if b"uuid" in a.body] == ["b5"], "one body, then probes"
    assert len(world.requests("b6")) <= expect["b6_requests_max"]
    assert max(world.waits) <= expect["b6_wait_cap_s"]
    assert len(world.spool) == 0


def test_case_95_two_agents_retry_at_different_moments(tmp_path: Path) -> None:
    moments = [{a.t for a in case_95(tmp_path / str(seed), seed)[0].requests("b6")[1:]} for seed in (1, 2)]
    assert not moments[0] & moments[1]


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        *((Rejected(s, ""), Verdict.RETRY) for s in (408, 425, 429, 500, 502, 503, 504)),
        *((Rejected(s, ""), Verdict.APART) for s in (400, 404, 405, 409, 415, 422, 501, 507)),
        *((Rejected(s, ""), Verdict.STOP) for s in (301, 308, 401, 403, 426)),
        (Rejected(413, ""), Verdict.SPLIT),
        (Unreachable("no answer"), Verdict.RETRY),
    ],
)
def test_what_a_no_means(error: Any, verdict: Verdict) -> None:
    assert verdict_of(error) is verdict


def test_the_same_bytes_under_the_same_key_after_a_restart(tmp_path: Path) -> None:
    def answer(asked: Asked) -> Answer:
        if world.now < 100:
            raise TimeoutError("timed out")
        return 201, {}

    world = World(tmp_path, answer, lambda: 1.0)
    world.spool.put("telemetry", windows(2), "k")
    world.run(50)
    world.crash()
    world.run(200)
    assert {a.key for a in world.asked} == {"k"}
    assert len(world.asked) > 5
    rows = {json.dumps(a.told["windows"]) for a in world.asked}
    times = {a.told["agent_time"] for a in world.asked}
    assert len(rows) == 1
    assert times == {world.epoch + a.t for a in world.asked}, "each try tells when it was sent"


def test_a_quarter_of_an_hour_of_retry_after_is_waited_for(tmp_path: Path) -> None:
    answers: list[Answer] = [(503, {}, 900.0), (201, {})]
    world = World(tmp_path, lambda _: answers.pop(0), lambda: 0.0)
    world.spool.put("telemetry", windows(1), "k")
    world.run(1000)
    assert [a.t for a in world.asked] == [0.0, 900.0]


def test_too_large_is_halved_down_to_one_window_which_is_set_apart(tmp_path: Path) -> None:
    def answer(asked: Asked) -> Answer:
        return (413, {}) if len(asked.told["windows"]) > 1 or "one" in asked.key else (201, {})

    world = World(tmp_path, answer, lambda: 1.0)
    world.spool.put("telemetry", windows(3), "three")
    world.spool.put("telemetry", windows(1), "one")
    world.spool.put("profile", b'{"kernels": []}', "one profile", address=Address(run_id="r"))
    world.answer = lambda a: (413, {}) if a.key == "one profile" else answer(a)
    world.run(10)
    assert [a.key for a in world.asked] == [
        *("three", "three/1", "three/2", "three/2/1", "three/2/2"),
        *("one", "one profile"),
    ]
    reasons = [world.spool.quarantined.reason(n) for n in world.spool.quarantined.names()]
    assert [r and r.status for r in reasons] == [413, 413]


def test_a_wrong_token_is_probed_without_data_once_a_minute(tmp_path: Path) -> None:
    world = World(tmp_path, lambda _: (401, {"title": "no"}), lambda: 1.0)
    for i in range(10):
        world.spool.put("telemetry", windows(1), f"k{i}")
    world.run(3600)
    assert [a.t for a in world.asked] == [PROBE_S * i for i in range(60)]
    assert [a.key for a in world.asked if b"uuid" in a.body] == ["k0"]
    assert world.delivery.stopped
    assert len(world.notes) == 1, "told once, not each minute"
    world.answer = lambda _: (201, {})
    world.renew("rfl_c_d")
    world.run(3610)
    assert len(world.spool) == 0


def test_what_one_token_may_not_send_lets_the_rest_pass(tmp_path: Path) -> None:
    def answer(asked: Asked) -> Answer:
        forbidden = "/runs/theirs/" in asked.target and world.settings.token == "rfl_a_b"
        return (403, {"title": "another project's"}) if forbidden else (201, {})

    world = World(tmp_path, answer, lambda: 1.0)
    world.spool.put("profile", b"{}", "p", address=Address(run_id="theirs"))
    world.spool.put("telemetry", windows(1), "t")
    world.run(300)
    assert [b.key for b in world.spool.batches()] == ["p"]
    assert len(world.requests("p")) == 2
    world.renew("rfl_c_d")
    world.run(310)
    assert len(world.spool) == 0


def test_a_batch_that_the_server_fails_on_does_not_hold_up_the_rest(tmp_path: Path) -> None:
    world = World(tmp_path, lambda a: (500, {}) if a.key == "bad" else (201, {}), lambda: 1.0)
    world.spool.put("telemetry", windows(1), "bad")
    world.spool.put("telemetry", windows(1), "good")
    world.run(60)  # 1 + 2 + 4 + 8 + 16 s, then the good one
    assert [b.key for b in world.spool.batches()] == ["bad"]
    world.answer = lambda _: (201, {})
    world.run(600)
    assert len(world.spool) == 0


def test_an_older_server_is_named_and_nothing_is_lost(tmp_path: Path) -> None:
    title = "this agent speaks schema 2, the server 1: upgrade the server"
    world = World(tmp_path, lambda _: (426, {"title": title}), lambda: 1.0)
    world.spool.put("telemetry", windows(1), "k")
    world.run(600)
    assert [note for note in world.notes if title in note] == world.notes[:1]
    world.answer = lambda _: (201, {})
    world.run(700)
    assert len(world.spool) == 0


def test_a_profile_makes_its_run_once_however_often_it_is_tried(tmp_path: Path) -> None:
    """The first try makes project and run and then loses the connection."""
    projects: set[str] = set()
    runs: dict[str, str] = {}
    lost = [True]

    def answer(asked: Asked) -> Answer:
        if asked.target == "/projects":
            projects.add(asked.told["name"])
            return 201, {"id": "p", "name": asked.told["name"]}
        if asked.target.endswith("/runs"):
            if not projects:
                return 404, {"title": "no such project"}
            return 201, {"id": runs.setdefault(asked.key, f"r{len(runs)}")}
        if lost and lost.pop():
            raise ConnectionResetError(104, "Connection reset by peer")
        return 201, {}

    world = World(tmp_path, answer, lambda: 1.0)
    at = Address(project="vision", run="nightly", host="gpu-7")
    world.spool.put("profile", b'{"kernels": []}', "k", address=at)
    trace = tmp_path / "t.json"
    trace.write_bytes(b'{"traceEvents": []}')
    world.spool.put("trace", trace, "t", address=Address(run_id="r0", filename="mine.json"))
    sha, whole = hashlib.sha256(trace.read_bytes()).hexdigest(), {"offset": 19, "job": {"id": "j"}}
    arrived = {"GET": (200, {"offset": 0, "job": None}), "PUT": (202, whole)}
    world.answer = lambda a: arrived[a.method] if "/traces" in a.target else answer(a)
    world.run(60)
    assert runs == {"k/run": "r0"}
    sent = [a for a in world.asked if a.target == "/runs/r0/profiles"]
    assert [(a.key, a.body) for a in sent] == [("k", b'{"kernels": []}')] * 2
    # 19 bytes are one part.
    assert world.asked[-1].target == f"/runs/r0/traces/parts/{sha}?offset=0&size=19&filename=mine.json"
    assert world.asked[-1].body == trace.read_bytes()
    assert len(world.spool) == 0


def test_a_body_that_the_disk_changed_is_set_apart(tmp_path: Path) -> None:
    world = World(tmp_path, lambda _: (201, {}), lambda: 1.0)
    world.spool.put("telemetry", windows(1), "a")
    world.spool.put("telemetry", windows(1), "b")
    path = world.spool.batches()[0].path
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    world.run(10)
    assert [a.key for a in world.asked] == ["b"]
    assert len(world.spool.quarantined.names()) == 1


def test_settings_that_cannot_be_used_cost_nothing(tmp_path: Path) -> None:
    world = World(tmp_path, lambda _: (201, {}), lambda: 1.0)
    good = world.settings
    world.settings = type(good)("ftp://x", None, "default", tmp_path)
    world.spool.put("telemetry", windows(1), "k")
    world.run(100)
    assert len(world.notes) == 1
    assert "not the address of a server" in world.notes[0]
    world.settings = good
    world.run(110)
    assert len(world.spool) == 0


def test_what_was_dropped_is_told_and_forgotten_when_counted(tmp_path: Path) -> None:
    told: list[dict[str, int]] = []

    def answer(asked: Asked) -> Answer:
        told.append(asked.told["dropped"])
        # The first answer is of a try whose answer was lost: it had told of one less.
        return 201, {"added": 1, "dropped": {"telemetry": 1}} if len(told) == 1 else {"added": 1}

    world = World(tmp_path, answer, lambda: 1.0, limit_bytes=len(windows(1)) * 2)
    for i in range(4):
        world.spool.put("telemetry", windows(1), f"k{i}")
    world.run(10)
    assert [t["telemetry"] for t in told] == [2, 1]
    assert set(world.spool.dropped().values()) == {0}


def test_bodies() -> None:
    body = telemetry([{"uuid": "GPU-1", "t_start": 1.0}, {"uuid": None}], host="gpu-7")
    assert json.loads(body) == {"host": "gpu-7", "windows": [{"uuid": "GPU-1", "t_start": 1.0}]}
    assert json.loads(addressed(body, 12.5, {"telemetry": 3})) == {
        "agent_time": 12.5,
        "dropped": {"telemetry": 3},
        "host": "gpu-7",
        "windows": [{"uuid": "GPU-1", "t_start": 1.0}],
    }
    assert json.loads(addressed(b"{ }", 1.0, {})) == {"agent_time": 1.0, "dropped": {}}
    three = telemetry([{"uuid": u} for u in "abc"])
    halves = halved(three)
    assert halves is not None
    assert [[w["uuid"] for w in json.loads(h)["windows"]] for h in halves] == [["a"], ["b", "c"]]
    assert halved(telemetry([{"uuid": "a"}])) is None
    assert halved(b"no JSON") is None
