"""Projects and runs: made, listed in pages, searched."""

from __future__ import annotations

from typing import Any

import pytest

from rooflight import protocol
from tests.app.conftest import Service
from tests.factories import a_document


def a_ready_run(service: Service, project: str = "demo", **body: Any) -> str:
    run = service.a_run(project, **body)
    document = a_document(kernels=1, steps=1)
    assert service.post(f"/runs/{run}/profiles", content=protocol.encode(document)).status_code == 201
    return run


def test_a_project_is_made_once(service: Service) -> None:
    first = service.post("/projects", json={"name": "team/llm"})
    again = service.post("/projects", json={"name": "team/llm"})
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json()
    by_name = service.post("/projects/team%2Fllm/runs", json={})
    by_id = service.post(f"/projects/{first.json()['id']}/runs", json={})
    assert [by_name.json()["number"], by_id.json()["number"]] == [1, 2]
    assert by_name.json()["project"] == "team/llm"


@pytest.mark.parametrize("name", ["", "   ", "\0", "x" * 201, None, 3])
def test_a_project_needs_a_name(service: Service, name: Any) -> None:
    answer = service.post("/projects", json={"name": name})
    assert answer.status_code == 422
    assert answer.json()["where"] == "body.name"


def test_runs_are_numbered_within_their_project(service: Service) -> None:
    numbers = [service.get(f"/runs/{service.a_run(p)}").json()["number"] for p in ("a", "a", "b", "a")]
    assert numbers == [1, 2, 1, 3]


def test_the_list_is_paged_newest_first(service: Service) -> None:
    made = [a_ready_run(service) for _ in range(5)]
    seen, cursor = [], None
    for size in (2, 2, 1):
        page = service.get("/runs", params={"limit": 2, **({"cursor": cursor} if cursor else {})}).json()
        assert len(page["items"]) == size
        seen += [r["id"] for r in page["items"]]
        cursor = page["next_cursor"]
    assert cursor is None
    assert seen == made[::-1]


def test_a_run_without_a_profile_is_not_listed(service: Service) -> None:
    run = service.a_run()
    assert service.get("/runs").json()["items"] == []
    assert service.get(f"/runs/{run}").json()["state"] == "empty"


@pytest.mark.parametrize(
    "cursor", ["x", "%00", "MTIz", "====", "9" * 60, "LTF8eA", "OTk5OTk5OTk5OTk5OTk5OTk5OTk5OTk5OXx4"]
)
def test_a_cursor_of_somebody_else_is_422(service: Service, cursor: str) -> None:
    answer = service.get("/runs", params={"cursor": cursor})
    assert answer.status_code in (200, 422)
    if answer.status_code == 422:
        assert answer.json()["where"] == "query.cursor"


@pytest.mark.parametrize(
    ("search", "found"),
    [
        ("ÜBER", ["Überlauf 100%"]),
        ("überlauf", ["Überlauf 100%"]),
        ("100%", ["Überlauf 100%"]),
        ("%", ["Überlauf 100%"]),
        ("_", []),
        ("second", ["second project run"]),
        ("v100", ["second project run", "Überlauf 100%"]),
        ("train.pt", ["second project run", "Überlauf 100%"]),
        ("nothing", []),
    ],
)
def test_a_search_finds_the_same_on_every_database(service: Service, search: str, found: list[str]) -> None:
    a_ready_run(service, name="Überlauf 100%")
    a_ready_run(service, project="second", name="second project run")
    assert [r["name"] for r in service.get("/runs", params={"search": search}).json()["items"]] == found


def test_runs_of_one_project(service: Service) -> None:
    a_ready_run(service, project="a")
    b = a_ready_run(service, project="b")
    assert [r["id"] for r in service.get("/runs", params={"project": "b"}).json()["items"]] == [b]


def test_what_is_not_there_is_404_as_a_problem(service: Service) -> None:
    for path in ("/runs/x", "/runs/x/analysis", "/runs/x/kernels", "/jobs/x", "/nowhere"):
        answer = service.get(path)
        assert answer.status_code == 404
        assert answer.headers["content-type"] == "application/problem+json"
        assert set(answer.json()) == {"type", "title", "status", "detail", "where", "hint"}
    run = a_ready_run(service)
    answer = service.get(f"/runs/{run}/roofline", params={"rank": 7})
    assert (answer.status_code, answer.json()["where"]) == (404, "rank 7")


def test_a_method_that_is_none_is_405(service: Service) -> None:
    answer = service.client.delete("/api/v1/runs", headers=service.auth)
    assert answer.status_code == 405
    assert answer.json()["status"] == 405


def test_the_roofline_is_a_plotly_figure(service: Service) -> None:
    figure = service.get(f"/runs/{a_ready_run(service)}/roofline").json()
    assert {"data", "layout"} <= set(figure)


def test_the_roofline_has_levels_and_number_types(service: Service) -> None:
    run = a_ready_run(service)
    for level, noun in {
        "kernel": "group",
        "op": "op",
        "module": "module",
        "step": "step",
        "run": "rank",
    }.items():
        meta = service.get(f"/runs/{run}/roofline", params={"level": level}).json()["layout"]["meta"]
        assert (meta["level"], meta["noun"], meta["dtype"]) == (level, noun, None)
    [dtype, *_] = meta["dtypes"]
    one = service.get(f"/runs/{run}/roofline", params={"dtype": dtype}).json()["layout"]["meta"]
    assert one["dtype"] == dtype
    assert [r["dtypes"] for r in one["roofs"] if r["used"]] == [[dtype]]
    cache = service.get(f"/runs/{run}/roofline", params={"memory": "l2"}).json()["layout"]["meta"]
    assert (cache["memory_level"], cache["memory_levels"], cache["n_plotted"]) == ("l2", ["dram"], 0)
    for wrong in ({"level": "layer"}, {"memory": "l3"}):
        assert service.get(f"/runs/{run}/roofline", params=wrong).status_code == 422


def test_the_roofline_of_a_run_without_rank_0_is_that_of_its_lowest_rank(service: Service) -> None:
    run, document = service.a_run(), a_document(kernels=3, steps=1)
    document.ranks[0].rank = 5
    service.post(f"/runs/{run}/profiles", content=protocol.encode(document))
    unnamed, named = (service.get(f"/runs/{run}/roofline", params=p) for p in ({}, {"rank": 5}))
    assert unnamed.status_code == 200
    assert unnamed.json() == named.json()


def test_many_kernels_come_in_bounded_pages(service: Service) -> None:
    run = service.a_run()
    kernels = [{"name": f"kernel_{i}", "time_us": i + 1} for i in range(5_000)]
    assert service.post(f"/runs/{run}/profiles", json={"kernels": kernels}).status_code == 201
    page = service.get(f"/runs/{run}/kernels", params={"limit": 2_000})
    assert len(page.content) < 5_000_000
    assert (page.json()["total"], page.json()["items"][0]["name"]) == (5_000, "kernel_4999")
    assert service.get(f"/runs/{run}/kernels", params={"limit": 2_001}).status_code == 422
