"""How pages answer: HTML in one frame, or a redirect to the JSON beside it."""

from __future__ import annotations

from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse, RedirectResponse

from app.pages.templates import render
from app.security import csrf_token


def wants_json(request: Request) -> bool:
    """Whether JSON was asked for by name and HTML was not."""
    accept = request.headers.get("accept", "")
    return "application/json" in accept and "text/html" not in accept


def same_query(request: Request, path: str) -> RedirectResponse:
    """To the JSON beside a page, with the same query."""
    query = request.url.query
    return RedirectResponse(f"{path}?{query}" if query else path, 307)


def not_found(request: Request, title: str, text: str, back: str = "/", *, status: int = 404) -> HTMLResponse:
    """What went wrong, in the frame of the pages."""
    return html(request, "not_found.html", status=status, title=title, text=text, back=back)


def html(
    request: Request, name: str, *, status: int = 200, page: str = "runs", **values: Any
) -> HTMLResponse:
    """A page; ``page`` is the entry of the main navigation that it belongs to."""
    body = render(name, csrf=csrf_token(request), page=page, origin=_origin(request), **values)
    return HTMLResponse(body, status, headers={"Cache-Control": "no-store"})


def fragment(request: Request, name: str, **values: Any) -> HTMLResponse:
    """A part of a page, which its script fetches."""
    body = render(name, origin=_origin(request), **values)
    return HTMLResponse(body, headers={"Cache-Control": "no-store"})


def _origin(request: Request) -> str:
    """The address of this server as the browser knows it, for commands to copy."""
    return f"{request.url.scheme}://{request.url.netloc}"
