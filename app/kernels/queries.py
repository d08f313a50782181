"""Kernel rows in the database."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, func, or_, select

from app.db import ReadSession
from app.models import KernelRow, Profile
from app.text import clean

#: Fields that a table may be ordered by.
ORDER = (
    "name",
    "op",
    "family",
    "count",
    "time_us",
    "p50_us",
    "max_us",
    "flops",
    "bytes",
    "ai",
    "achieved_tflops",
    "achieved_gbs",
    "roof_fraction",
    "bound_us",
    "idx",
)
_HIDDEN = frozenset({"run_id", "idx"})


@dataclass(frozen=True)
class Filter:
    """Which rows are meant; ``None`` is no condition."""

    run_id: str
    rank: int | None = None
    regime: str | None = None
    search: str | None = None

    def apply(self, query: Select[Any]) -> Select[Any]:
        """``query`` with the conditions."""
        query = query.where(KernelRow.run_id == self.run_id)
        if self.rank is not None:
            query = query.where(KernelRow.rank == self.rank)
        if self.regime is not None:
            query = query.where(KernelRow.regime == clean(self.regime))
        if self.search:
            query = query.where(_contains(clean(self.search)))
        return query


async def page(
    session: ReadSession, wanted: Filter, sort: str, limit: int, offset: int
) -> tuple[int, list[dict[str, Any]]]:
    """How many rows match, and those of one page; ``index`` is a row's place in its rank's list."""
    total = await session.scalar(wanted.apply(select(func.count()).select_from(KernelRow)))
    column = getattr(KernelRow, sort.removeprefix("-"))
    order = column.desc() if sort.startswith("-") else column.asc()
    # The rest of the key makes the order the same on every page and every engine.
    query = wanted.apply(select(KernelRow)).order_by(
        order.nulls_last(), KernelRow.rank, KernelRow.on_cpu, KernelRow.idx
    )
    rows = await session.scalars(query.limit(limit).offset(offset))
    return total or 0, [_row(r) for r in rows]


async def event_files(session: ReadSession, run_id: str) -> list[str]:
    """Names of the run's event files."""
    query = select(Profile.events).where(Profile.run_id == run_id, Profile.events.is_not(None))
    return [name for name in await session.scalars(query.order_by(Profile.created_at)) if name]


def _contains(text: str) -> Any:
    folded = text.lower()
    columns = (KernelRow.name, KernelRow.op, KernelRow.module)
    return or_(*(func.lower(c).contains(folded, autoescape=True) for c in columns))


def _row(row: KernelRow) -> dict[str, Any]:
    fields = {c.name: getattr(row, c.name) for c in KernelRow.__table__.columns if c.name not in _HIDDEN}
    return {"index": row.idx, **fields}
