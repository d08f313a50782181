"""Telemetry: stored once, as a whole, by the host's own times; hosts and devices as they report."""

from __future__ import annotations

import asyncio
import concurrent.futures
import gzip
import json
import time
from typing import Any

import pytest

from agent.counters import Windows
from agent.pushes import telemetry
from agent.sampler.sample import DeviceSample, Process
from app.db import Database
from app.settings import Settings
from app.telemetry.retention import expire
from tests.app.conftest import Service, a_service, a_token
from tests.cases import load, load_input

UUID = "GPU-155555554-0000-4000-8000-000000000014"
T0 = 1_764_500_000  # 2025-11-30T10:53:20Z


def push(service: Service, body: Any, key: str | None = None, **headers: str) -> Any:
    keyed = {"Idempotency-Key": key} if key else {}
    return service.post("/telemetry", json=body, headers={**keyed, **headers})


def rows(service: Service, device: str = UUID, **asked: Any) -> list[dict[str, Any]]:
    answer = service.get(f"/devices/{device}/telemetry", params=asked)
    assert answer.status_code == 200, answer.text
    return list(answer.json()["items"])


def sample(t: Any, uuid: str = UUID, **fields: Any) -> dict[str, Any]:
    return {"uuid": uuid, "t": t, **fields}


def window(start: Any, end: Any, uuid: str = UUID, **fields: Any) -> dict[str, Any]:
    return {"uuid": uuid, "t_start": start, "t_end": end, **fields}


def test_a_stranger_is_refused(service: Service) -> None:
    assert service.client.post("/api/v1/telemetry", json={"windows": []}).status_code == 401


def test_case_93(service: Service) -> None:
    """The same push twice, overlapping pushes, a key with another body, and eight at once."""
    expect = load("93-same-push-twice")["expect"]
    sequence = load_input("93-same-push-twice")["sequence"]
    bodies: dict[str, Any] = {}
    for step, statuses in zip(sequence, expect["status"], strict=True):
        body = bodies[step["key"]] if step["body"] == "same" else step["body"]
        bodies.setdefault(step["key"], body)
        if "parallel" not in step:
            assert push(service, body, step["key"]).status_code in statuses
            continue
        with concurrent.futures.ThreadPoolExecutor(step["parallel"]) as pool:
            sent = [pool.submit(push, service, body, step["key"]) for _ in range(step["parallel"])]
        assert {s.result().status_code for s in sent} <= {200, 201, 202, 208}
    stored = [(r["t_start"], r["fields"]["util"]) for r in rows(service)]
    wanted = [(f"2025-11-30T10:53:{t - T0 + 20}.000000Z", util) for t, util in expect["rows"]]
    assert stored == wanted
    assert sum(util for _, util in stored) / len(stored) == expect["avg_util"]


def test_case_96_a_clock_90_s_ahead(service: Service) -> None:
    """Its samples are kept by its own times; the answer, the host and the device tell."""
    expect = load("96-full-disk-and-wrong-clock")["expect"]
    body = {"agent_time": time.time() + 90, "host": "gpu-7", "samples": [sample(T0 + 90, util=50)]}
    answer = push(service, {**body, "dropped": {"telemetry": 5, "trace": 0}}).json()
    assert [f["code"] for f in answer["flags"]] == expect["flags"]
    assert answer["flags"][0]["value"] == pytest.approx(expect["clock_skew_s"], abs=3)
    assert answer["skew_s"] == pytest.approx(-expect["clock_skew_s"], abs=3), "receive less send"
    assert "ahead" in answer["flags"][0]["detail"]
    assert [r["t_start"] for r in rows(service)] == ["2025-11-30T10:54:50.000000Z"]
    [host] = service.get("/hosts").json()["items"]
    assert host["dropped"] == expect["dropped_reported"]
    [device] = service.get("/devices").json()["items"]
    assert host["flags"] == device["flags"] == answer["flags"]
    fleet = service.get("/fleet").json()
    assert (fleet["skewed_hosts"], fleet["dropped"]) == (1, {"telemetry": 5, "trace": 0})


@pytest.mark.parametrize(("ahead", "flagged"), [(-4.0, False), (3.0, False), (-8.0, True), (8.0, True)])
def test_five_seconds_are_no_skew(service: Service, ahead: float, flagged: bool) -> None:
    answer = push(service, {"windows": []}, **{"Rooflight-Sent-At": str(time.time() + ahead)}).json()
    assert bool(answer["flags"]) == flagged
    assert push(service, {"windows": []}).json()["skew_s"] is None


