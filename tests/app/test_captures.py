"""Orders to record running processes: fetched by the agent of their host alone, answered by it once."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from tests.app.conftest import Service, a_token


def order(service: Service, **changes: Any) -> Any:
    service.post("/projects", json={"name": "demo"})
    body = {"host": "node1", "project": "demo", "pids": [4711], "iterations": 3}
    return service.post("/captures", json={**body, **changes})


def waiting(service: Service, host: str = "node1", wait: int = 0) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = service.get(f"/captures?host={host}&wait={wait}").json()["items"]
    return items


def answer(service: Service, capture: str, **said: Any) -> Any:
    return service.client.put(f"/api/v1/captures/{capture}/outcome", json=said, headers=service.auth)


def test_an_order_waits_for_the_agent_of_its_host(service: Service) -> None:
    made = order(service)
    assert made.status_code == 201, made.text
    capture = made.json()
    assert (capture["state"], capture["host"], capture["project"]) == ("queued", "node1", "demo")
    assert waiting(service, "node2") == []
    [seen] = waiting(service)
    assert seen["id"] == capture["id"]
    assert (seen["order"]["pids"], seen["order"]["iterations"], seen["order"]["shapes"]) == ([4711], 3, True)


def test_the_agent_takes_it_and_answers_with_the_run(service: Service) -> None:
    capture = order(service).json()["id"]
    assert answer(service, capture, state="taken").status_code == 200
    assert waiting(service) == []
    process = {"pid": 4711, "state": "written", "problem": None, "rank": 0, "command": "python train.py"}
    run = service.a_run()
    assert answer(service, capture, state="done", processes=[process], run_id=run).status_code == 200
    seen = service.get(f"/captures/{capture}").json()
    assert (seen["state"], seen["run_id"], seen["processes"]) == ("done", run, [process])


def test_the_same_last_word_again_changes_nothing_and_another_is_409(service: Service) -> None:
    capture = order(service).json()["id"]
    said = {"state": "failed", "problem": "process 4711: no such process on this host"}
    assert [answer(service, capture, **said).status_code for _ in range(2)] == [200, 200]
    assert answer(service, capture, state="done").status_code == 409
    assert service.get(f"/captures/{capture}").json()["problem"] == said["problem"]


def test_the_answer_is_held_back_until_there_is_an_order(service: Service) -> None:
    service.post("/projects", json={"name": "demo"})
    later = threading.Timer(0.8, lambda: order(service))
    began = time.monotonic()
    later.start()
    try:
        assert len(waiting(service, wait=20)) == 1
    finally:
        later.join()
    assert 0.7 < time.monotonic() - began < 15


def test_an_order_that_nobody_fetched_has_failed_and_is_fetched_no_more(service: Service) -> None:
    capture = order(service).json()["id"]
    _age(service, capture, created_at=datetime.now(UTC) - timedelta(minutes=11))
    assert waiting(service) == []
    seen = service.get(f"/captures/{capture}").json()
    assert seen["state"] == "failed"
    assert "no agent of host node1" in seen["problem"]


def test_an_agent_that_was_not_heard_of_since_has_failed(service: Service) -> None:
    capture = order(service).json()["id"]
    answer(service, capture, state="taken")
    _age(service, capture, updated_at=datetime.now(UTC) - timedelta(hours=3))
    assert "not heard of since" in service.get(f"/captures/{capture}").json()["problem"]


def test_a_key_makes_one_order_of_two_requests(service: Service) -> None:
    headers = {"Idempotency-Key": "once"}
    service.post("/projects", json={"name": "demo"})
    body = {"host": "node1", "project": "demo", "duration_ms": 500}
    both = [service.post("/captures", json=body, headers=headers) for _ in range(2)]
    assert [r.status_code for r in both] == [201, 200]
    assert len(waiting(service)) == 1


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"iterations": None}, "duration_ms or iterations"),
        ({"duration_ms": 5}, "duration_ms or iterations"),
        ({"iterations": 0}, "iterations"),
        ({"iterations": None, "duration_ms": 60_001}, "duration_ms"),
        ({"pids": [0]}, "pids"),
        ({"pids": list(range(1, 1026))}, "pids"),
        ({"host": "x" * 201}, "host"),
        ({"host": ""}, "host"),
        ({"job": 2**63}, "job"),
        ({"ACTIVITIES_LOG_FILE": "/etc/passwd"}, "ACTIVITIES_LOG_FILE"),
    ],
)
def test_an_order_that_cannot_be_is_422_and_names_the_field(
    service: Service, changes: dict[str, Any], named: str
) -> None:
    refused = order(service, **changes)
    assert refused.status_code == 422
    assert named in refused.text
    assert waiting(service) == []


def test_a_project_that_is_not_there_is_404(service: Service) -> None:
    assert order(service, project="other").status_code == 404


def test_a_projects_token_sees_its_own_orders_alone(service: Service) -> None:
    order(service)
    other = service.post("/projects", json={"name": "other"}).json()["id"]
    token = a_token(service.settings, "write", project_id=other)
    headers = {"Authorization": f"Bearer {token}"}
    assert service.get("/captures?host=node1&wait=0", headers=headers).json()["items"] == []
    capture = waiting(service)[0]["id"]
    assert service.get(f"/captures/{capture}", headers=headers).status_code == 404
    path = f"/api/v1/captures/{capture}/outcome"
    said = service.client.put(path, json={"state": "taken"}, headers=headers)
    assert said.status_code == 404
    assert service.get("/captures", headers=headers).json()["items"] == []
    assert len(service.get("/captures").json()["items"]) == 1


def _age(service: Service, capture: str, **times: datetime) -> None:
    engine = sa.create_engine(service.settings.url.set(drivername=_driver(service)))
    column, value = next(iter(times.items()))
    with engine.begin() as connection:
        text = sa.text(f"UPDATE captures SET {column} = :v WHERE id = :id")
        connection.execute(
            text.bindparams(sa.bindparam("v", type_=sa.DateTime(timezone=True))), {"v": value, "id": capture}
        )
    engine.dispose()


def _driver(service: Service) -> str:
    return "sqlite" if service.settings.url.drivername.startswith("sqlite") else "postgresql+psycopg"
