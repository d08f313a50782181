"""Runs the migrations and tells whether the schema is the one that this program knows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import URL, Connection, Engine, create_engine, event

from app.resources import folder


def configuration() -> Config:
    """Alembic's configuration; there is no ini file."""
    config = Config()
    config.set_main_option("script_location", str(folder("migrations")).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config


def upgrade(url: URL, revision: str = "head") -> None:
    """Create or upgrade the schema; safe to call by several processes at once."""
    _with(url, lambda config: command.upgrade(config, revision))


def downgrade(url: URL, revision: str = "base") -> None:
    """Take the schema back to ``revision``."""
    _with(url, lambda config: command.downgrade(config, revision))


def is_current(url: URL) -> bool:
    """Whether the database has exactly the newest schema."""
    engine = _engine(url)
    try:
        with engine.connect() as connection:
            seen = MigrationContext.configure(connection).get_current_heads()
        return set(seen) == set(ScriptDirectory.from_config(configuration()).get_heads())
    finally:
        engine.dispose()


def _with(url: URL, action: Callable[[Config], object]) -> None:
    engine = _engine(url)
    try:
        with engine.connect() as connection:
            _lock(connection)
            config = configuration()
            config.attributes["connection"] = connection
            action(config)
            connection.commit()
    finally:
        engine.dispose()


def _engine(url: URL) -> Engine:
    engine = create_engine(url)
    if url.get_backend_name() == "sqlite":

        @event.listens_for(engine, "connect")
        def _connect(connection: Any, _record: Any) -> None:
            connection.isolation_level = None
            connection.execute("PRAGMA busy_timeout=60000")
            connection.execute("PRAGMA journal_mode=WAL")

        # The write lock is taken first, so a second process waits and then finds nothing left to do.
        @event.listens_for(engine, "begin")
        def _begin(connection: Connection) -> None:
            connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine


def _lock(connection: Connection) -> None:
    """One migration at a time: a second process waits and then finds nothing left to do."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("SELECT pg_advisory_lock(7265646)")
        connection.commit()
