"""The HTML pages: the list of runs with its upload, the page of a run, and captures."""

from __future__ import annotations

from fastapi import FastAPI

from app.pages.captures import router as captures
from app.pages.endpoints import error_page, router
from app.pages.static import install_static


def install(app: FastAPI) -> None:
    """Add the pages and their files to the service."""
    install_static(app)
    app.include_router(router)
    app.include_router(captures)
    app.state.error_page = error_page
