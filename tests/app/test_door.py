"""The stranger is refused first: who may read, who may change, from where."""

from __future__ import annotations

import pytest

from app.settings import Settings
from app.tokens import service as tokens
from tests.app.conftest import ADDRESS, Browser, Service, a_service, a_token


def test_a_stranger_changes_nothing(service: Service) -> None:
    answer = service.client.post("/api/v1/projects", json={"name": "x"})
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert answer.headers["content-type"] == "application/problem+json"
    assert "token" in answer.json()["title"]
    assert service.get("/projects").json() == {"items": []}


@pytest.mark.parametrize(
    "header",
    [
        "Bearer rfl_000000000000_" + "A" * 43,  # well formed, unknown
        "Bearer nonsense",
        "Bearer ",
        "Basic dXNlcjpwYXNz",
        "",
    ],
)
def test_a_wrong_token_is_401_for_reading_too(service: Service, header: str) -> None:
    for answer in (
        service.client.get("/api/v1/runs", headers={"Authorization": header}),
        service.client.post("/api/v1/projects", json={"name": "x"}, headers={"Authorization": header}),
    ):
        assert answer.status_code == 401
        assert "token is not valid" in answer.json()["title"]


def test_the_secret_decides_not_the_prefix(service: Service) -> None:
    right = service.auth["Authorization"]
    wrong = right[:-1] + ("A" if right[-1] != "A" else "B")
    assert service.client.get("/api/v1/runs", headers={"Authorization": right}).status_code == 200
    assert service.client.get("/api/v1/runs", headers={"Authorization": wrong}).status_code == 401


def test_a_token_that_reads_does_not_write(service: Service) -> None:
    reader = {"Authorization": f"Bearer {a_token(service.settings, 'read')}"}
    assert service.client.get("/api/v1/runs", headers=reader).status_code == 200
    answer = service.client.post("/api/v1/projects", json={"name": "x"}, headers=reader)
    assert answer.status_code == 403
    assert "write" in answer.json()["title"]


def test_a_token_of_one_project_sees_no_other(service: Service) -> None:
    theirs = service.a_run("theirs")
    own = service.post("/projects", json={"name": "own"}).json()
    limited = {"Authorization": f"Bearer {a_token(service.settings, project_id=own['id'])}"}
    names = [p["name"] for p in service.client.get("/api/v1/projects", headers=limited).json()["items"]]
    assert names == ["own"]
    own_parts = ("/analysis", "/kernels", "/steps", "/regimes", "/ranks", "/roofline", "/launches")
    for path in ("", *own_parts, "/findings", "/whatif"):
        assert service.client.get(f"/api/v1/runs/{theirs}{path}", headers=limited).status_code == 404
    for path in (f"/runs/{theirs}/traces", f"/runs/{theirs}/profiles", "/projects/theirs/runs"):
        answer = service.client.post(
            f"/api/v1{path}", content=b"{}", headers={**limited, "Content-Type": "application/json"}
        )
        assert answer.status_code == 404, path
    assert service.client.post("/api/v1/projects", json={"name": "new"}, headers=limited).status_code == 403


def test_a_page_of_this_server_may_upload(service: Service) -> None:
    answer = service.client.post("/api/v1/projects", json={"name": "x"}, headers=Browser(service).headers())
    assert answer.status_code == 201


def test_a_page_of_another_site_may_not(service: Service) -> None:
    headers = Browser(service).headers(origin="http://evil.example")
    answer = service.client.post("/api/v1/projects", json={"name": "x"}, headers=headers)
    assert answer.status_code == 403
    assert answer.json()["where"] == "header Origin"
    # Not with a stolen token either: a browser would send it for them.
    answer = service.post("/projects", json={"name": "x"}, headers={"Origin": "null"})
    assert answer.status_code == 403


@pytest.mark.parametrize("origin", ["http://[", "http://[::", "", "null", "http://localhost@evil.example"])
def test_an_origin_that_names_nobody_is_another_site(service: Service, origin: str) -> None:
    answer = service.post("/projects", json={"name": "x"}, headers={"Origin": origin})
    assert answer.status_code == 403
    assert answer.json()["where"] == "header Origin"


