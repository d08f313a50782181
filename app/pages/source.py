"""Where pages take their data from: the run queries, limited to what the caller may see."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends

from app.deps import Caller, Reading
from app.runs import queries
from app.runs.schemas import RunPage, RunSummary
from rooflight.protocol import Document


class Source:
    """The runs that one caller may read."""

    def __init__(self, session: Reading, caller: Caller) -> None:
        self._session, self._project = session, caller.project_id

    async def recent(self, *, cursor: str | None, search: str | None) -> RunPage:
        """Runs that have a profile or are under analysis, newest first."""
        return await queries.recent_runs(
            self._session, cursor=cursor, search=search, pending=True, project_id=self._project
        )

    async def run(self, run_id: str) -> RunSummary | None:
        """The run, or ``None``."""
        return await queries.find_run(self._session, run_id, project_id=self._project)

    async def document(self, run_id: str) -> Document | None:
        """Its analysis, or ``None`` while there is none."""
        return await queries.run_document(self._session, run_id, project_id=self._project)


Runs = Annotated[Source, Depends(Source)]
