"""The application: everything is put together here."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import structlog
from fastapi import APIRouter, Depends, FastAPI

from app import errors, health, openapi, signin
from app.advice import endpoints as advice
from app.blobs import BlobStore
from app.calibrations import endpoints as calibrations
from app.captures import endpoints as captures
from app.db import Database
from app.deps import bearer, speaks
from app.events.parquet import EventStore
from app.hardware import endpoints as hardware
from app.health import Metrics, Watch
from app.inflate import Inflate
from app.ingest import endpoints as ingest
from app.jobs import endpoints as jobs
from app.jobs.runner import CHILD, Runner
from app.kernels import endpoints as kernels
from app.projects import endpoints as projects
from app.runs import endpoints as runs
from app.security import Door, Signer
from app.settings import Settings
from app.steps import endpoints as steps
from app.telemetry import endpoints as telemetry
from app.telemetry.retention import keep_expiring
from rooflight import __version__
from rooflight.prices import read_own, with_own

log = structlog.get_logger()
RESOURCES = (
    projects,
    runs,
    ingest,
    kernels,
    steps,
    advice,
    jobs,
    hardware,
    calibrations,
    captures,
    telemetry,
)


def create_app(settings: Settings, *, child: Sequence[str] = CHILD) -> FastAPI:
    """The service over a database that was migrated.  ``child`` is the command that does one job."""
    database = Database(settings.url)
    app = FastAPI(
        title="Rooflight",
        version=__version__,
        lifespan=_lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
    )
    app.state.settings, app.state.database = settings, database
    app.state.blobs, app.state.events = BlobStore(settings.data), EventStore(settings.data)
    app.state.signer, app.state.metrics = Signer(settings.signing_key()), Metrics()
    app.state.runner = Runner(database, settings, child)
    app.state.instances = with_own() if settings.prices is None else with_own(read_own(settings.prices))
    api = APIRouter(prefix="/api/v1", dependencies=[bearer, Depends(speaks)])
    for resource in RESOURCES:
        api.include_router(resource.router)
    app.include_router(api)
    app.include_router(health.router)
    app.include_router(signin.router)
    _add_pages(app)
    errors.install(app)
    app.openapi = lambda: openapi.describe(app)  # type: ignore[method-assign]
    app.add_middleware(errors.Net)
    app.add_middleware(Inflate, settings=settings)
    app.add_middleware(Door, settings=settings, database=database, signer=app.state.signer)
    app.add_middleware(Watch, metrics=app.state.metrics)
    return app


def _add_pages(app: FastAPI) -> None:
    importlib.import_module("app.pages").install(app)


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    settings: Settings = app.state.settings
    app.state.blobs.sweep()
    expiry = asyncio.create_task(keep_expiring(app.state.database, settings.telemetry_days))
    if settings.workers:
        await app.state.runner.start()
    try:
        yield
    finally:
        expiry.cancel()
        await asyncio.gather(expiry, return_exceptions=True)
        await app.state.runner.stop()
        await app.state.database.close()
