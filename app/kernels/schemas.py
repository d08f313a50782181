"""Kernel rows on the wire, for OpenAPI."""

from __future__ import annotations

from typing import Any

_PLACE = {
    "type": "object",
    "required": ["index", "rank", "on_cpu"],
    "properties": {
        "index": {"type": "integer", "description": "Place in the rank's list of the analysis."},
        "rank": {"type": "integer"},
        "on_cpu": {"type": "boolean"},
    },
}


def _page(items: dict[str, Any], what: str) -> dict[str, Any]:
    schema = {
        "type": "object",
        "required": ["items", "total", "next_cursor"],
        "properties": {
            "items": {"type": "array", "items": items},
            "total": {"type": "integer", "description": "How many match in all."},
            "next_cursor": {"type": ["integer", "null"]},
        },
    }
    return {"description": what, "content": {"application/json": {"schema": schema}}}


KERNELS = _page({"allOf": [{"$ref": "#/components/schemas/Kernel"}, _PLACE]}, "A page of kernel groups")
LAUNCHES = _page({"type": "object"}, "A page of launches")
