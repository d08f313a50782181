"""The schema is what the migrations make: all of it, on both engines, and back."""

from __future__ import annotations

import subprocess
import sys

import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from app import migrate
from app.models import Base
from app.settings import Settings


def test_the_migrations_make_the_tables_of_the_models(settings: Settings) -> None:
    migrate.upgrade(settings.url)
    engine = sa.create_engine(settings.url)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, Base.metadata) == []
    engine.dispose()


def test_down_and_up_again(settings: Settings) -> None:
    migrate.upgrade(settings.url)
    assert migrate.is_current(settings.url)
    migrate.downgrade(settings.url)
    assert not migrate.is_current(settings.url)
    engine = sa.create_engine(settings.url)
    assert sa.inspect(engine).get_table_names() == ["alembic_version"]
    engine.dispose()
    migrate.upgrade(settings.url)
    assert migrate.is_current(settings.url)


def test_several_at_once_are_one(settings: Settings) -> None:
    """Server and worker may start together: one migrates, the others wait and find it done."""
    code = "import sys; from app.cli import main; sys.exit(main(sys.argv[1:]))"
    place = ["--data", str(settings.data), "--database", settings.database]
    started = [
        subprocess.Popen([sys.executable, "-c", code, "migrate", *place], stderr=subprocess.PIPE)
        for _ in range(3)
    ]
    assert [p.communicate()[1] for p in started] == [b"", b"", b""]
    assert [p.returncode for p in started] == [0, 0, 0]
    assert migrate.is_current(settings.url)


def test_every_constraint_has_a_name(settings: Settings) -> None:
    """Only what has a name can be dropped by a later migration."""
    assert all(c.name for t in Base.metadata.tables.values() for c in t.constraints)


def test_whatever_may_pass_two_billion_is_wide() -> None:
    narrow = [
        f"{t.name}.{c.name}"
        for t in Base.metadata.tables.values()
        for c in t.columns
        if type(c.type) is sa.Integer
    ]
    assert narrow == []