@pytest.mark.parametrize("spoil", ["other cookie", "unsigned", "no cookie"])
def test_a_csrf_token_that_does_not_match_is_403(service: Service, spoil: str) -> None:
    headers = Browser(service).headers()
    if spoil == "other cookie":
        headers["Cookie"] = f"rfl_csrf={service.app.state.signer.new_csrf()}"
    elif spoil == "unsigned":
        headers["Cookie"], headers["X-CSRF-Token"] = "rfl_csrf=abc", "abc"
    else:
        del headers["Cookie"]
    answer = service.client.post("/api/v1/projects", json={"name": "x"}, headers=headers)
    assert answer.status_code == 403
    assert "CSRF" in answer.json()["title"]


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "[::1", "192.0.2.7:8585"])
def test_another_host_name_is_not_served(service: Service, host: str) -> None:
    answer = service.client.get("/api/v1/runs", headers={"Host": host})
    assert answer.status_code == 400
    assert answer.json()["where"] == "header Host"


@pytest.mark.parametrize("host", ["localhost:9000", "127.0.0.1", "[::1]:8585", "LOCALHOST"])
def test_loopback_names_are_served(service: Service, host: str) -> None:
    assert service.client.get("/api/v1/runs", headers={"Host": host}).status_code == 200


def test_every_answer_carries_the_security_headers(service: Service) -> None:
    for path in ("/healthz", "/api/v1/runs", "/nowhere", "/openapi.json"):
        headers = service.client.get(path).headers
        assert "script-src 'self'; " in headers["content-security-policy"]
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"


def test_a_revoked_token_is_over(service: Service) -> None:
    text = a_token(service.settings)
    prefix = text.split("_")[1]
    headers = {"Authorization": f"Bearer {text}"}
    assert service.client.get("/api/v1/runs", headers=headers).status_code == 200

    async def revoke() -> bool:
        async with service.app.state.database.write() as session:
            return await tokens.revoke(session, prefix)

    assert service.client.portal is not None
    assert service.client.portal.call(revoke)
    assert service.client.get("/api/v1/runs", headers=headers).status_code == 401


class TestReachedFromElsewhere:
    """The server listens on another address than loopback."""

    @pytest.fixture
    def remote(self, settings: Settings):
        with a_service(settings.model_copy(update={"host": "0.0.0.0", "allow_remote": True})) as running:
            yield running

    def test_only_health_is_open(self, remote: Service) -> None:
        assert remote.client.get("/healthz").status_code == 200
        for path in (
            "/readyz",
            "/metrics",
            "/openapi.json",
            "/api/v1/runs",
            "/",
            "/static/css/tokens.css",
            "/runs/x",
        ):
            assert remote.client.get(path, headers={"Accept": "application/json"}).status_code == 401, path

    def test_a_browser_is_shown_the_sign_in(self, remote: Service) -> None:
        answer = remote.client.get("/", headers={"Accept": "text/html"}, follow_redirects=False)
        assert (answer.status_code, answer.headers["location"]) == (303, "/signin")
        assert "Sign in" in remote.client.get("/signin").text

    def test_signing_in_takes_a_token(self, remote: Service) -> None:
        wrong = remote.client.post("/signin", data={"token": "rfl_no"}, follow_redirects=False)
        assert wrong.status_code == 401
        text = a_token(remote.settings)
        answer = remote.client.post("/signin", data={"token": text}, follow_redirects=False)
        assert answer.status_code == 303
        cookie = answer.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert text not in cookie
        session = cookie.partition(";")[0]
        assert remote.client.get("/api/v1/runs", headers={"Cookie": session}).status_code == 200

    def test_a_session_needs_the_csrf_token_to_change(self, remote: Service) -> None:
        answer = remote.client.post(
            "/signin", data={"token": a_token(remote.settings)}, follow_redirects=False
        )
        session = answer.headers["set-cookie"].partition(";")[0]
        remote.client.cookies.clear()
        bare = remote.client.post("/api/v1/projects", json={"name": "x"}, headers={"Cookie": session})
        assert bare.status_code == 401
        headers = Browser(remote).headers()
        headers["Cookie"] += f"; {session}"
        assert remote.client.post("/api/v1/projects", json={"name": "x"}, headers=headers).status_code == 201

    def test_a_page_without_a_session_changes_nothing(self, remote: Service) -> None:
        answer = remote.client.post("/api/v1/projects", json={"name": "x"}, headers=Browser(remote).headers())
        assert answer.status_code == 401

    def test_a_forged_session_is_none(self, remote: Service) -> None:
        answer = remote.client.get("/api/v1/runs", headers={"Cookie": "rfl_session=abc.def.ghi"})
        assert answer.status_code == 401


def test_the_pages_are_told_the_csrf_token_that_the_cookie_holds(service: Service) -> None:
    answer = service.client.get("/signin")
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("rfl_csrf=")
    assert "SameSite=Strict" in cookie
    again = service.client.get("/signin", headers={"Cookie": cookie.partition(";")[0]})
    assert "set-cookie" not in again.headers
    assert ADDRESS.startswith("http://127.0.0.1")
