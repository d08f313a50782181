"""The files that pages load: those of web/static, and plotly.min.js as the installed wheel carries it.

Text goes out gzip-compressed to whoever takes it: plotly.min.js is 4.8 MB, and 1.5 MB that way.
"""

from __future__ import annotations

import gzip
import importlib.util
import re
from functools import lru_cache
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import FileResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.types import Scope

from app.resources import folder

FOREVER = "public, max-age=31536000, immutable"
ASK = "no-cache"  # keep it, but ask whether it changed
_SMALLEST = 500  # under that many bytes packing gains nothing


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
        return await _dressed(await super().get_response(path, scope), Request(scope))


def install_static(app: FastAPI) -> None:
    """Routes for /static/plotly.min.js and /static."""

    files = Files(directory=folder("web") / "static")

    @app.get("/static/plotly.min.js", include_in_schema=False)
    async def _plotly(request: Request) -> Response:
        file = plotly_js()
        return await _dressed(files.file_response(file, file.stat(), request.scope), request)

    app.mount("/static", files, name="static")


async def _dressed(response: Response, request: Request) -> Response:
    """The answer with its time to live, and packed where the browser takes that."""
    response.headers["Cache-Control"] = FOREVER if request.query_params.get("v") else ASK
    response.headers["Vary"] = "Accept-Encoding"
    if not isinstance(response, FileResponse) or not _takes_gzip(request):
        return response
    file = Path(response.path)
    stat = file.stat()
    if stat.st_size < _SMALLEST:
        return response
    packed = await run_in_threadpool(_packed, file, stat.st_mtime_ns, stat.st_size)
    kept = {k: v for k, v in response.headers.items() if k not in ("content-length", "accept-ranges", "etag")}
    # Weak, since the bytes differ from those of the plain file; it still answers If-None-Match.
    tags = {"ETag": f"W/{response.headers['etag']}", "Content-Encoding": "gzip"}
    return Response(packed, response.status_code, headers=kept | tags)


def _takes_gzip(request: Request) -> bool:
    """Whether gzip is offered, and not with a weight of 0."""
    offers = request.headers.get("accept-encoding", "").lower().replace(" ", "").split(",")
    return any(o == "gzip" or re.fullmatch(r"gzip;q=(1.*|0?\.0*[1-9]\d*)", o) for o in offers)


@lru_cache(maxsize=64)
def _packed(file: Path, _mtime_ns: int, _size: int) -> bytes:
    """The file, packed once for each of its versions."""
    return gzip.compress(file.read_bytes(), 9, mtime=0)
