"""Is it alive, is it ready, and how is it doing."""

from __future__ import annotations

import time

from fastapi import APIRouter, Request
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)
from pydantic import BaseModel
from sqlalchemy import func, select, text
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.deps import Reading
from app.errors import problems
from app.models import Job, Run
from rooflight import __version__

router = APIRouter(tags=["health"])
API = "/api/v1"
_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"})
_STATES = ("queued", "running", "done", "failed", "refused")


class Health(BaseModel):
    """The server runs."""

    status: str
    version: str


class Metrics:
    """What Prometheus scrapes; one registry per application."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "rooflight_http_requests",
            "Requests answered.",
            ["method", "route", "status"],
            registry=self.registry,
        )
        self.seconds = Histogram(
            "rooflight_http_request_seconds", "Time to answer.", ["route"], registry=self.registry
        )
        self.jobs = Gauge("rooflight_jobs", "Jobs by state.", ["state"], registry=self.registry)
        self.runs = Gauge("rooflight_runs", "Runs with an analysis.", registry=self.registry)


class Watch:
    """ASGI middleware that counts and times requests by route, not by address: addresses are endless."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status = 500

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        began = time.perf_counter()
        try:
            await self._app(scope, receive, watched)
        finally:
            route = _route(scope)
            self._metrics.seconds.labels(route).observe(time.perf_counter() - began)
            self._metrics.requests.labels(_method(scope), route, str(status)).inc()


def _route(scope: Scope) -> str:
    route = str(getattr(scope.get("route"), "path", "none"))
    # The route knows its path below the API's prefix only, and pages have routes of the same name.
    return API + route if scope["path"].startswith(API) and not route.startswith(API) else route


def _method(scope: Scope) -> str:
    return scope["method"] if scope["method"] in _METHODS else "other"


@router.get("/healthz")
async def healthz() -> Health:
    """200 as soon as the process answers."""
    return Health(status="ok", version=__version__)


@router.get("/readyz", responses=problems(503))
async def readyz(session: Reading) -> Health:
    """200 when the database answers too."""
    await session.execute(text("SELECT 1"))
    return Health(status="ready", version=__version__)


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
async def metrics(request: Request, session: Reading) -> Response:
    """Counters in the text format of Prometheus."""
    kept: Metrics = request.app.state.metrics
    counts = dict(list(await session.execute(select(Job.state, func.count()).group_by(Job.state))))
    for state in _STATES:
        kept.jobs.labels(state).set(counts.get(state, 0))
    kept.runs.set(await session.scalar(select(func.count()).select_from(Run).where(Run.listed)) or 0)
    return Response(generate_latest(kept.registry), media_type=CONTENT_TYPE_LATEST)
