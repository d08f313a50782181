"""How migrations run: against the database that the caller hands over, else the one of the settings."""

from __future__ import annotations

from alembic import context
from sqlalchemy import Connection, create_engine, text

from app.models import Base
from app.settings import Settings


def run(connection: Connection) -> None:
    """Bring the schema where it was asked to go, all or nothing."""
    if connection.dialect.name == "postgresql":
        # A migration that must wait for a lock gives up rather than stop the service behind it.
        connection.execute(text("SET lock_timeout = '10s'"))
        connection.commit()
    context.configure(
        connection=connection,
        target_metadata=Base.metadata,
        render_as_batch=connection.dialect.name == "sqlite",
        compare_type=True,
        transactional_ddl=True,
    )
    with context.begin_transaction():
        context.run_migrations()


given = context.config.attributes.get("connection")
if given is not None:
    run(given)
else:
    with create_engine(Settings().url).connect() as opened:
        run(opened)
