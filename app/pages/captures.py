"""The page of captures: order a recording of a host, and see what became of those before."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from app.pages.answers import fragment, html, same_query, wants_json
from app.pages.captures_view import capture_lines, known_hosts
from app.pages.source import Runs

router = APIRouter(include_in_schema=False)
Host = Annotated[str | None, Query(max_length=200)]


@router.get("/captures")
async def captures_page(request: Request, runs: Runs, host: Host = None) -> Response:
    """The form and the newest captures; ``host`` limits them to one."""
    if wants_json(request):
        return same_query(request, "/api/v1/captures")
    return html(
        request,
        "captures.html",
        page="captures",
        rows=capture_lines(await runs.captures(host or None)),
        hosts=known_hosts(await runs.hosts()),
        projects=await runs.projects(),
        host=host or "",
    )


@router.get("/captures/rows")
async def capture_rows(request: Request, runs: Runs, host: Host = None) -> Response:
    """The captures alone, as a fragment that the page fetches while some are pending."""
    return fragment(request, "_captures.html", rows=capture_lines(await runs.captures(host or None)))
