"""A run analysed again from what it was given, by the program as it is now.

A raw trace that is gone has its stored timeline (:mod:`app.ingest.traces`).  Nothing changes for readers
until the new analysis is whole; a run that changed meanwhile is left for another try.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import select

from app.blobs import BlobStore
from app.db import Database
from app.documents import unpack
from app.events.parquet import EventStore
from app.ingest.persist import store
from app.ingest.tasks import (
    Analysed,
    Analyzer,
    Inputs,
    Stale,
    analyse,
    analyzed,
    calibrations_of,
    document_of,
    profiles_of,
    traces_of,
)
from app.models import Profile, Run, utcnow
from app.models.base import new_id
from app.runs.queries import lock_run
from app.settings import Settings
from rooflight.results.result import RankResult


async def runs_with_traces(database: Database) -> list[str]:
    """The runs that were given a raw trace, oldest first."""
    query = select(Run.id).join(Profile, Profile.run_id == Run.id).where(Profile.blob_id.is_not(None))
    async with database.read() as session:
        found = await session.scalars(query.group_by(Run.id, Run.created_at).order_by(Run.created_at, Run.id))
        return list(found)


async def reanalyze(
    run_id: str, settings: Settings, database: Database, analyzer: Analyzer = analyzed
) -> int:
    """Replace the analysis of the run; the number of its ranks.

    Raises what an analysis raises, and :class:`Stale` when the run changed meanwhile: it is then as it was.
    """
    blobs, events = BlobStore(settings.data), EventStore(settings.data)
    inputs, old = await _given(run_id, database, blobs)
    new: dict[str, str | None] = {}
    bodies: dict[str, bytes] = {}
    results: list[RankResult] = []
    try:
        for trace in inputs.traces:
            one = analyse(trace, inputs, settings, analyzer)
            new[trace.profile_id] = _written(inputs, one, events)
            bodies[trace.profile_id] = one.kept
            results.append(one.result)
        document = document_of(inputs, results)
        async with database.write() as session:
            run = await lock_run(session, run_id)
            if run.version != inputs.version:
                raise Stale(run_id)
            for profile in await profiles_of(session, run_id):
                if profile.id in new:
                    profile.events, profile.result = new[profile.id], bodies[profile.id]
            await store(session, run, document, {r.rank for r in document.ranks})
    except BaseException:
        _delete(new.values(), events)
        raise
    _delete([name for profile, name in old.items() if profile in new], events)
    return len(document.ranks)


async def _given(run_id: str, database: Database, blobs: BlobStore) -> tuple[Inputs, dict[str, str | None]]:
    """The inputs, and the event file of each profile."""
    async with database.read() as session:
        run = await session.get_one(Run, run_id)
        profiles = await profiles_of(session, run.id)
        inputs = Inputs(
            run_id=run.id,
            project_id=run.project_id,
            version=run.version,
            traces=traces_of(profiles, blobs),
            pushed=[unpack(p.document) for p in profiles if p.document],
            calibrations=await calibrations_of(session, run.project_id),
            units_per_step=run.units_per_step or {},
        )
    return inputs, {p.id: p.events for p in profiles}


def _written(inputs: Inputs, one: Analysed, events: EventStore) -> str | None:
    """A new file, since readers may be at the old one."""
    rank = one.result.rank.rank
    return events.write(inputs.project_id, utcnow().date(), new_id(), {rank: one.launches})


def _delete(names: Iterable[str | None], events: EventStore) -> None:
    for name in names:
        if name is not None:
            events.delete(name)
