"""An error at an address that a person opens is a page; everybody else gets problem+json."""

from __future__ import annotations

import pytest

from tests.app.conftest import Service

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


def test_an_unknown_address_is_a_page_in_a_browser(service: Service) -> None:
    answer = service.client.get("/hosts/<script>alert(1)</script>", headers=BROWSER)
    assert answer.status_code == 404
    assert answer.headers["content-type"].startswith("text/html")
    assert "There is no such page" in answer.text
    assert 'href="/"' in answer.text
    assert "<script>alert" not in answer.text


@pytest.mark.parametrize(
    ("path", "accept"),
    [("/nothing", "*/*"), ("/nothing", "application/json"), ("/api/v1/nothing", "text/html"),
     ("/static/nothing.js", "text/html")],
)  # fmt: skip
def test_a_program_gets_a_problem(service: Service, path: str, accept: str) -> None:
    answer = service.client.get(path, headers={"Accept": accept})
    assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")


def test_a_broken_address_says_what_is_wrong_with_it(service: Service) -> None:
    answer = service.client.get("/", params={"cursor": "garbage"}, headers=BROWSER)
    problem = service.get("/runs", params={"cursor": "garbage"}).json()
    assert answer.status_code == problem["status"] == 422
    assert answer.headers["content-type"].startswith("text/html")
    assert problem["title"][1:] in answer.text
    assert problem["hint"][1:] in answer.text


def test_a_wrong_method_keeps_its_status(service: Service) -> None:
    answer = service.client.post("/", headers={**service.auth, **BROWSER})
    assert (answer.status_code, answer.headers["content-type"]) == (405, "application/problem+json")
