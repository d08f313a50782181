"""Engines and sessions.

A read session cannot write (the database itself refuses it) and a write session is one transaction that
commits when its block ends well and rolls back when it does not: nobody commits by hand.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

from sqlalchemy import URL, Table, event
from sqlalchemy.dialects.postgresql import insert as postgres_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, create_async_engine
from sqlalchemy.pool import NullPool

from app.models import Base


class ReadSession(AsyncSession):
    """A consistent view of the database that cannot change it."""


class WriteSession(AsyncSession):
    """One transaction; it commits at the end of :meth:`Database.write`."""


class Database:
    """The two engines of one database.  ``pooled`` is off in short-lived processes."""

    def __init__(self, url: URL, *, pooled: bool = True) -> None:
        self.is_sqlite = url.get_backend_name() == "sqlite"
        self._reader = self._engine(url, read_only=True, pooled=pooled)
        self._writer = self._engine(url, read_only=False, pooled=pooled)

    def _engine(self, url: URL, *, read_only: bool, pooled: bool) -> AsyncEngine:
        return _sqlite(url, read_only, pooled) if self.is_sqlite else _postgres(url, read_only, pooled)

    @asynccontextmanager
    async def read(self) -> AsyncIterator[ReadSession]:
        """A session that reads; rolled back at the end."""
        async with ReadSession(self._reader, expire_on_commit=False, autoflush=False) as session:
            yield session

    @asynccontextmanager
    async def write(self) -> AsyncIterator[WriteSession]:
        """A session that writes; durable once the block has ended."""
        async with WriteSession(self._writer, expire_on_commit=False) as session, session.begin():
            yield session

    async def close(self) -> None:
        """Close every connection."""
        await self._reader.dispose()
        await self._writer.dispose()


def _pool(pooled: bool, size: int) -> dict[str, Any]:
    if not pooled:
        return {"poolclass": NullPool}
    return {"pool_size": size, "max_overflow": 0, "pool_timeout": 60}


def _postgres(url: URL, read_only: bool, pooled: bool) -> AsyncEngine:
    options = "-c timezone=utc -c lock_timeout=60s"
    if read_only:
        options += " -c default_transaction_read_only=on"
    return create_async_engine(
        url,
        connect_args={"options": options, "connect_timeout": 10},
        pool_pre_ping=pooled,
        **_pool(pooled, 10),
    )


def _sqlite(url: URL, read_only: bool, pooled: bool) -> AsyncEngine:
    # One writer at a time is SQLite's rule: a pool of one makes writers queue here, in order, rather than
    # poll for the file's lock.
    engine = create_async_engine(
        url.set(drivername="sqlite+aiosqlite"),
        connect_args={"timeout": 60},
        **_pool(pooled, 8 if read_only else 1),
    )
    begin = "BEGIN" if read_only else "BEGIN IMMEDIATE"

    @event.listens_for(engine.sync_engine, "connect")
    def _connect(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # transactions begin where the session says, below
        cursor = connection.cursor()
        for pragma in (
            "journal_mode=WAL",
            "synchronous=FULL",  # a commit that was answered survives a power cut
            "foreign_keys=ON",
            f"query_only={'ON' if read_only else 'OFF'}",
        ):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    @event.listens_for(engine.sync_engine, "begin")
    def _begin(connection: Any) -> None:
        connection.exec_driver_sql(begin)

    return engine


async def insert_new(session: WriteSession, table: type[Base], **values: Any) -> bool:
    """Insert unless a row with the same key exists; true when this call made it.

    A concurrent insert of the same key is waited for, so that the answer is final.
    """
    sqlite = session.get_bind().dialect.name == "sqlite"
    insert = (sqlite_insert if sqlite else postgres_insert)(cast(Table, table.__table__))
    key = next(iter(table.__table__.primary_key))
    # What was returned tells; a count of rows is not known on every driver.
    done = await session.execute(insert.values(**values).on_conflict_do_nothing().returning(key))
    return done.first() is not None
