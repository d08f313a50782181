"""Findings, what-if and comparison over HTTP, each from the kept analyses alone."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Query
from starlette.responses import Response

from app.advice.price import Asked
from app.deps import Caller, Reading
from app.errors import problems
from app.runs.endpoints import document_of
from rooflight.http_form import encode_http
from rooflight.report.money import priced

router = APIRouter(tags=["advice"])
_JSON = "application/json"
_OBJECT: dict[int | str, dict[str, Any]] = {
    200: {"description": "OK", "content": {_JSON: {"schema": {"type": "object"}}}},
    **problems(404, 422),
}
_FINDINGS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The findings of all ranks",
        "content": {
            _JSON: {
                "schema": {
                    "type": "object",
                    "required": ["items", "totals_us", "price"],
                    "properties": {
                        "price": {"anyOf": [{"$ref": "#/components/schemas/Price"}, {"type": "null"}]},
                        "totals_us": {
                            "type": "object",
                            "additionalProperties": {"type": ["number", "null"]},
                        },
                        "items": {
                            "type": "array",
                            "items": {
                                "allOf": [
                                    {"$ref": "#/components/schemas/Finding"},
                                    {"type": "object", "properties": {"rank": {"type": "integer"}}},
                                ]
                            },
                        },
                    },
                }
            }
        },
    },
    **problems(404, 422),
}


@router.get("/runs/{run_id}/findings", responses=_FINDINGS)
async def get_findings(run_id: str, session: Reading, caller: Caller, asked: Asked) -> Response:
    """The findings of each rank, in its order: the largest saving first; with a price also as money.

    ``totals_us`` is by rank the time that its findings with a saving speak of, each instant once.
    """
    rate = asked.rate()
    document = priced(await document_of(session, run_id, caller), rate)
    items = [{"rank": r.rank, **msgspec.to_builtins(f)} for r in document.ranks for f in r.findings]
    totals = {str(r.rank): r.findings_total_us for r in document.ranks}
    answer = {"items": items, "totals_us": totals, "price": document.price}
    return Response(encode_http(answer), media_type=_JSON)


@router.get("/runs/{run_id}/whatif", responses=_OBJECT)
async def get_whatif(
    run_id: str,
    session: Reading,
    caller: Caller,
    gpu: Annotated[str | None, Query(max_length=200, description="It ran on this GPU.")] = None,
    dtype: Annotated[str | None, Query(max_length=20, description="It ran in this number type.")] = None,
    roofs_reached: bool = False,
    fused: bool = False,
    overlapped: bool = False,
    input_ready: bool = False,
    price: Annotated[float | None, Query(gt=0, le=1000, description="USD for one GPU and hour.")] = None,
) -> Response:
    """The same work under another condition, as ranges: the JSON of `rooflight whatif`."""
    from rooflight.scenarios import Money, Scenario, whatif

    document = await document_of(session, run_id, caller)
    scenario = Scenario(gpu, dtype, roofs_reached, fused, overlapped, input_ready)
    money = None if price is None else Money(price, "asked for")
    found = await asyncio.to_thread(whatif, document, scenario=scenario, money=money)
    return Response(await asyncio.to_thread(encode_http, found), media_type=_JSON)


@router.get("/compare", responses=_OBJECT)
async def get_compare(
    session: Reading,
    caller: Caller,
    base: Annotated[str, Query(max_length=100, description="The run that is compared with.")],
    head: Annotated[str, Query(max_length=100, description="The run that is compared.")],
) -> Response:
    """Where the difference between two runs comes from: the JSON of `rooflight compare`."""
    from rooflight.comparison import compare
    from rooflight.comparison.document import document_of as compared

    a, b = [await document_of(session, run, caller) for run in (base, head)]
    found = await asyncio.to_thread(lambda: compared(compare(a, b)))
    return Response(await asyncio.to_thread(encode_http, found), media_type=_JSON)
