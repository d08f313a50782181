"""The steps of a run over HTTP."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from app.deps import Caller, Reading
from app.errors import problems
from app.runs.queries import require_run
from app.steps import queries
from rooflight.http_form import encode_http

router = APIRouter(prefix="/runs/{run_id}", tags=["steps"])
_STEP = {
    "allOf": [
        {"$ref": "#/components/schemas/Step"},
        {
            "type": "object",
            "required": ["rank", "source"],
            "properties": {
                "rank": {"type": "integer"},
                "source": {"type": "string", "enum": ["recorded", "inferred", "cpu"]},
            },
        },
    ]
}
_PAGE = {
    "description": "A page of steps",
    "content": {
        "application/json": {
            "schema": {
                "type": "object",
                "required": ["items", "total", "next_cursor"],
                "properties": {
                    "items": {"type": "array", "items": _STEP},
                    "total": {"type": "integer"},
                    "next_cursor": {"type": ["integer", "null"]},
                },
            }
        }
    },
}


@router.get("/steps", responses={200: _PAGE, **problems(404)})
async def list_steps(
    run_id: str,
    session: Reading,
    caller: Caller,
    rank: Annotated[int | None, Query(ge=0, le=2**31)] = None,
    limit: Annotated[int, Query(ge=1, le=2_000)] = 500,
    cursor: Annotated[int, Query(ge=0, le=2**31)] = 0,
) -> Response:
    """Steps in order of rank and time, each with the parts of its wall time."""
    run = await require_run(session, run_id, caller.project_id)
    total, rows = await queries.page(session, run.id, rank, limit, cursor)
    after = cursor + len(rows)
    answer = {"items": rows, "total": total, "next_cursor": after if rows and after < total else None}
    return Response(encode_http(answer), media_type="application/json")
