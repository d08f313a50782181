"""The kernel table of a run over HTTP, and its launches."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from app.deps import Caller, Events, Reading
from app.errors import problems
from app.kernels import queries
from app.kernels.queries import ORDER, Filter
from app.kernels.schemas import KERNELS, LAUNCHES
from app.runs.queries import require_run
from rooflight.http_form import encode_http

router = APIRouter(prefix="/runs/{run_id}", tags=["kernels"])
_JSON = "application/json"
MAX_PAGE = 2_000


@router.get("/kernels", responses={200: KERNELS, **problems(404)})
async def list_kernels(
    run_id: str,
    session: Reading,
    caller: Caller,
    rank: Annotated[int | None, Query(ge=0, le=2**31)] = None,
    regime: Annotated[str | None, Query(max_length=20)] = None,
    search: Annotated[str | None, Query(max_length=200, description="In name, op and module.")] = None,
    sort: Annotated[
        str, Query(pattern=f"^-?({'|'.join(ORDER)})$", description="A field; - for descending.")
    ] = "-time_us",
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 100,
    cursor: Annotated[int, Query(ge=0, le=2**31, description="next_cursor of the page before.")] = 0,
) -> Response:
    """Kernel groups (leaf ops for a run without GPU work), with the total that matches."""
    run = await require_run(session, run_id, caller.project_id)
    wanted = Filter(run.id, rank=rank, regime=regime, search=search)
    total, rows = await queries.page(session, wanted, sort, limit, cursor)
    after = cursor + len(rows)
    answer = {"items": rows, "total": total, "next_cursor": after if rows and after < total else None}
    return Response(encode_http(answer), media_type=_JSON)


@router.get("/launches", responses={200: LAUNCHES, **problems(404)})
async def list_launches(
    run_id: str,
    session: Reading,
    events: Events,
    caller: Caller,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 100,
    cursor: Annotated[int, Query(ge=0, le=2**31)] = 0,
) -> Response:
    """Single launches from the event store, in order of start; *_ns, flops and bytes are strings."""
    run = await require_run(session, run_id, caller.project_id)
    names = await queries.event_files(session, run.id)
    total, rows = await asyncio.to_thread(events.rows, names, limit=limit, offset=cursor)
    after = cursor + len(rows)
    answer = {"items": rows, "total": total, "next_cursor": after if rows and after < total else None}
    return Response(encode_http(answer), media_type=_JSON)
