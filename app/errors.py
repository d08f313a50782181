"""Every error of the service as problem+json (RFC 9457), and never a traceback.

ServiceError
├── NotFound          there is no such thing, or not for this caller
├── Conflict          it contradicts what is stored
├── Unauthorized      who are you
├── Forbidden         not you
└── NoSpace           the disk is full
"""

from __future__ import annotations

import errno
import re
from http import HTTPStatus
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from rooflight.errors import ProtocolMismatch, Refused, RooflightError

log = structlog.get_logger()
MEDIA_TYPE = "application/problem+json"
_SHOWN = 300  # characters of somebody's input that an answer repeats at most


class Problem(BaseModel):
    """What went wrong, where, and what to do."""

    type: str = Field(description="Names the kind of problem; stable.")
    title: str = Field(description="What is wrong.")
    status: int = Field(description="The HTTP status.")
    detail: str = Field(description="Title, place and advice in one sentence.")
    where: str = Field("", description="The place in the input: file, byte, line or field.")
    hint: str = Field("", description="What to do.")


class ServiceError(Exception):
    """An error that the service answers with on purpose."""

    status = 500

    def __init__(self, title: str, *, where: str = "", hint: str = "") -> None:
        super().__init__(title)
        self.title, self.where, self.hint = title, where, hint


class NotFound(ServiceError):  # noqa: N818
    """There is no such thing, or not for this caller."""

    status = 404


class Conflict(ServiceError):  # noqa: N818
    """It contradicts what is stored."""

    status = 409


class Unauthorized(ServiceError):  # noqa: N818
    """No or no valid credentials."""

    status = 401


class Forbidden(ServiceError):  # noqa: N818
    """Valid credentials, but not for this."""

    status = 403


class NoSpace(ServiceError):  # noqa: N818
    """The disk is full."""

    status = 507


def problem_of(error: Exception) -> Problem:
    """The problem that an error is answered with."""
    if isinstance(error, (Refused, ServiceError)):
        return _problem(type(error).__name__, error.title, error.status, error.where, error.hint)
    if isinstance(error, ProtocolMismatch):
        return _problem("ProtocolMismatch", str(error), 422)
    if isinstance(error, RooflightError):
        return _problem(type(error).__name__, str(error), 422)
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return _problem(
            "NoSpace", "the disk of the server is full", 507, hint="free space, then send it again"
        )
    if isinstance(error, (PoolTimeout, DBAPIError)):
        return _problem("Unavailable", "the database did not answer", 503, hint="try again in a moment")
    return _problem("InternalError", "the server failed on this request", 500, hint="its log says why")


def _problem(kind: str, title: str, status: int, where: str = "", hint: str = "") -> Problem:
    title, where = _short(title), _short(where)
    detail = title + (f" ({where})" if where else "") + (f". {hint}" if hint else "")
    slug = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", kind).lower()
    return Problem(
        type=f"urn:rooflight:problem:{slug}",
        title=title,
        status=status,
        detail=detail,
        where=where,
        hint=hint,
    )


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def answer(problem: Problem) -> Response:
    """The problem as an HTTP answer."""
    headers = {}
    if problem.status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="rooflight"'
    if problem.status == 503:
        headers["Retry-After"] = "5"
    return JSONResponse(problem.model_dump(), problem.status, headers=headers, media_type=MEDIA_TYPE)


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """OpenAPI ``responses`` for the errors that an endpoint can answer with."""
    schema = {"$ref": "#/components/schemas/Problem"}
    return {
        status: {"description": HTTPStatus(status).phrase, "content": {MEDIA_TYPE: {"schema": schema}}}
        for status in statuses
    }


def install(app: FastAPI) -> None:
    """Answer every error of ``app`` with a problem."""
    for kind in (RooflightError, ServiceError, OSError, PoolTimeout, DBAPIError, Exception):
        app.add_exception_handler(kind, _known)
    app.add_exception_handler(ClientDisconnect, _gone)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RequestValidationError, _invalid)


async def _known(request: Request, error: Exception) -> Response:
    problem = problem_of(error)
    if problem.status in (500, 503):
        log.error("request failed", method=request.method, path=request.url.path, exc_info=error)
    return answer(problem)


async def _gone(_request: Request, _error: Exception) -> Response:
    # Nobody reads this; the status is what the access log shows.
    return answer(_problem("ClientGone", "the upload was cut off: nothing was stored", 400))


async def _http(_request: Request, error: HTTPException) -> Response:
    phrase = HTTPStatus(error.status_code).phrase
    title = error.detail if isinstance(error.detail, str) else phrase
    response = answer(_problem(phrase.title().replace(" ", ""), title or phrase, error.status_code))
    response.headers.update(error.headers or {})
    return response


async def _invalid(_request: Request, error: RequestValidationError) -> Response:
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    reason = str(first["msg"]).removeprefix("Value error, ")
    return answer(_problem("Invalid", f"the request is not valid: {reason}", 422, where))
