"""The door: Host, Origin, who asks, what they may, how much they may send, and the headers of every answer.

It stands in front of every route, so that no route can forget it.  On loopback, reading is open; a change
needs a token, or a page of this server (same origin, CSRF token).  Reached from elsewhere, everything but
/healthz and /signin needs a token or the cookie that /signin gave for one.
"""

from __future__ import annotations

import hmac
import secrets
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

from itsdangerous import BadSignature, TimestampSigner
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app import principal
from app.db import Database
from app.errors import answer
from app.principal import Principal
from app.problems import Forbidden, ServiceError, Unauthorized, problem_of
from app.settings import LOOPBACK, Settings
from app.tokens import service as tokens

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
OPEN = frozenset({"/healthz", "/signin"})
CSRF_COOKIE, CSRF_HEADER, SESSION_COOKIE = "rfl_csrf", "x-csrf-token", "rfl_session"
CSRF_MAX_AGE_S = 7 * 86_400
SESSION_MAX_AGE_S = 14 * 86_400
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data: blob:; connect-src 'self'; font-src 'self'; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class MisdirectedHost(ServiceError):  # noqa: N818
    """The Host header names a machine that this server is not: a page elsewhere may be rebinding its name."""

    status = 400


class BodyTooLarge(ServiceError):  # noqa: N818
    """A body past the limit."""

    status = 413


def csrf_token(request: Request) -> str:
    """The token that a page of this server hands to its scripts for the header X-CSRF-Token."""
    return str(request.scope["state"]["csrf"])


class Signer:
    """Signs and reads the cookies."""

    def __init__(self, key: str) -> None:
        self._csrf = TimestampSigner(key, salt="rooflight.csrf")
        self._session = TimestampSigner(key, salt="rooflight.session")

    def new_csrf(self) -> str:
        return self._csrf.sign(secrets.token_urlsafe(24)).decode("ascii")

    def csrf_valid(self, value: str) -> bool:
        return _unsigned(self._csrf, value, CSRF_MAX_AGE_S) is not None

    def new_session(self, token_id: str) -> str:
        return self._session.sign(token_id).decode("ascii")

    def session(self, value: str) -> str | None:
        """The token's id, or ``None`` when the cookie is old or not ours."""
        return _unsigned(self._session, value, SESSION_MAX_AGE_S)


def _unsigned(signer: TimestampSigner, value: str, max_age_s: int) -> str | None:
    try:
        return signer.unsign(value, max_age=max_age_s).decode("ascii")
    except (BadSignature, UnicodeError):
        return None


