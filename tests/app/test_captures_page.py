"""The page of captures: who sees it, and what it says of an order and its processes."""

from __future__ import annotations

import re
from typing import Any

import pytest

from app.settings import Settings
from tests.app.conftest import ADDRESS, Browser, Service, a_service, a_token

EVIL = "</script><img src=x onerror=alert(1)>"
HTML = {"Accept": "text/html"}


def order(service: Service, **changes: Any) -> str:
    service.post("/projects", json={"name": "demo"})
    body = {"host": "node1", "project": "demo", "pids": [4711], "iterations": 3, **changes}
    made = service.post("/captures", json={k: v for k, v in body.items() if v is not None})
    assert made.status_code == 201, made.text
    return str(made.json()["id"])


def answer(service: Service, capture: str, **said: Any) -> None:
    told = service.client.put(f"/api/v1/captures/{capture}/outcome", json=said, headers=service.auth)
    assert told.status_code == 200, told.text


def words(service: Service, path: str = "/captures/rows", **kwargs: Any) -> str:
    """What stands on the page, without its markup."""
    html = service.client.get(path, **kwargs).text
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html)).replace("\xa0", " ")


def test_a_stranger_is_sent_to_sign_in(settings: Settings) -> None:
    with a_service(settings.model_copy(update={"host": "0.0.0.0", "allow_remote": True})) as remote:
        seen = remote.client.get("/captures", headers=HTML, follow_redirects=False)
        assert (seen.status_code, seen.headers["location"]) == (303, "/signin")
        assert remote.client.get("/captures/rows").status_code == 401


def test_the_page_has_its_json(service: Service) -> None:
    seen = service.client.get(
        "/captures?host=a", headers={"Accept": "application/json"}, follow_redirects=False
    )
    assert (seen.status_code, seen.headers["location"]) == (307, "/api/v1/captures?host=a")


def test_an_empty_page_says_what_to_do(service: Service) -> None:
    html = service.client.get("/captures").text
    assert f'data-copy="rooflight-agent daemon --server {ADDRESS}"' in html
    assert "rooflight-agent daemon" in words(service)


def test_an_order_is_told_in_words(service: Service) -> None:
    order(service, pids=[4711, 4712], run="nightly")
    assert "waits node1 demo / nightly 3 steps, processes 4711, 4712, shapes" in words(service)
    order(service, pids=[], iterations=None, duration_ms=500, shapes=False, stack=True, keep_trace=True)
    assert "500 ms, all that ask, stacks, trace kept" in words(service)
    order(service, pids=[], job=12, iterations=1)
    assert "1 step, Slurm job 12, shapes" in words(service)
    assert 'data-pending="3"' in service.client.get("/captures/rows").text


def test_each_process_is_told_in_words_and_the_run_is_linked(service: Service) -> None:
    capture, run = order(service, pids=[4711, 4712]), service.a_run()
    processes = [
        {"pid": 4711, "state": "written", "rank": 0, "command": "python train.py"},
        {"pid": 4712, "state": "failed", "rank": 1, "problem": "process 4712: it ended before it asked"},
    ]
    answer(service, capture, state="taken", processes=[{"pid": 4711, "state": "ordered"}])
    assert "being recorded" in words(service)
    assert "4711 has the order" in words(service)
    answer(service, capture, state="done", processes=processes, run_id=run)
    said = words(service)
    assert "4711 rank 0: recorded python train.py" in said
    assert "4712 rank 1: ✕ it ended before it asked" in said
    html = service.client.get("/captures").text
    assert f'<a href="/runs/{run}">Open the run</a>' in html
    assert 'data-pending="0"' in html


def test_a_failure_is_said_once(service: Service) -> None:
    problem = "process 4711: no such process on this host"
    failed = [{"pid": 4711, "state": "failed", "problem": problem}]
    answer(service, order(service), state="failed", problem=problem, processes=failed)
    said = words(service)
    assert said.count("no such process on this host") == 1
    assert "Nothing was recorded." in said


@pytest.mark.parametrize("field", ["host", "run"])
def test_names_from_outside_stay_text(service: Service, field: str) -> None:
    answer(
        service,
        order(service, **{field: EVIL}),
        state="failed",
        problem=EVIL,
        processes=[{"pid": 1, "state": "written", "command": EVIL}],
    )
    html = service.client.get("/captures").text + service.client.get("/captures/rows").text
    assert "<img" not in html
    assert "&lt;img" in html


def test_a_project_sees_its_own(service: Service) -> None:
    order(service)
    own = service.post("/projects", json={"name": "own"}).json()["id"]
    limited = {"Authorization": f"Bearer {a_token(service.settings, project_id=own)}"}
    assert "node1" not in words(service, headers=limited)
    assert "node1" in words(service)


def test_a_host_is_asked_for_alone(service: Service) -> None:
    order(service)
    order(service, host="node2")
    said = words(service, "/captures/rows?host=node2")
    assert ("node1" in said, "node2" in said) == (False, True)


def test_a_page_of_this_server_orders_with_its_csrf_token_and_no_other(service: Service) -> None:
    service.post("/projects", json={"name": "demo"})
    body = {"host": "node1", "project": "demo", "iterations": 3}
    own, without = Browser(service).headers(), {"Origin": ADDRESS}
    assert service.client.post("/api/v1/captures", json=body, headers=without).status_code == 401
    assert service.client.post("/api/v1/captures", json=body, headers=own).status_code == 201
