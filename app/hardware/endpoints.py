"""The hardware catalogue over HTTP."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from rooflight import protocol

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
    from rooflight.cli.gpus import entries

    return Response(protocol.encode_http({"items": entries(name)}), media_type="application/json")
