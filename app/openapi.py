"""The OpenAPI description: that of the routes, and the protocol's own schemas in their HTTP form."""

from __future__ import annotations

from typing import Any

import msgspec
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from app.problems import Problem
from rooflight import __version__, protocol
from rooflight.http_form import BIG

_REF = "#/components/schemas/{name}"
ABOUT = """What bounds your GPUs, what the gap costs, what to do first.

Times are microseconds (`*_us`), shares are percent, unknown is null. Integers that may pass 2^53 are decimal
strings. Every error is `application/problem+json`. A POST may carry an `Idempotency-Key`.
"""


def describe(app: FastAPI) -> dict[str, Any]:
    """The description, made once."""
    if app.openapi_schema is None:
        schema = get_openapi(title="Rooflight", version=__version__, description=ABOUT, routes=app.routes)
        components = schema.setdefault("components", {}).setdefault("schemas", {})
        for name, component in _protocol().items():
            components.setdefault(name, component)
        components.setdefault(
            "Problem", Problem.model_json_schema(ref_template=_REF.replace("{name}", "{model}"))
        )
        for method in _operations(schema):
            _add_errors(method)
        app.openapi_schema = schema
    return app.openapi_schema


def _protocol() -> dict[str, Any]:
    _, components = msgspec.json.schema_components([protocol.Document], ref_template=_REF)
    for component in components.values():
        for name, field in component.get("properties", {}).items():
            if name in BIG:
                default = field.get("default")
                component["properties"][name] = {
                    "type": ["string", "null"],
                    "pattern": r"^\d+$",
                    "description": "A decimal integer.",
                    **({"default": None if default is None else str(default)} if "default" in field else {}),
                }
    return components


def _operations(schema: dict[str, Any]) -> list[dict[str, Any]]:
    verbs = ("get", "post", "put", "patch", "delete")
    return [o for path in schema["paths"].values() for verb, o in path.items() if verb in verbs]


def _add_errors(operation: dict[str, Any]) -> None:
    """What the door in front of every route may answer, and 422 in our form rather than the framework's."""
    content = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    door = {
        "400": "The request is broken",
        "401": "No or no valid token",
        "403": "Not allowed",
        "413": "Too large",
    }
    responses = operation["responses"]
    for status, text in door.items():
        responses.setdefault(status, {"description": text, "content": content})
    if "422" in responses or "parameters" in operation or "requestBody" in operation:
        responses["422"] = {"description": "A field is not valid", "content": content}
