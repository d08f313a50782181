"""A service for each test, on SQLite and on PostgreSQL, its database built by the migrations."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from app import logs, migrate
from app.db import Database
from app.main import create_app
from app.settings import Settings
from app.tokens.service import mint
from tests import shared

ADDRESS = "http://127.0.0.1:8585"


@dataclass
class Service:
    """An application with its client; ``auth`` are the headers of a token that may write everywhere."""

    app: FastAPI
    client: TestClient
    settings: Settings
    auth: dict[str, str]

    def post(self, path: str, **kwargs: Any) -> Any:
        headers = {**self.auth, **kwargs.pop("headers", {})}
        return self.client.post(f"/api/v1{path}", headers=headers, **kwargs)

    def get(self, path: str, **kwargs: Any) -> Any:
        return self.client.get(f"/api/v1{path}", **kwargs)

    def a_run(self, project: str = "demo", **body: Any) -> str:
        """The id of a new run."""
        assert self.post("/projects", json={"name": project}).status_code in (200, 201)
        answer = self.post(f"/projects/{project}/runs", json=body)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    def files(self) -> list[str]:
        """Every file of the data folder that holds somebody's input."""
        folders = (self.settings.data / name for name in ("blobs", "incoming", "events"))
        return sorted(
            str(f.relative_to(self.settings.data)) for d in folders for f in d.rglob("*") if f.is_file()
        )


@pytest.fixture(autouse=True)
def _plain_log() -> None:
    logs.configure(Settings(data=Path("unused")))


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a fresh, empty database."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/data/rooflight.db"
        return
    with a_postgres() as url:
        yield url


@contextmanager
def a_postgres() -> Iterator[str]:
    """A database of its own on the shared server, dropped at the end."""
    name = f"rfl_test_{uuid.uuid4().hex[:12]}"
    server = shared.postgres_url()
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    try:
        yield f"{server.rpartition('/')[0]}/{name}"
    finally:
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.fixture
def settings(tmp_path: Path, database_url: str) -> Settings:
    """Settings of a service without workers, with limits small enough to be met in a test."""
    data = tmp_path / "data"
    data.mkdir(exist_ok=True)
    return Settings(
        data=data,
        database=database_url,
        workers=0,
        upload_bytes=4 * 2**20,
        unpacked_bytes=32 * 2**20,
        body_bytes=8 * 2**20,
        lease_seconds=5,
    )


@pytest.fixture
def service(settings: Settings) -> Iterator[Service]:
    """A running service that takes jobs but does not do them."""
    with a_service(settings) as running:
        yield running


@contextmanager
def a_service(settings: Settings, **kwargs: Any) -> Iterator[Service]:
    """The application over a migrated database."""
    migrate.upgrade(settings.url)
    app = create_app(settings, **kwargs)
    auth = {"Authorization": f"Bearer {a_token(settings)}"}
    with TestClient(app, base_url=ADDRESS, raise_server_exceptions=False) as client:
        yield Service(app, client, settings, auth)


def a_token(settings: Settings, *scopes: str, project_id: str | None = None) -> str:
    """A new token with these scopes; read and write by default."""

    async def make() -> str:
        database = Database(settings.url, pooled=False)
        try:
            async with database.write() as session:
                return (await mint(session, "test", list(scopes) or ["read", "write"], project_id)).text
        finally:
            await database.close()

    return asyncio.run(make())


@dataclass
class Browser:
    """What a page of the service sends: its origin, the cookie and the token it was given."""

    service: Service

    def headers(self, origin: str = ADDRESS) -> dict[str, str]:
        token = self.service.app.state.signer.new_csrf()
        return {"Origin": origin, "Cookie": f"rfl_csrf={token}", "X-CSRF-Token": token}
