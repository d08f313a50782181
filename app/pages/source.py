"""Where pages take their data from: the run queries, limited to what the caller may see."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends

from app.captures import queries as captures
from app.captures.schemas import CaptureOut
from app.deps import Caller, Reading
from app.models import utcnow
from app.projects.queries import all_projects
from app.runs import queries
from app.runs.schemas import RunPage, RunSummary
from app.telemetry import queries as telemetry
from app.telemetry.schemas import HostOut
from rooflight.protocol import Document

_SHOWN, _OFFERED = 50, 200


class Source:
    """The runs that one caller may read."""

    def __init__(self, session: Reading, caller: Caller) -> None:
        self._session, self._caller, self._project = session, caller, caller.project_id

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

    async def captures(self, host: str | None) -> list[CaptureOut]:
        """The newest orders to record, of one host or of all."""
        found = await captures.newest(self._session, self._caller, host, _SHOWN)
        return [captures.out(*pair, utcnow()) for pair in found]

    async def hosts(self) -> list[HostOut]:
        """The first hosts that report, by name."""
        return (await telemetry.hosts(self._session, self._project, None, _OFFERED)).items

    async def projects(self) -> list[str]:
        """The names of the first projects."""
        return [p.name for p in (await all_projects(self._session, self._caller))[:_OFFERED]]


Runs = Annotated[Source, Depends(Source)]