def test_what_differs_from_try_to_try_is_no_other_body(service: Service) -> None:
    """A second try tells another time and more drops; what the first told is counted, once."""
    body = {"host": "gpu-7", "windows": [window(T0, T0 + 10)]}
    first = push(service, {"agent_time": T0, "dropped": {"trace": 1}, **body}, "k")
    second = push(service, {"agent_time": T0 + 5, "dropped": {"trace": 3}, **body}, "k")
    assert (first.status_code, second.status_code) == (201, 200)
    assert first.json() == second.json()
    assert second.json()["dropped"] == {"trace": 1}
    push(service, {"dropped": {"trace": 2, "profile": 1}, **body}, "k2")
    [host] = service.get("/hosts").json()["items"]
    assert host["dropped"] == {"trace": 3, "profile": 1}


def test_nobody_to_count_drops_for_counts_none(service: Service) -> None:
    assert push(service, {"dropped": {"trace": 1}, "windows": []}).json()["dropped"] == {}


def test_times_as_in_case_91(service: Service) -> None:
    """01:30+01:00 is 00:30 UTC; 03:30+02:00 is 01:30; 20:15-05:00 of the day before is 01:15."""
    given = [
        (1, "2026-03-29T01:30:00+01:00"),
        (2, "2026-03-29T03:30:00+02:00"),
        (3, "2026-03-29T00:45:00Z"),
        (4, 1774745400),
        (5, "2026-03-28T20:15:00-05:00"),
    ]
    answer = push(service, {"samples": [sample(t, id=i) for i, t in given]})
    assert (answer.status_code, answer.json()["added"]) == (201, 5)
    assert [(r["fields"]["id"], r["t_start"][11:19]) for r in rows(service)] == [
        *((1, "00:30:00"), (3, "00:45:00"), (4, "00:50:00"), (5, "01:15:00"), (2, "01:30:00")),
    ]
    hour = rows(service, since="2026-03-29T00:00:00Z", until="2026-03-29T01:00:00Z")
    assert len(hour) == 3
    naive = push(service, {"samples": [sample("2026-03-29 01:30:00", id=6)]})
    assert (naive.status_code, naive.json()["where"]) == (422, "samples[0].t")
    assert "time zone" in naive.json()["detail"]


BAD = [
    ('{"windows": [WINDOW, {"uuid": "a", "t_start": 1, "t_end": 2, "power_w": {"mean": NaN}}]}', 422),
    ('{"windows": [WINDOW, {"uuid": "a", "t_start": 1, "t_end": 2, "power_w": {"mean": -Infinity}}]}', 422),
    ('{"windows": [WINDOW, {"uuid": "a", "t_start": 1, "t_end": 2, "power_w": {"mean": 1e999}}]}', 422),
    ('{"windows": [WINDOW, {"uuid": "a", "t_start": 1, "t_end": 2, "power_w": {"mean": "5"}}]}', 422),
]


@pytest.mark.parametrize(("text", "status"), BAD)
def test_a_number_that_is_none_is_named_and_nothing_is_stored(
    service: Service, text: str, status: int
) -> None:
    good = json.dumps(window(T0, T0 + 1, power_w={"mean": 1}))
    headers = {"Content-Type": "application/json"}
    answer = service.post("/telemetry", content=text.replace("WINDOW", good), headers=headers)
    assert (answer.status_code, answer.json()["where"]) == (status, "windows[1].power_w.mean")
    assert service.get("/devices").json()["items"] == []


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ({"windows": [{"t_start": 1, "t_end": 2}]}, "windows[0].uuid"),
        ({"windows": [window(1, 2, uuid="  ")]}, "windows[0].uuid"),
        ({"windows": [window(1, 2, uuid="x" * 201)]}, "windows[0].uuid"),
        ({"windows": [window(2, 1)]}, "windows[0].t_end"),
        ({"windows": [window(None, 1)]}, "windows[0].t_start"),
        ({"windows": [window(True, 1)]}, "windows[0].t_start"),
        ({"windows": [window(1, 253_402_300_800)]}, "windows[0].t_end"),
        ({"windows": [window(1, 2, a={"p99": 1})]}, "windows[0].a.p99"),
        ({"windows": [window(1, 2, state=5)]}, "windows[0].state"),
        ({"samples": [sample(-1)]}, "samples[0].t"),
        ({"samples": [sample(1, a=2**63)]}, "samples[0].a"),
        ({"samples": ["x"]}, "samples[0]"),
        ({"samples": 5}, "samples"),
        ({"samples": [], "dropped": {"trace": -1}}, "dropped.trace"),
        ({"samples": [], "dropped": {"cats": 1}}, "dropped"),
        ({"samples": [], "agent_time": "2026-01-01 00:00:00"}, "agent_time"),
        ({}, "the body"),
        ([], "the body"),
    ],
)
def test_what_is_not_valid_is_named(service: Service, body: Any, where: str) -> None:
    answer = push(service, body)
    assert (answer.status_code, answer.json()["where"]) == (422, where)


