"""What endpoints ask for: the database, the blob store, who is asking."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import Depends, Header, Request, Security
from fastapi.security import HTTPBearer

from app.blobs import BlobStore
from app.db import Database, ReadSession
from app.events.parquet import EventStore
from app.principal import Principal
from app.problems import TooNew
from app.security import Signer
from app.settings import Settings
from rooflight.client import SCHEMA
from rooflight.prices import Instance
from rooflight.protocol import SCHEMA_VERSION

# The door has read the header already; this one only tells OpenAPI about it.
bearer = Security(
    HTTPBearer(auto_error=False, description="A token made by `rooflight-server token create`.")
)


def _database(request: Request) -> Database:
    found: Database = request.app.state.database
    return found


def _settings(request: Request) -> Settings:
    found: Settings = request.app.state.settings
    return found


def _blobs(request: Request) -> BlobStore:
    found: BlobStore = request.app.state.blobs
    return found


def _events(request: Request) -> EventStore:
    found: EventStore = request.app.state.events
    return found


def _signer(request: Request) -> Signer:
    found: Signer = request.app.state.signer
    return found


def _principal(request: Request) -> Principal:
    found: Principal = request.scope["state"]["principal"]
    return found


def _listed(request: Request) -> tuple[Instance, ...]:
    found: tuple[Instance, ...] = request.app.state.instances
    return found


async def read_session(request: Request) -> AsyncIterator[ReadSession]:
    """A read session that lasts as long as the request."""
    async with request.app.state.database.read() as session:
        yield session


Listed = Annotated[tuple[Instance, ...], Depends(_listed)]


def speaks(request: Request) -> None:
    """Tell a sender that is too new for this server so, before its push is looked at."""
    told = request.headers.get(SCHEMA, "")
    if told.isdecimal() and int(told[:9]) > SCHEMA_VERSION:
        raise TooNew(
            f"the sender speaks schema {told[:9]}, this server {SCHEMA_VERSION}",
            where=f"header {SCHEMA}",
            hint="upgrade the server; an agent keeps what it has until then",
        )


Db = Annotated[Database, Depends(_database)]
ReadSettings = Annotated[Settings, Depends(_settings)]
Blobs = Annotated[BlobStore, Depends(_blobs)]
Events = Annotated[EventStore, Depends(_events)]
Signing = Annotated[Signer, Depends(_signer)]
Caller = Annotated[Principal, Depends(_principal)]
Reading = Annotated[ReadSession, Depends(read_session)]
IdempotencyKeyHeader = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        description="Sent again with the same body nothing changes; with another body it is 409.",
    ),
]
