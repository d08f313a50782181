"""Health, readiness, metrics, and what is answered when the server itself is at fault."""

from __future__ import annotations

import pytest
from fastapi import APIRouter

from app import logs
from tests.app.conftest import Service


def test_health_and_readiness(service: Service) -> None:
    assert service.client.get("/healthz").json()["status"] == "ok"
    assert service.client.get("/readyz").json()["status"] == "ready"


def test_metrics_count_requests_by_route_and_jobs_by_state(service: Service) -> None:
    run = service.a_run()
    service.post(f"/runs/{run}/traces", content=b'{"traceEvents": []}')
    for _ in range(3):
        service.get(f"/runs/{run}")
    text = service.client.get("/metrics").text
    assert (
        'rooflight_http_requests_total{method="GET",route="/api/v1/runs/{run_id}",status="200"} 3.0' in text
    )
    assert 'rooflight_jobs{state="queued"} 1.0' in text
    assert 'rooflight_jobs{state="failed"} 0.0' in text
    # An address is no label: there is no end to them.
    assert run not in text


def test_an_error_of_ours_is_500_without_its_secrets(
    service: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    logs.configure(service.settings)  # on the standard error that is captured
    router = APIRouter()

    @router.get("/broken")
    def broken() -> None:
        raise KeyError("a secret")

    service.app.include_router(router)
    answer = service.client.get("/broken")
    assert answer.status_code == 500
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "secret" not in answer.text
    assert "Traceback" not in answer.text
    # The log has it all.
    assert "KeyError: 'a secret'" in capsys.readouterr().err
