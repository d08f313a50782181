"""The hardware catalogue over HTTP: device models, and instances with their prices."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from app.deps import Listed
from rooflight import protocol
from rooflight.hardware import find, gpus
from rooflight.hardware.entry import entry
from rooflight.prices import Wanted, meant, selected
from rooflight.prices.entry import entry as instance_entry

router = APIRouter(prefix="/hardware", tags=["hardware"])
_MAX_PAGE = 2_000
Responses = dict[int | str, dict[str, Any]]


def _items(description: str, **more: dict[str, Any]) -> Responses:
    schema = {
        "type": "object",
        "required": ["items", *more],
        "properties": {"items": {"type": "array", "items": {"type": "object"}}, **more},
    }
    return {200: {"description": description, "content": {"application/json": {"schema": schema}}}}


_GPUS = _items("The catalogue, or the one entry that the name resolves to")
_INSTANCES = _items(
    "Instances, the cheapest GPU hour first, those without a price last",
    total={"type": "integer"},
    next_cursor={"type": ["integer", "null"]},
)


Filter = Query(max_length=200)


@router.get("/gpus", responses=_GPUS)
def list_gpus(name: Annotated[str | None, Filter] = None) -> Response:
    """Peaks and bandwidths with their sources; ?name= asks which entry a device name resolves to."""
    found = list(gpus()) if name is None else [find(name)]
    items = [entry(gpu) for gpu in found if gpu is not None]
    return Response(protocol.encode({"items": items}), media_type="application/json")


@router.get("/instances", responses=_INSTANCES)
def list_instances(
    listed: Listed,
    gpu: Annotated[str | None, Query(max_length=200, description="A device name or an id.")] = None,
    provider: Annotated[str | None, Filter] = None,
    region: Annotated[str | None, Filter] = None,
    limit: Annotated[int, Query(ge=1, le=_MAX_PAGE)] = 200,
    cursor: Annotated[int, Query(ge=0, le=2**31, description="next_cursor of the page before.")] = 0,
) -> Response:
    """Instances and their on-demand prices with date, region and source; the service's own list wins."""
    found = selected(listed, Wanted(None if gpu is None else meant(gpu), provider, region))
    after = cursor + limit
    answer = {
        "items": [instance_entry(i) for i in found[cursor:after]],
        "total": len(found),
        "next_cursor": after if after < len(found) else None,
    }
    return Response(protocol.encode(answer), media_type="application/json")
