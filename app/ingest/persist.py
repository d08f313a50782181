"""The seam: an analysis becomes rows, a document and an event file, in one transaction."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

import msgspec
from sqlalchemy import delete, insert, select

from app.db import WriteSession
from app.documents import pack
from app.ingest.summary import summary
from app.models import KernelRow, Project, Run, RunDocument, StepRow, utcnow
from app.runs.queries import search_text
from rooflight.protocol import CpuStep, Document, Kernel, Rank, Step

_KERNEL_COLUMNS = frozenset(c.name for c in KernelRow.__table__.columns)
_BATCH = 2_000


async def store(session: WriteSession, run: Run, document: Document, fresh: Collection[int]) -> None:
    """Replace the analysis of ``run`` (locked by the caller): document, kernel and step rows, headline.

    ``fresh`` are the ranks that were analysed now; of the others the kernels are stored already, while
    their steps may wait longer for a rank that joined.
    """
    await _replace_document(session, run.id, document)
    await _forget_kernels(session, run.id, sorted(fresh))
    await _insert(session, KernelRow, kernel_rows(run.id, [r for r in document.ranks if r.rank in fresh]))
    await session.execute(delete(StepRow).where(StepRow.run_id == run.id))
    await _insert(session, StepRow, step_rows(run.id, document))
    given_host = run.host
    for name, value in summary(document).items():
        setattr(run, name, value)
    run.host = run.host or given_host
    run.state, run.listed, run.problem = "ready", True, None
    run.version += 1
    project = await session.scalar(select(Project.name).where(Project.id == run.project_id))
    run.search_text = search_text(run, project or "")


def kernel_rows(run_id: str, ranks: Iterable[Rank]) -> Iterator[dict[str, Any]]:
    """One row per kernel group and, on a CPU, per leaf op."""
    for rank in ranks:
        lists: list[tuple[bool, list[Kernel]]] = [
            (False, rank.kernels),
            (True, rank.cpu.ops if rank.cpu else []),
        ]
        for on_cpu, kernels in lists:
            for idx, kernel in enumerate(kernels):
                row = {k: v for k, v in msgspec.to_builtins(kernel).items() if k in _KERNEL_COLUMNS}
                yield row | {"run_id": run_id, "rank": rank.rank, "on_cpu": on_cpu, "idx": idx}


def step_rows(run_id: str, document: Document) -> Iterator[dict[str, Any]]:
    """One row per step, recorded, inferred, or of the CPU."""
    for rank in document.ranks:
        lists: list[tuple[str, list[Step] | list[CpuStep]]] = [
            ("recorded", rank.steps),
            ("inferred", rank.inferred_steps),
            ("cpu", rank.cpu.steps if rank.cpu else []),
        ]
        for source, steps in lists:
            for idx, step in enumerate[Step | CpuStep](steps):
                yield {
                    "run_id": run_id,
                    "rank": rank.rank,
                    "source": source,
                    "idx": idx,
                    "n": step.n,
                    "step_time_us": step.step_time_us,
                    "device": getattr(step, "device", None),
                    "regime": step.regime,
                    "attainable_us": step.attainable_us,
                    "bound_us": step.bound_us,
                    "body": msgspec.to_builtins(step),
                }


async def _forget_kernels(session: WriteSession, run_id: str, ranks: list[int]) -> None:
    for first in range(0, len(ranks), _BATCH):
        some = KernelRow.rank.in_(ranks[first : first + _BATCH])
        await session.execute(delete(KernelRow).where(KernelRow.run_id == run_id, some))


async def _insert(
    session: WriteSession, table: type[KernelRow | StepRow], rows: Iterator[dict[str, Any]]
) -> None:
    batch: list[dict[str, Any]] = []
    for row in rows:
        batch.append(row)
        if len(batch) == _BATCH:
            await session.execute(insert(table), batch)
            batch = []
    if batch:
        await session.execute(insert(table), batch)


async def _replace_document(session: WriteSession, run_id: str, document: Document) -> None:
    await session.execute(delete(RunDocument).where(RunDocument.run_id == run_id))
    session.add(
        RunDocument(
            run_id=run_id, schema_version=document.schema_version, body=pack(document), updated_at=utcnow()
        )
    )
    await session.flush()
