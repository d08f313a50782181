"""The description of the API is true: every answer is one that it describes, whatever is sent."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import schemathesis
import uvicorn
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode, checks
from schemathesis.specs.openapi import checks as openapi_checks

from app import migrate
from app.main import create_app
from app.settings import Settings
from rooflight import protocol
from tests.app.conftest import a_token
from tests.factories import a_document
from tests.shared import rounds

CHECKS = [
    checks.not_a_server_error,
    openapi_checks.status_code_conformance,
    openapi_checks.content_type_conformance,
    openapi_checks.response_schema_conformance,
]


class Running:
    """A service on a port of its own, with one run that has an analysis."""

    def __init__(self, data: Path) -> None:
        given = Settings(data=data, workers=0, body_bytes=2**20, upload_bytes=2**20)
        migrate.upgrade(given.url)
        config = uvicorn.Config(create_app(given), port=0, log_level="error", access_log=False)
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, daemon=True)
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)
        port = self.server.servers[0].sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self.auth = {"Authorization": f"Bearer {a_token(given)}"}
        self.post("/projects", json={"name": "demo"})
        self.run = self.post("/projects/demo/runs", json={})["id"]
        self.post(f"/runs/{self.run}/profiles", content=protocol.encode(a_document()))
        self.job = self.post(f"/runs/{self.run}/traces", content=b'{"traceEvents": []}')["job"]["id"]

    def post(self, path: str, **kwargs: Any) -> dict[str, Any]:
        answer = httpx2.post(f"{self.url}/api/v1{path}", headers=self.auth, trust_env=False, **kwargs)
        assert answer.is_success, answer.text
        return dict(answer.json())

    def stop(self) -> None:
        self.server.should_exit = True
        self.thread.join(20)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    service = Running(tmp_path_factory.mktemp("service"))
    yield service
    service.stop()


@pytest.fixture(scope="module")
def description(running: Running) -> dict[str, Any]:
    return dict(httpx2.get(f"{running.url}/openapi.json", trust_env=False).json())


@pytest.fixture(scope="module")
def described(description: dict[str, Any]) -> Any:
    return schemathesis.openapi.from_dict(description)


@pytest.mark.slow
def test_every_answer_is_described_and_none_is_a_500(described: Any, running: Running) -> None:
    operations = [found.ok() for found in described.get_all_operations()]
    assert len(operations) >= 18
    for operation in operations:
        exercise(operation, running)


def exercise(operation: Any, running: Running) -> None:
    """Send what the description allows and what it does not; each answer must be one that it tells of."""

    @settings(max_examples=rounds(12, 300), suppress_health_check=list(HealthCheck), deadline=None)
    @given(
        st.one_of(
            operation.as_strategy(generation_mode=GenerationMode.POSITIVE),
            operation.as_strategy(generation_mode=GenerationMode.NEGATIVE),
        )
    )
    def send(case: schemathesis.Case) -> None:
        # Every second request asks for what is there; the others for whatever the generator thought of.
        for name, known in (("run_id", running.run), ("job_id", running.job), ("project", "demo")):
            if name in (case.path_parameters or {}) and len(str(case.path_parameters[name])) % 2:
                case.path_parameters[name] = known
        case.call_and_validate(base_url=running.url, headers=running.auth, checks=CHECKS)

    send()


def test_every_error_is_described_as_a_problem(description: dict[str, Any]) -> None:
    for path, operations in description["paths"].items():
        for verb, operation in operations.items():
            assert operation["summary"], (path, verb)
            assert operation["description"], (path, verb)
            for status, response in operation["responses"].items():
                if status >= "400":
                    assert list(response["content"]) == ["application/problem+json"], (path, verb, status)


def test_every_post_takes_an_idempotency_key(description: dict[str, Any]) -> None:
    posts = {p: o["post"] for p, o in description["paths"].items() if "post" in o}
    assert len(posts) == 7
    for path, operation in posts.items():
        assert "Idempotency-Key" in [p["name"] for p in operation["parameters"]], path


def test_big_integers_are_described_as_strings(description: dict[str, Any]) -> None:
    kernel = description["components"]["schemas"]["Kernel"]["properties"]
    assert kernel["flops"]["type"] == kernel["bytes"]["type"] == ["string", "null"]


def test_what_the_contract_promises_is_there(description: dict[str, Any]) -> None:
    run = "/api/v1/runs/{run_id}"
    promised = {
        "/api/v1/projects",
        "/api/v1/projects/{project}/runs",
        "/api/v1/runs",
        run,
        *(f"{run}/{part}" for part in ("analysis", "kernels", "steps", "regimes", "ranks", "roofline")),
        f"{run}/findings",
        f"{run}/whatif",
        "/api/v1/compare",
        f"{run}/traces",
        f"{run}/profiles",
        "/api/v1/jobs/{job_id}",
        "/api/v1/hardware/gpus",
        "/api/v1/hardware/instances",
        "/api/v1/calibrations",
        "/api/v1/captures",
        *(f"/api/v1/{name}" for name in ("telemetry", "fleet", "hosts", "devices")),
        "/api/v1/devices/{device}/telemetry",
        "/healthz",
        "/readyz",
        "/metrics",
    }
    assert promised <= set(description["paths"])
