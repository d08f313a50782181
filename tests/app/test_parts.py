"""A trace in parts: what broke goes on where it was; what is whole is taken like one that came at once."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

import pytest

from app.models import Blob, Job
from tests.app.conftest import Service, a_token
from tests.app.test_upload import counted

TRACE = json.dumps({"traceEvents": [{"ph": "X", "name": "x" * 5000, "ts": 1, "dur": 1}]}).encode()
SHA = hashlib.sha256(TRACE).hexdigest()
HALF = len(TRACE) // 2


def put(service: Service, run: str, offset: int, data: bytes, *, sha: str = SHA, **more: Any) -> Any:
    digest = base64.b64encode(hashlib.sha256(more.pop("digested", data)).digest()).decode()
    return service.client.put(
        f"/api/v1/runs/{run}/traces/parts/{sha}",
        params={"offset": offset, "size": len(TRACE), "filename": "t.json"} | more,
        content=data,
        headers={**service.auth, "Content-Digest": f"sha-256=:{digest}:"},
    )


def here(service: Service, run: str) -> Any:
    return service.get(f"/runs/{run}/traces/parts/{SHA}").json()


def test_two_halves_become_one_trace_with_its_job(service: Service) -> None:
    run = service.a_run()
    assert here(service, run) == {"offset": 0, "job": None}
    first = put(service, run, 0, TRACE[:HALF])
    assert (first.status_code, first.json()) == (200, {"offset": HALF, "job": None})
    assert here(service, run)["offset"] == HALF
    assert counted(service, Job) == 0
    last = put(service, run, HALF, TRACE[HALF:])
    assert last.status_code == 202, last.text
    assert last.json()["job"]["run_id"] == run
    assert (counted(service, Blob), counted(service, Job)) == (1, 1)
    [blob] = [f for f in service.files() if f.startswith("blobs")]
    assert (service.settings.data / blob).read_bytes() == TRACE
    assert not [f for f in service.files() if f.startswith("incoming")]


def test_after_a_lost_answer_the_same_part_changes_nothing(service: Service) -> None:
    run = service.a_run()
    for _ in range(2):
        assert put(service, run, 0, TRACE[:HALF]).json()["offset"] == HALF
    # One that overlaps what is there brings what is new in it.
    assert put(service, run, HALF - 100, TRACE[HALF - 100 : HALF + 100]).json()["offset"] == HALF + 100
    jobs = [put(service, run, HALF, TRACE[HALF:]) for _ in range(3)]
    assert [j.status_code for j in jobs] == [202, 200, 200]
    assert len({j.json()["job"]["id"] for j in jobs}) == 1
    assert counted(service, Job) == 1


def test_a_hole_is_409_with_the_place_to_go_on_at(service: Service) -> None:
    run = service.a_run()
    put(service, run, 0, TRACE[:100])
    refused = put(service, run, 200, TRACE[200:300])
    assert refused.status_code == 409
    assert "offset=100" in refused.json()["detail"]
    assert here(service, run)["offset"] == 100


def test_a_part_that_differs_from_what_is_here_is_409(service: Service) -> None:
    run = service.a_run()
    put(service, run, 0, TRACE[:100])
    assert put(service, run, 50, b"y" * 100).status_code == 409


def test_a_damaged_part_is_400_and_is_not_kept(service: Service) -> None:
    run = service.a_run()
    refused = put(service, run, 0, TRACE[:100], digested=TRACE[:99] + b"?")
    assert refused.status_code == 400
    assert "damaged" in refused.json()["detail"]
    assert here(service, run)["offset"] == 0


def test_parts_that_are_another_trace_are_400_and_gone(service: Service) -> None:
    run = service.a_run()
    other = b"?" + TRACE[1:]
    put(service, run, 0, other[:HALF])
    refused = put(service, run, HALF, other[HALF:])
    assert refused.status_code == 400
    assert SHA in refused.json()["detail"]
    assert service.files() == []


def test_a_whole_that_is_no_trace_is_refused_like_one_at_once(service: Service) -> None:
    run, body = service.a_run(), b"\x7fELF" + bytes(100)
    sha = hashlib.sha256(body).hexdigest()
    refused = put(service, run, 0, body, sha=sha, size=len(body))
    assert refused.status_code == 422
    assert "not a trace" in refused.json()["detail"]
    assert service.files() == []


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"size": 2**40}, 413),
        ({"offset": -1}, 422),
        ({"size": 0}, 422),
        ({"sha": "../../x"}, 404),
        ({"sha": "A" * 64}, 422),
    ],
)
def test_what_cannot_be_is_refused(service: Service, changes: dict[str, Any], status: int) -> None:
    run = service.a_run()
    given = {"offset": 0, **changes}
    assert put(service, run, data=TRACE, **given).status_code == status
    assert service.files() == []


def test_another_project_has_no_such_run(service: Service) -> None:
    run = service.a_run()
    other = service.post("/projects", json={"name": "other"}).json()["id"]
    token = a_token(service.settings, "write", project_id=other)
    service.auth["Authorization"] = f"Bearer {token}"
    assert put(service, run, 0, TRACE).status_code == 404


def test_the_same_trace_for_two_runs_is_two_jobs(service: Service) -> None:
    one, two = service.a_run(), service.a_run()
    for run in (one, two):
        assert put(service, run, 0, TRACE).status_code == 202
    assert (counted(service, Blob), counted(service, Job)) == (1, 2)
