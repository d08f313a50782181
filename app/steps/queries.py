"""Step rows in the database."""

from __future__ import annotations

from typing import Any

from sqlalchemy import func, select

from app.db import ReadSession
from app.models import StepRow

_ORDER = (StepRow.rank, StepRow.source, StepRow.idx)


async def page(
    session: ReadSession, run_id: str, rank: int | None, limit: int, offset: int
) -> tuple[int, list[dict[str, Any]]]:
    """How many steps there are, and those of one page."""
    conditions = [StepRow.run_id == run_id] + ([StepRow.rank == rank] if rank is not None else [])
    total = await session.scalar(select(func.count()).select_from(StepRow).where(*conditions))
    query = select(StepRow).where(*conditions).order_by(*_ORDER).limit(limit).offset(offset)
    rows = await session.scalars(query)
    return total or 0, [{"rank": r.rank, "source": r.source, **r.body} for r in rows]
