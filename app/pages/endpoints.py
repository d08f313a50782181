"""Routes of the pages.  Each page has its JSON: the same address with ``Accept: application/json``."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from app.advice.price import Asked, Pricing
from app.advice.question import Question, WhatIfAsked
from app.pages.answers import html, not_found, same_query, wants_json
from app.pages.kernel_view import FIRST_ROWS, MAX_ROWS, bars, cost_words, kernel_row, kernel_rows
from app.pages.list_view import list_rows
from app.pages.money_view import money_view
from app.pages.query import carried
from app.pages.run_view import run_view
from app.pages.source import Runs
from app.pages.templates import render
from app.pages.whatif_view import whatif_view
from app.problems import Problem
from app.runs.schemas import RunSummary
from app.times import iso
from rooflight.figures.roofline import subject
from rooflight.protocol import Document, Kernel

router = APIRouter(include_in_schema=False)


@router.get("/")
async def runs_list(
    request: Request, runs: Runs, cursor: str | None = None, search: str | None = None
) -> Response:
    """The runs, newest first, and the place to drop a trace."""
    if wants_json(request):
        return same_query(request, "/api/v1/runs")
    page = await runs.recent(cursor=cursor, search=search)
    rows = list_rows(page.items)
    return html(
        request, "runs.html", rows=rows, next_cursor=page.next_cursor, search=search or "", cursor=cursor
    )


@router.get("/runs/{run_id}")
async def run_page(
    request: Request,
    runs: Runs,
    run_id: str,
    asked: Asked,
    question: WhatIfAsked,
    rank: str | None = None,
    step: str | None = None,
) -> Response:
    """The page of a run; while there is no analysis, what is going on instead."""
    if wants_json(request):
        return RedirectResponse(f"/api/v1/runs/{run_id}/analysis", 307)
    run = await runs.run(run_id)
    if run is None:
        return not_found(
            request,
            "There is no such run",
            f"No run {run_id[:64]} is stored, or your token does not reach it.",
        )
    document = await runs.document(run_id)
    if document is None:
        return html(request, "run_state.html", run=run)
    try:
        return await run_in_threadpool(
            _run_html, request, run, document, _number(rank), _number(step), asked, question
        )
    except KeyError as e:
        return not_found(request, "This run has no such part", f"It holds no {e.args[0]}.", f"/runs/{run.id}")


@router.get("/runs/{run_id}/rows")
async def more_rows(request: Request, runs: Runs, run_id: str, rank: str | None = None) -> Response:
    """The rows of the kernel table that the page did not hold yet, as a fragment."""
    found = await _kernels(runs, run_id, rank)
    if found is None:
        return not_found(request, "There is no such run", "")
    rows = await run_in_threadpool(kernel_rows, found[0], FIRST_ROWS, MAX_ROWS, cpu=found[1])
    return HTMLResponse(await run_in_threadpool(render, "_rows.html", rows=rows, hidden=True))


@router.get("/runs/{run_id}/kernels/{index}")
async def kernel_detail(
    request: Request, runs: Runs, run_id: str, index: int, rank: str | None = None
) -> Response:
    """All that is known about one row of the kernel table, as a fragment."""
    found = await _kernels(runs, run_id, rank)
    if found is None or not 0 <= index < len(found[0]):
        return not_found(request, "There is no such kernel", "")
    k = found[0][index]
    said = f"launches in {len(k.histogram)} bins from shortest to longest"
    drawn = bars(k.histogram, width=192, height=54)
    return HTMLResponse(render("kernel.html", k=k, cost=cost_words(k.cost_reason), bars=drawn, said=said))


@router.get("/runs/{run_id}/kernels/{index}/point")
async def kernel_point(
    request: Request, runs: Runs, run_id: str, index: int, rank: str | None = None
) -> Response:
    """The few numbers of one row that stand beside the chart, as a fragment."""
    found = await _kernels(runs, run_id, rank)
    if found is None or not 0 <= index < len(found[0]):
        return not_found(request, "There is no such kernel", "")
    row = kernel_row(found[0], index, cpu=found[1])
    return HTMLResponse(render("point.html", r=row, rate_unit=rate_unit(found[1])))


def error_page(request: Request, told: Problem) -> Response:
    """What a person sees of an error at an address that is typed, kept or linked."""
    if told.status == 404 and told.title == "Not Found":
        return not_found(request, "There is no such page", f"Nothing is at {request.url.path[:200]}.")
    title = f"{told.title[:1].upper()}{told.title[1:]}"
    where = f"It is about {told.where}." if told.where else ""
    hint = f"{told.hint[:1].upper()}{told.hint[1:]}." if told.hint else ""
    return not_found(request, title, f"{where} {hint}".strip(), status=told.status)


def rate_unit(cpu: bool) -> str:
    """The unit of achieved rates."""
    return "GFLOP/s" if cpu else "TFLOP/s"


async def _kernels(runs: Runs, run_id: str, rank: str | None) -> tuple[list[Kernel], bool] | None:
    """The rows of the table, and whether they are those of a CPU."""
    document = await runs.document(run_id)
    if document is None:
        return None
    number = _number(rank)
    found = next((r for r in document.ranks if number is None or r.rank == number), None)
    if found is None:
        return None
    rows, roofs = subject(found)
    return rows, roofs.kind == "cpu"


def _run_html(
    request: Request,
    run: RunSummary,
    document: Document,
    rank: int | None,
    step: int | None,
    asked: Pricing,
    question: Question,
) -> HTMLResponse:
    view = run_view(document, rank, step)
    return html(
        request,
        "run.html",
        run=run,
        v=view,
        money=money_view(document, view, asked),
        whatif=whatif_view(document, view.parts, view.unit, question, asked),
        kept=carried(request.query_params),
        hidden=False,
        rate_unit=rate_unit(view.cpu),
        created=run.created_at.strftime("%-d %b %Y, %H:%M UTC"),
        created_iso=iso(run.created_at),
        world_size=document.world_size,
        missing=document.missing_ranks[:64],
    )


def _number(text: str | None) -> int | None:
    """A number from the address; ``KeyError``'s number -1 for what is none, which no rank or step has."""
    if text is None or text == "":
        return None
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else -1
