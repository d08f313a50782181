"""The hardware catalogue over HTTP."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from rooflight import protocol
from rooflight.hardware import find, gpus
from rooflight.hardware.entry import entry

router = APIRouter(prefix="/hardware", tags=["hardware"])
_GPUS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The catalogue, or the one entry that the name resolves to",
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "required": ["items"],
                    "properties": {"items": {"type": "array", "items": {"type": "object"}}},
                }
            }
        },
    }
}


@router.get("/gpus", responses=_GPUS)
def list_gpus(name: Annotated[str | None, Query(max_length=200)] = None) -> Response:
    """Peaks and bandwidths with their sources; ?name= asks which entry a device name resolves to."""
    found = list(gpus()) if name is None else [find(name)]
    items = [entry(gpu) for gpu in found if gpu is not None]
    return Response(protocol.encode({"items": items}), media_type="application/json")
