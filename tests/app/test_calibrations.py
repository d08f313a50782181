"""Measured ceilings: stored in UTC, found by device, seen by whom they concern."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.app.conftest import Service, a_token

CPU = {
    "device": "AMD EPYC 9654",
    "kind": "cpu",
    "measured_at": "2026-03-29T01:30:00+01:00",
    "gemm_tflops": {"fp32": 1.5},
    "stream_gbs": 210.0,
    "software": {"torch": "2.13.0"},
}


def add(service: Service, **changes: Any) -> Any:
    return service.post("/calibrations", json={**CPU, **changes})


def test_what_was_measured_is_answered(service: Service) -> None:
    answer = add(service)
    assert answer.status_code == 201, answer.text
    [seen] = service.get("/calibrations").json()["items"]
    assert {k: seen[k] for k in CPU} == CPU
    assert seen["created_at"].endswith("Z")


def test_order_is_by_instant_not_by_text(service: Service) -> None:
    """01:30+01:00 is 00:30 UTC; 03:30+02:00 is 01:30; 20:15-05:00 of the day before is 01:15."""
    times = ["2026-03-29T01:30:00+01:00", "2026-03-29T03:30:00+02:00", "2026-03-28T20:15:00-05:00"]
    for time in times:
        add(service, measured_at=time)
    seen = [c["measured_at"] for c in service.get("/calibrations").json()["items"]]
    assert seen == [times[1], times[2], times[0]]


def test_a_time_in_the_future_is_422(service: Service) -> None:
    """It would stay the newest for ever; a clock that is an hour ahead is no reason to refuse."""
    answer = add(service, measured_at="9999-01-01T00:00:00Z")
    assert (answer.status_code, answer.json()["where"]) == (422, "body.measured_at")
    assert "in the future" in answer.json()["detail"]
    ahead = datetime.now(UTC) + timedelta(hours=1)
    assert add(service, measured_at=ahead.isoformat()).status_code == 201


@pytest.mark.parametrize(
    "time",
    [
        "2026-03-29 01:30:00",
        "2026-03-29T01:30:00",
        "yesterday",
        "",
        "2026-13-01T00:00:00Z",
        "0001-01-01T00:00:00+23:59",
        "9999-12-31T23:59:59-01:00",
    ],
)
def test_a_time_without_its_zone_is_422(service: Service, time: str) -> None:
    answer = add(service, measured_at=time)
    assert answer.status_code == 422
    assert answer.json()["where"] == "body.measured_at"
    if time.startswith("2026-03"):
        assert "time zone" in answer.json()["detail"]


@pytest.mark.parametrize("rate", ["NaN", "Infinity", "-1", "0", "1e-300", "1e999", '"fast"'])
def test_a_rate_that_is_none_is_422(service: Service, rate: str) -> None:
    body = json.dumps({**CPU, "stream_gbs": "HERE"}).replace('"HERE"', rate)
    headers = {"Content-Type": "application/json"}
    answer = service.post("/calibrations", content=body, headers=headers)
    assert answer.status_code == 422
    assert "stream_gbs" in answer.json()["where"]


def test_one_device_in_other_spelling_is_one(service: Service) -> None:
    add(service)
    assert len(service.get("/calibrations", params={"device": "amd  epyc 9654"}).json()["items"]) == 1
    assert service.get("/calibrations", params={"device": "EPYC"}).json()["items"] == []


def test_a_project_sees_its_own_and_those_of_all(service: Service) -> None:
    own, other = (service.post("/projects", json={"name": n}).json()["id"] for n in ("own", "other"))
    tokens = {p: {"Authorization": f"Bearer {a_token(service.settings, project_id=p)}"} for p in (own, other)}
    for headers, device in ((service.auth, "shared"), (tokens[own], "mine"), (tokens[other], "theirs")):
        body = {**CPU, "device": device}
        assert service.client.post("/api/v1/calibrations", json=body, headers=headers).status_code == 201
    seen = service.client.get("/api/v1/calibrations", headers=tokens[own]).json()["items"]
    assert {c["device"] for c in seen} == {"shared", "mine"}


SURE = {
    "confidence": "medium",
    "confidence_reasons": ["stream: samples scatter by 7 %"],
    "streams_gbs": {"triad": 210.0, "copy": 200.0, "read": 230.0},
    "link_gbs": {"h2d": 24.0},
    "p2p_gbs": {"GPU-2": 20.0},
    "samples": {"stream": 40},
    "clocks_mhz": {"sm": {"min": 1410.0, "median": 1695.0, "max": 1980.0}},
}


def test_how_sure_it_is_comes_back(service: Service) -> None:
    assert add(service, **SURE).status_code == 201
    add(service, device="one that does not tell")
    seen = {c["device"]: c for c in service.get("/calibrations").json()["items"]}
    assert {k: seen[CPU["device"]][k] for k in SURE} == SURE
    assert seen["one that does not tell"]["confidence"] is None


@pytest.mark.parametrize(
    "change",
    [
        {"confidence": "certain"},
        {"samples": {"stream": -1}},
        {"p2p_gbs": {"GPU-2": 0}},
        {"clocks_mhz": {"sm": {"min": 1.0, "median": 2.0}}},
        {"confidence_reasons": ["why"] * 257},
    ],
)
def test_what_says_nothing_of_certainty_is_422(service: Service, change: dict[str, Any]) -> None:
    answer = add(service, **change)
    assert answer.status_code == 422
    assert next(iter(change)) in answer.json()["where"]


def a10(service: Service, uuid: str, stream: float, day: int = 1, **changes: Any) -> None:
    at = f"2026-03-{day:02}T00:00:00Z"
    body = {"device": "NVIDIA A10", "kind": "gpu", "uuid": uuid, "stream_gbs": stream, "measured_at": at}
    assert service.post("/calibrations", json=body | changes).status_code == 201


def test_siblings_are_compared_by_their_newest(service: Service) -> None:
    """b was slow on the first day and is not on the second; c at 400 is 20 % below 500."""
    for uuid, stream, day in (("a", 500.0, 1), ("b", 300.0, 1), ("b", 500.0, 2), ("c", 400.0, 1)):
        a10(service, uuid, stream, day)
    add(service)
    seen = service.get("/calibrations/siblings", params={"device": "nvidia a10"}).json()
    newest = seen["items"][0]
    assert (newest["uuid"], newest["stream_gbs"]) == ("b", 500.0)
    assert {c["uuid"] for c in seen["items"]} == {"a", "b", "c"}
    [slow] = seen["behind"]
    assert slow == {
        "device": "NVIDIA A10", "uuid": "c", "host": None, "figure": "stream", "value": 400.0,
        "median": 500.0, "behind_pct": pytest.approx(20.0), "allowed_pct": 5.0, "siblings": 2,
    }  # fmt: skip


def test_siblings_of_another_project_are_not_told(service: Service) -> None:
    path = "/api/v1/calibrations/siblings"
    other = service.post("/projects", json={"name": "other"}).json()["id"]
    a10(service, "a", 500.0)
    headers = {"Authorization": f"Bearer {a_token(service.settings, project_id=other)}"}
    body = {**CPU, "device": "NVIDIA A10", "uuid": "z", "kind": "gpu"}
    assert service.client.post("/api/v1/calibrations", json=body, headers=headers).status_code == 201
    mine = service.post("/projects", json={"name": "mine"}).json()["id"]
    headers = {"Authorization": f"Bearer {a_token(service.settings, project_id=mine)}"}
    seen = service.client.get(path, params={"device": "NVIDIA A10"}, headers=headers).json()
    assert [c["uuid"] for c in seen["items"]] == ["a"]


def test_siblings_need_a_model(service: Service) -> None:
    assert service.get("/calibrations/siblings").status_code == 422
    assert service.get("/calibrations/siblings", params={"device": "none"}).json() == {
        "items": [],
        "behind": [],
    }