def test_more_than_one_push_may_hold_is_413(service: Service) -> None:
    many = [window(T0 + i, T0 + i + 1) for i in range(10_001)]
    assert push(service, {"windows": many}).status_code == 413
    answer = push(service, {"windows": many[:10_000]})
    assert (answer.status_code, answer.json()["added"]) == (201, 10_000)
    devices = [window(T0, T0 + 1, uuid=f"GPU-{i}") for i in range(1_001)]
    assert push(service, {"windows": devices}).status_code == 413


def test_a_compressed_body_is_inflated_to_the_limit_and_no_further(service: Service) -> None:
    body = json.dumps({"windows": [window(T0, T0 + 1)]}).encode()
    for content, encoding, status in (
        (gzip.compress(body), "gzip", 201),
        (gzip.compress(body)[:-3], "gzip", 400),
        (gzip.compress(body) + b"more", "gzip", 400),
        (body, "gzip", 400),
        (gzip.compress(b" " * (service.settings.body_bytes + 1)), "gzip", 413),
        (body, "br", 415),
        (body, "identity", 201),
    ):
        answer = service.post("/telemetry", content=content, headers={"Content-Encoding": encoding})
        assert answer.status_code == status, (encoding, answer.text)
        assert answer.headers["content-type"].startswith("application/"), answer.text


def test_a_sender_that_is_too_new_is_told_so(service: Service) -> None:
    answer = push(service, {"windows": []}, **{"Rooflight-Schema": "99"})
    assert answer.status_code == 426
    assert "upgrade the server" in answer.json()["detail"]
    assert push(service, {"windows": []}, **{"Rooflight-Schema": "1"}).status_code == 201


def test_what_an_outage_kept_says_nothing_of_now(service: Service) -> None:
    at = {"host": "gpu-7"}
    push(service, {**at, "windows": [window(T0 + 60, T0 + 70, state="lost", name="H100")]})
    push(service, {**at, "windows": [window(T0, T0 + 10, state="ok")]})
    [device] = service.get("/devices").json()["items"]
    assert (device["state"], device["name"], device["host"]) == ("lost", "H100", "gpu-7")
    assert device["latest"] == "2025-11-30T10:54:30.000000Z"
    assert service.get("/fleet").json()["states"] == {"lost": 1}


def test_lists_have_pages(service: Service) -> None:
    for host in "abc":
        uuids = [f"GPU-{host}{i}" for i in range(2)]
        push(service, {"host": host, "windows": [window(T0, T0 + 1, uuid=u) for u in uuids]})
    for path, field, all_of_them in (
        ("/hosts", "name", ["a", "b", "c"]),
        ("/devices", "uuid", ["GPU-a0", "GPU-a1", "GPU-b0", "GPU-b1", "GPU-c0", "GPU-c1"]),
    ):
        seen, cursor = [], None
        while page := service.get(path, params={"limit": 2, **({"cursor": cursor} if cursor else {})}).json():
            seen += [item[field] for item in page["items"]]
            cursor = page["next_cursor"]
            if cursor is None:
                break
        assert seen == all_of_them
    assert [d["uuid"] for d in service.get("/devices", params={"host": "b"}).json()["items"]] == [
        *("GPU-b0", "GPU-b1"),
    ]
    assert service.get("/hosts", params={"cursor": "x"}).status_code == 422


def test_telemetry_has_pages_and_a_span(service: Service) -> None:
    given = [window(T0 + i, T0 + i + 2) for i in range(5)]
    push(service, {"windows": given, "samples": [sample(T0 + 2), sample(T0 + 9)]})
    whole = rows(service)
    assert len(whole) == 7
    seen, cursor = [], None
    for _ in range(4):
        asked = {"limit": 2, **({"cursor": cursor} if cursor else {})}
        page = service.get(f"/devices/{UUID}/telemetry", params=asked).json()
        seen += page["items"]
        cursor = page["next_cursor"]
    assert seen == whole
    assert cursor is None
    # [2, 4) is touched by the windows that start at 1, 2 and 3, and by the sample at 2.
    starts = [r["t_start"][17:19] for r in rows(service, since=T0 + 2, until=T0 + 4)]
    assert starts == ["21", "22", "22", "23"]


