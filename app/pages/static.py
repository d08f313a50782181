"""The files that pages load: those of web/static, and plotly.min.js as the installed wheel carries it."""

from __future__ import annotations

import importlib.util
from functools import lru_cache
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.responses import FileResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.types import Scope

from app.resources import folder

FOREVER = "public, max-age=31536000, immutable"
ASK = "no-cache"  # keep it, but ask whether it changed


@lru_cache(maxsize=1)
def plotly_js() -> Path:
    """plotly.min.js of the installed wheel; found without importing plotly."""
    spec = importlib.util.find_spec("plotly")
    places = spec.submodule_search_locations if spec else None
    if not places:
        raise FileNotFoundError("plotly is not installed: pip install 'rooflight-server[server]'")
    return Path(places[0]) / "package_data" / "plotly.min.js"


class Files(StaticFiles):
    """A file asked for with its version never changes; a module that another one imports may."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers["Cache-Control"] = _cache(Request(scope))
        return response


def install_static(app: FastAPI) -> None:
    """Routes for /static/plotly.min.js and /static."""

    @app.get("/static/plotly.min.js", include_in_schema=False)
    async def _plotly(request: Request) -> FileResponse:
        headers = {"Cache-Control": _cache(request)}
        return FileResponse(plotly_js(), media_type="text/javascript", headers=headers)

    app.mount("/static", Files(directory=folder("web") / "static"), name="static")


def _cache(request: Request) -> str:
    return FOREVER if request.query_params.get("v") else ASK
