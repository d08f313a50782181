"""The files of the pages: packed for browsers that take it, plain for the others, kept by both."""

from __future__ import annotations

import gzip

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from app.pages.static import install_static, plotly_js
from app.resources import folder

CSS = "/static/css/app.css"


@pytest.fixture
def client() -> TestClient:
    app = FastAPI()
    install_static(app)
    return TestClient(app)


def raw(client: TestClient, path: str, accept: str, **headers: str) -> tuple[dict[str, str], bytes, int]:
    """Headers, bytes as they came over the wire, status."""
    with client.stream("GET", path, headers={"Accept-Encoding": accept, **headers}) as answer:
        return dict(answer.headers), b"".join(answer.iter_raw()), answer.status_code


@pytest.mark.parametrize(
    ("path", "original"),
    [(CSS, folder("web") / "static/css/app.css"), ("/static/plotly.min.js", plotly_js())],
)
def test_text_goes_out_packed(client: TestClient, path: str, original: object) -> None:
    plain = original.read_bytes()  # type: ignore[attr-defined]
    headers, body, _ = raw(client, path, "gzip, deflate, br")
    assert (headers["content-encoding"], headers["vary"]) == ("gzip", "Accept-Encoding")
    assert gzip.decompress(body) == plain
    assert int(headers["content-length"]) == len(body) < len(plain) / 2.5
    assert headers["content-type"].startswith(("text/css", "text/javascript"))


@pytest.mark.parametrize("accept", ["identity", "", "gzip;q=0", "br, gzip;q=0.0"])
def test_who_does_not_take_gzip_gets_the_file_as_it_is(client: TestClient, accept: str) -> None:
    headers, body, _ = raw(client, CSS, accept)
    assert "content-encoding" not in headers
    assert body == (folder("web") / "static/css/app.css").read_bytes()


@pytest.mark.parametrize("accept", ["gzip;q=0.5", "gzip;q=1.0", "br;q=1, GZIP"])
def test_a_weight_above_zero_is_an_offer(client: TestClient, accept: str) -> None:
    assert raw(client, CSS, accept)[0]["content-encoding"] == "gzip"


@pytest.mark.parametrize("path", [CSS, "/static/plotly.min.js"])
@pytest.mark.parametrize("accept", ["gzip", "identity"])
def test_a_file_that_did_not_change_is_not_sent_again(client: TestClient, path: str, accept: str) -> None:
    tag = raw(client, path, accept)[0]["etag"]
    headers, body, status = raw(client, path, accept, **{"If-None-Match": tag})
    assert (status, body, headers["cache-control"]) == (304, b"", "no-cache")
    forever = raw(client, f"{path}?v=1", accept)[0]["cache-control"]
    assert forever == "public, max-age=31536000, immutable"