def test_big_integers_come_back_exactly(service: Service) -> None:
    push(service, {"samples": [sample(T0, energy_mj=2**63 - 1, mem=2**53 - 1, deep=[{"a": -(2**60)}])]})
    [row] = rows(service)
    assert row["fields"] == {"energy_mj": str(2**63 - 1), "mem": 2**53 - 1, "deep": [{"a": str(-(2**60))}]}


def test_names_are_data(service: Service) -> None:
    odd = "MIG-GPU-1/2/0 <b>é\u2028"
    push(service, {"host": "a\0<script>", "windows": [window(T0, T0 + 1, uuid=odd, name="x\0y")]})
    [device] = service.get("/devices").json()["items"]
    assert (device["uuid"], device["host"], device["name"]) == (odd, "a<script>", "xy")
    assert len(rows(service, device["id"])) == 1
    assert len(rows(service, "MIG-GPU-1%2F2%2F0%20%3Cb%3E%C3%A9%E2%80%A8")) == 1
    assert service.get("/devices/none/telemetry").status_code == 404


def test_a_project_sees_its_own_and_those_of_all(service: Service) -> None:
    own, other = (service.post("/projects", json={"name": n}).json()["id"] for n in ("own", "other"))
    tokens = {p: {"Authorization": f"Bearer {a_token(service.settings, project_id=p)}"} for p in (own, other)}
    for headers, uuid in ((service.auth, "shared"), (tokens[own], "mine"), (tokens[other], "theirs")):
        body = {"host": uuid, "windows": [window(T0, T0 + 1, uuid=uuid)]}
        assert service.client.post("/api/v1/telemetry", json=body, headers=headers).status_code == 201

    def get(path: str) -> Any:
        return service.client.get(f"/api/v1{path}", headers=tokens[own])

    assert [d["uuid"] for d in get("/devices").json()["items"]] == ["mine", "shared"]
    assert [h["name"] for h in get("/hosts").json()["items"]] == ["mine", "shared"]
    assert get("/fleet").json()["devices"] == 2
    assert get("/devices/theirs/telemetry").status_code == 404


def test_telemetry_is_kept_for_so_many_days(service: Service) -> None:
    """Of three windows one ended a second over two days ago, one two days ago, one is of today."""
    day = 86_400
    for start in (T0 - 2 * day - 11, T0 - 2 * day - 10, T0 - 10):
        push(service, {"windows": [window(start, start + 10, util={"mean": 1})]})

    async def act(days: float) -> int:
        database = Database(service.settings.url, pooled=False)
        try:
            return await expire(database, days, T0)
        finally:
            await database.close()

    assert asyncio.run(act(2)) == 1
    assert [r["t_end"] for r in rows(service)] == [
        "2025-11-28T10:53:20.000000Z",
        "2025-11-30T10:53:20.000000Z",
    ]
    assert asyncio.run(act(2)) == 0
    assert asyncio.run(act(1)) == 1


def test_old_telemetry_goes_when_the_service_starts(settings: Settings) -> None:
    now = int(time.time())
    old = now - 91 * 86_400
    with a_service(settings) as first:
        push(first, {"windows": [window(old, old + 10), window(now - 20, now - 10)]})
        assert len(rows(first)) == 2
    with a_service(settings) as second:
        until = time.monotonic() + 30
        while len(rows(second)) == 2 and time.monotonic() < until:
            time.sleep(0.05)
        assert len(rows(second)) == 1
    with a_service(settings.model_copy(update={"telemetry_days": 0})) as third:
        assert len(rows(third)) == 1


def test_a_window_of_the_agent_comes_back_as_it_was_sent(service: Service) -> None:
    """All that the agent measures, with the processes on the device and what limited its clocks."""
    rates = {"nvlink_tx_bytes_per_s": 400_000_000_000, "sm_active": 0.81, "ecc_corrected_aggregate": 2}
    sample_ = DeviceSample(UUID, float(T0), 0, throttle=0x4, power_w=301.5, energy_mj=2**53 + 1, **rates)
    sample_.processes = [Process(77, "train", 2**30, None, 1000, "user", T0 - 5.5)]
    windows = Windows()
    windows.add([sample_, DeviceSample("GPU-without", float(T0), 1)])
    made = windows.take()
    assert service.post("/telemetry", content=telemetry(made, host="h")).status_code == 201
    [row] = rows(service)
    identity = ("uuid", "t_start", "t_end")
    assert row["fields"] == {name: value for name, value in made[0].items() if name not in identity}
    assert row["fields"]["processes"][0]["user"] == "user"
    assert row["fields"]["throttled_by"] == ["power cap"]
    assert row["fields"]["sm_active"] == {"min": 0.81, "mean": 0.81, "max": 0.81, "last": 0.81}
