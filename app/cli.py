"""``rooflight-server``: serve, worker, migrate, reanalyze, token."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pydantic import ValidationError
from sqlalchemy.exc import SQLAlchemyError

from app.settings import Settings
from rooflight import __version__
from rooflight.errors import RooflightError

if TYPE_CHECKING:
    from app.db import Database

T = TypeVar("T")

# What needs the web framework or the database is imported by the command that uses it: --help is instant.


class Misuse(Exception):  # noqa: N818
    """A command that cannot be carried out; its text says why and what to do."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; 0 done, 2 misused or not possible."""
    parser = _parser()
    args = parser.parse_args(argv)
    if args.command is None:
        parser.print_help()
        return 2
    try:
        settings = _settings(args)
        _log(settings)
        return int(args.run(args, settings))
    except Misuse as e:
        return _complain(str(e))
    except ValidationError as e:
        first = e.errors()[0]
        name = "_".join(str(part) for part in first["loc"]).upper()
        return _complain(f"setting ROOFLIGHT_{name}: {first['msg']}")
    except (RooflightError, SQLAlchemyError, ValueError, OSError) as e:
        return _complain(str(e).splitlines()[0])


def _complain(text: str) -> int:
    print(f"rooflight-server: {text}", file=sys.stderr)
    return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="rooflight-server", description="The Rooflight service.")
    parser.epilog = "`rooflight-server COMMAND --help` tells the rest."
    parser.add_argument("--version", action="version", version=f"rooflight-server {__version__}")
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--data", type=Path, help="folder of database, traces and events (ROOFLIGHT_DATA)")
    common.add_argument(
        "--database", help="database URL (ROOFLIGHT_DATABASE); default SQLite in the data folder"
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    _add_serve(commands.add_parser("serve", parents=[common], help="run the service"))
    worker = commands.add_parser(
        "worker", parents=[common], help="run analyses only, for a service with ROOFLIGHT_WORKERS=0"
    )
    worker.add_argument("--workers", type=int, help="analyses run at once")
    worker.set_defaults(run=_worker)
    migrate = commands.add_parser("migrate", parents=[common], help="create or upgrade the database")
    migrate.set_defaults(run=_migrate)
    again = commands.add_parser(
        "reanalyze", parents=[common], help="analyse runs again with this version of the program"
    )
    again.add_argument("runs", nargs="*", metavar="RUN", help="ids of runs (all that were given a trace)")
    again.set_defaults(run=_reanalyze)
    _add_token(commands.add_parser("token", help="make, list and revoke tokens"), common)
    return parser


def _add_serve(serve: argparse.ArgumentParser) -> None:
    serve.add_argument("--host", help="address to listen on (127.0.0.1)")
    serve.add_argument("--port", type=int, help="TCP port (8585); 0 takes a free one")
    serve.add_argument(
        "--allow-remote", action="store_true", default=None, help="permit an address other than loopback"
    )
    serve.add_argument("--workers", type=int, help="analyses run at once (1); 0 leaves them to `worker`")
    serve.set_defaults(run=_serve)


def _add_token(token: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    actions = token.add_subparsers(dest="action", metavar="ACTION", required=True)
    create = actions.add_parser("create", parents=[common], help="make a token and print it, this once")
    create.add_argument("--name", default="token", help="what it is for")
    create.add_argument(
        "--scope", action="append", choices=["read", "write", "admin"], help="repeatable; default read, write"
    )
    create.add_argument("--project", help="limit it to one project, made when it is not there")
    create.set_defaults(run=_token_create)
    listed = actions.add_parser("list", parents=[common], help="list tokens without their secrets")
    listed.set_defaults(run=_token_list)
    revoke = actions.add_parser("revoke", parents=[common], help="end a token")
    revoke.add_argument("prefix", help="the prefix that `token list` shows, or the token")
    revoke.set_defaults(run=_token_revoke)


def _settings(args: argparse.Namespace) -> Settings:
    names = ("data", "database", "host", "port", "allow_remote", "workers")
    given = {n: v for n in names if (v := getattr(args, n, None)) is not None}
    return Settings(**given)


def _log(settings: Settings) -> None:
    from app.logs import configure

    configure(settings)


def _prepare(settings: Settings) -> None:
    """Make the data folder and see that the schema is ours: SQLite is upgraded, PostgreSQL must have been."""
    from app import migrate

    settings.data.mkdir(parents=True, exist_ok=True)
    if settings.url.get_backend_name() == "sqlite":
        migrate.upgrade(settings.url)
    elif not migrate.is_current(settings.url):
        raise Misuse("the database has another schema: run `rooflight-server migrate`")


def _serve(_args: argparse.Namespace, settings: Settings) -> int:
    if settings.exposed and not settings.allow_remote:
        raise Misuse(
            f"{settings.host} can be reached from other machines: add --allow-remote if that is meant"
        )
    _prepare(settings)
    if settings.exposed and not _with_database(settings, _has_token):
        raise Misuse(
            "no token exists: make one by `rooflight-server token create` before others can reach the server"
        )
    from app.serving import serve

    return 0 if serve(settings) else 2


async def _has_token(database: Database) -> bool:
    from app.tokens.service import any_valid

    async with database.read() as session:
        return await any_valid(session)


def _worker(_args: argparse.Namespace, settings: Settings) -> int:
    from app.jobs.runner import Runner

    if settings.workers < 1:
        raise Misuse("a worker needs --workers of at least 1")
    _prepare(settings)

    async def work(database: Database) -> None:
        runner = Runner(database, settings)
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for sig in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(sig, stop.set)
        await runner.start()
        print(f"rooflight-server: {settings.workers} worker(s) wait for jobs", flush=True)
        await stop.wait()
        await runner.stop()

    _with_database(settings, work)
    return 0


def _migrate(_args: argparse.Namespace, settings: Settings) -> int:
    from app import migrate

    settings.data.mkdir(parents=True, exist_ok=True)
    migrate.upgrade(settings.url)
    print("the database is up to date")
    return 0


def _reanalyze(args: argparse.Namespace, settings: Settings) -> int:
    from app.ingest.again import reanalyze, runs_with_traces
    from app.ingest.tasks import Stale
    from app.problems import ServiceError
    from rooflight.errors import RooflightError

    async def work(database: Database) -> int:
        known, failed = await runs_with_traces(database), 0
        if strange := set(args.runs) - set(known):
            raise Misuse(f"there is no run {min(strange)} that was given a trace")
        for run_id in args.runs or known:
            try:
                print(f"{run_id}: {await reanalyze(run_id, settings, database)} rank(s)", flush=True)
            except Stale:
                failed += _complain(f"{run_id}: it changed meanwhile; try again")
            except (RooflightError, ServiceError) as e:
                failed += _complain(f"{run_id}: it is as it was: {e}")
        return min(failed, 2)

    _prepare(settings)
    return _with_database(settings, work)


def _token_create(args: argparse.Namespace, settings: Settings) -> int:
    from app.principal import LOCAL_BROWSER
    from app.projects.queries import ensure_project
    from app.text import clean
    from app.tokens.service import mint

    async def make(database: Database) -> str:
        async with database.write() as session:
            project_id = None
            if args.project:
                project, _ = await ensure_project(session, clean(args.project)[:200], LOCAL_BROWSER)
                project_id = project.id
            return (await mint(session, clean(args.name), args.scope or ["read", "write"], project_id)).text

    _prepare(settings)
    print(_with_database(settings, make))
    return 0


def _token_list(_args: argparse.Namespace, settings: Settings) -> int:
    from app.times import iso
    from app.tokens.service import listing

    async def rows(database: Database) -> list[str]:
        async with database.read() as session:
            return [
                "\t".join(
                    (
                        t.prefix,
                        t.name,
                        t.scopes.replace(" ", ","),
                        t.project_id or "all",
                        iso(t.created_at),
                        iso(t.last_used_at) if t.last_used_at else "never used",
                        "revoked" if t.revoked_at else "valid",
                    )
                )
                for t in await listing(session)
            ]

    _prepare(settings)
    for row in _with_database(settings, rows):
        print(row)
    return 0


def _token_revoke(args: argparse.Namespace, settings: Settings) -> int:
    from app.tokens.service import revoke

    prefix = args.prefix.removeprefix("rfl_").partition("_")[0]

    async def end(database: Database) -> bool:
        async with database.write() as session:
            return await revoke(session, prefix)

    _prepare(settings)
    if not _with_database(settings, end):
        raise Misuse(f"there is no token with the prefix {prefix}: `rooflight-server token list` shows them")
    print(f"{prefix} is revoked")
    return 0


def _with_database(settings: Settings, act: Callable[[Database], Awaitable[T]]) -> T:
    from app.db import Database

    async def run() -> T:
        database = Database(settings.url)
        try:
            return await act(database)
        finally:
            await database.close()

    return asyncio.run(run())
