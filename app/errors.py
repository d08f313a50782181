"""Every error of the service as problem+json (RFC 9457), and never a traceback."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.problems import Problem, ServiceError, problem, problem_of
from rooflight.errors import RooflightError

log = structlog.get_logger()
MEDIA_TYPE = "application/problem+json"
#: How the pages show a problem: they put it at ``app.state.error_page``.
ErrorPage = Callable[[Request, Problem], Response]
_KEPT = ("www-authenticate", "retry-after")


def answer(told: Problem) -> Response:
    """The problem as an HTTP answer."""
    headers = {}
    if told.status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="rooflight"'
    if told.status == 503:
        headers["Retry-After"] = "5"
    return JSONResponse(told.model_dump(), told.status, headers=headers, media_type=MEDIA_TYPE)


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """OpenAPI ``responses`` for the errors that an endpoint can answer with."""
    schema = {"$ref": "#/components/schemas/Problem"}
    return {
        status: {"description": HTTPStatus(status).phrase, "content": {MEDIA_TYPE: {"schema": schema}}}
        for status in statuses
    }


def install(app: FastAPI) -> None:
    """Answer every error of ``app`` with a problem."""
    for kind in (RooflightError, ServiceError, OSError, PoolTimeout, DBAPIError):
        app.add_exception_handler(kind, _known)
    app.add_exception_handler(ClientDisconnect, _gone)
    app.exception_handler(HTTPException)(_http)
    app.exception_handler(RequestValidationError)(_invalid)


class Net:
    """ASGI middleware under everything else: what nobody expected is logged and answered like the rest."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def watched(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except Exception as error:
            if scope["type"] != "http" or begun:
                raise
            log.error("request failed", method=scope["method"], path=scope["path"], exc_info=error)
            await answer(problem_of(error))(scope, receive, send)


async def _known(request: Request, error: Exception) -> Response:
    told = problem_of(error)
    if told.status in (500, 503):
        log.error("request failed", method=request.method, path=request.url.path, exc_info=error)
    return _told(request, told)


async def _gone(_request: Request, _error: Exception) -> Response:
    # Nobody reads this; the status is what the access log shows.
    return answer(problem("ClientGone", "the upload was cut off: nothing was stored", 400))


async def _http(request: Request, error: HTTPException) -> Response:
    phrase = HTTPStatus(error.status_code).phrase
    title = error.detail if isinstance(error.detail, str) else phrase
    told = problem(phrase.title().replace(" ", ""), title or phrase, error.status_code)
    response = _told(request, told)
    response.headers.update(error.headers or {})
    return response


async def _invalid(request: Request, error: RequestValidationError) -> Response:
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    reason = str(first["msg"]).removeprefix("Value error, ")
    return _told(request, problem("Invalid", f"the request is not valid: {reason}", 422, where))


def _told(request: Request, told: Problem) -> Response:
    """A page for a person whose browser asked for one, problem+json for everybody else."""
    page: ErrorPage | None = getattr(request.app.state, "error_page", None)
    asked = request.method == "GET" and "text/html" in request.headers.get("accept", "")
    if page is None or not asked or request.url.path.startswith(("/api/", "/static/")):
        return answer(told)
    response = page(request, told)
    response.headers.update({k: v for k, v in answer(told).headers.items() if k in _KEPT})
    return response