class Door:
    """ASGI middleware; see the head of this file."""

    def __init__(self, app: ASGIApp, *, settings: Settings, database: Database, signer: Signer) -> None:
        self._app, self._settings, self._database, self._signer = app, settings, database, signer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # there are no websockets here
        request = Request(scope)
        cookies = _cookies(request.headers)
        csrf, fresh = self._csrf(cookies)
        scope.setdefault("state", {})["csrf"] = csrf
        send = self._dressed(send, csrf if fresh else None)
        try:
            scope["state"]["principal"] = await self._admit(request, cookies)
            receive = self._limited(request, receive)
        except ServiceError as error:
            await self._refusal(request, error)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    async def _admit(self, request: Request, cookies: dict[str, str]) -> Principal:
        self._check_host(request)
        safe = request.method in SAFE
        if not safe:
            _check_origin(request)
        if request.url.path in OPEN:
            return principal.LOCAL_READER
        who = await self._who(request, cookies)
        who.require("read" if safe else "write")
        return who

    async def _who(self, request: Request, cookies: dict[str, str]) -> Principal:
        header = request.headers.get("authorization")
        if header is not None:
            return await self._bearer(header)
        session = await self._session(cookies)
        if request.method in SAFE:
            if session is not None:
                return session
            if not self._settings.exposed:
                return principal.LOCAL_READER
            raise Unauthorized(
                "this server needs a token", hint="send Authorization: Bearer rfl_…, or sign in at /signin"
            )
        if session is None and self._settings.exposed:
            raise Unauthorized("this server needs a token", hint="send Authorization: Bearer rfl_…")
        self._check_csrf(request, cookies)
        return session or principal.LOCAL_BROWSER

    async def _bearer(self, header: str) -> Principal:
        scheme, _, text = header.partition(" ")
        row = await tokens.verify(self._database, text.strip()) if scheme.lower() == "bearer" else None
        if row is None:
            raise Unauthorized(
                "the token is not valid: unknown, wrong or revoked",
                hint="make one by `rooflight-server token create`",
            )
        return principal.of_token(row)

    async def _session(self, cookies: dict[str, str]) -> Principal | None:
        token_id = self._signer.session(cookies.get(SESSION_COOKIE, ""))
        row = await tokens.by_id(self._database, token_id) if token_id else None
        return principal.of_token(row, "session") if row else None

    def _check_host(self, request: Request) -> None:
        name = _host_name(request.headers.get("host", ""))
        settings = self._settings
        if (
            name in LOOPBACK
            or name in settings.allowed_hosts
            or (settings.exposed and not settings.allowed_hosts)
        ):
            return
        raise MisdirectedHost(
            "this server does not answer to that host name",
            where="header Host",
            hint="set ROOFLIGHT_ALLOWED_HOSTS",
        )

    def _check_csrf(self, request: Request, cookies: dict[str, str]) -> None:
        sent, kept = request.headers.get(CSRF_HEADER), cookies.get(CSRF_COOKIE, "")
        if sent is None:
            raise Unauthorized("a change needs a token", hint="send Authorization: Bearer rfl_…")
        same = hmac.compare_digest(sent.encode("utf-8", "replace"), kept.encode("utf-8", "replace"))
        if not same or not self._signer.csrf_valid(kept):
            raise Forbidden(
                "the CSRF token does not match",
                where="header X-CSRF-Token",
                hint="reload the page and try again",
            )

    def _csrf(self, cookies: dict[str, str]) -> tuple[str, bool]:
        kept = cookies.get(CSRF_COOKIE, "")
        return (kept, False) if self._signer.csrf_valid(kept) else (self._signer.new_csrf(), True)

    def _limited(self, request: Request, receive: Receive) -> Receive:
        limit = self._settings.body_bytes
        if request.url.path.startswith("/api/v1/runs/") and request.url.path.endswith("/traces"):
            limit = self._settings.upload_bytes
        length = request.headers.get("content-length", "0")
        if length.isdecimal() and int(length[:20]) > limit:
            raise BodyTooLarge(f"too large: {length[:20]} bytes exceed the limit of {limit} bytes")
        return _counted(receive, limit)

    def _refusal(self, request: Request, error: ServiceError) -> Response:
        page = request.method == "GET" and "text/html" in request.headers.get("accept", "")
        if page and isinstance(error, Unauthorized):
            return RedirectResponse("/signin", 303)
        return answer(problem_of(error))

    def _dressed(self, send: Send, csrf: str | None) -> Send:
        async def dressed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                if csrf is not None and headers.get("content-type", "").startswith("text/html"):
                    headers.append(
                        "set-cookie",
                        f"{CSRF_COOKIE}={csrf}; Path=/; Max-Age={CSRF_MAX_AGE_S}; HttpOnly; SameSite=Strict",
                    )
            await send(message)

        return dressed


def _counted(receive: Receive, limit: int) -> Receive:
    seen = 0

    async def counted() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > limit:
            # The one exception that FastAPI lets through while it reads a body.
            raise HTTPException(413, f"too large: the body exceeds the limit of {limit} bytes")
        return message

    return counted


def _check_origin(request: Request) -> None:
    """A page elsewhere that makes a browser send something here names itself in Origin."""
    origin = request.headers.get("origin")
    if origin is None:
        return
    try:
        sender = urlsplit(origin).netloc.lower()
    except ValueError:
        sender = ""
    if not sender or sender != request.headers.get("host", "").lower():
        raise Forbidden("the request comes from a page of another site", where="header Origin")


def _host_name(host: str) -> str:
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""


def _cookies(headers: Headers) -> dict[str, str]:
    jar: SimpleCookie = SimpleCookie()
    try:
        jar.load(headers.get("cookie", "")[:16_384])
    except CookieError:
        return {}
    return {name: morsel.value for name, morsel in jar.items()}
