"""Findings, what-if and comparison over HTTP."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from rooflight import protocol
from rooflight.analysis import analyze
from rooflight.comparison import compare
from rooflight.comparison.document import document_of
from rooflight.http_form import encode_http
from rooflight.protocol import Document
from rooflight.scenarios import Money, Scenario, whatif
from tests.app.conftest import Service
from tests.recording import Recording


def document(wait: float = 300.0) -> Document:
    """Two steps of 1000 us: the loader works for ``wait`` of each, a product runs in the rest of it."""
    scene = Recording()
    for n in (0, 1):
        at = 1000.0 * n
        scene.step(n, at, 1000).host("DataLoader.__next__", at, wait, cat="user_annotation")
        scene.op("aten::mm", at + wait, [[1024, 1024], [1024, 1024]], "c10::BFloat16")
        scene.kernel("gemm_bf16", at + wait, at + wait + 5, 1000 - wait - 5)
    return analyze(scene.timeline()).document


def pushed(service: Service, found: Document) -> str:
    run = service.a_run()
    assert service.post(f"/runs/{run}/profiles", content=protocol.encode(found)).status_code in (200, 201)
    return run


def http_form(found: Any) -> Any:
    return msgspec.json.decode(encode_http(found))


def test_findings_are_those_of_the_analysis(service: Service) -> None:
    found = document()
    answer = service.get(f"/runs/{pushed(service, found)}/findings").json()
    (starved,) = (i for i in answer["items"] if i["code"] == "input-starved")
    assert (starved["saving_us"], starved["rank"]) == (300, 0)
    assert [i["code"] for i in answer["items"]] == [f.code for f in found.ranks[0].findings]


def test_findings_with_a_price_have_their_money(service: Service) -> None:
    """300 of 1000 us at 2.50 an hour: 0.75 of each hour, and 300 us x 1,000 x 2.50 / 3,600 s."""
    run = pushed(service, document())
    answer = service.get(f"/runs/{run}/findings", params={"price": "2.50"}).json()
    (starved,) = (i for i in answer["items"] if i["code"] == "input-starved")
    assert starved["money"] == pytest.approx({"per_hour": 0.75, "per_1000_steps": 0.3 * 2.5 / 3600})
    assert answer["price"] == {"per_gpu_hour": 2.5, "currency": "USD", "source": "as given", "devices": 1}
    assert answer["totals_us"] == {"0": document().ranks[0].findings_total_us}
    without = service.get(f"/runs/{run}/findings").json()
    assert without["price"] is None
    assert {i["money"] for i in without["items"]} == {None}


def test_findings_at_the_price_of_an_instance(service: Service) -> None:
    run = pushed(service, document())
    listed = service.get("/hardware/instances", params={"provider": "AWS", "region": "us-east-1"}).json()
    one = next(i for i in listed["items"] if i["usd_per_gpu_hour"])
    asked = {"instance": f"{one['instance']}@{one['region']}", "provider": "AWS"}
    answer = service.get(f"/runs/{run}/findings", params=asked).json()
    assert answer["price"]["per_gpu_hour"] == pytest.approx(one["usd_per_gpu_hour"])
    for wrong in ({"instance": "nowhere.large"}, {"price": "free"}, {"price": "1", **asked}):
        refused = service.get(f"/runs/{run}/findings", params=wrong)
        assert 400 <= refused.status_code < 500, wrong


def test_whatif_is_the_answer_of_the_library(service: Service) -> None:
    found = document()
    run = pushed(service, found)
    asked = {"gpu": "NVIDIA H200", "input_ready": True, "price": 2.5}
    answer = service.get(f"/runs/{run}/whatif", params=asked).json()
    expected = whatif(
        found, scenario=Scenario("NVIDIA H200", input_ready=True), money=Money(2.5, "asked for")
    )
    mine = http_form(expected)
    for field in ("kernel_time_us", "step_time_us", "unknown_share", "cost_per_step", "gpu"):
        assert answer[field] == mine[field], field
    assert answer["cost_per_step"] is not None


def test_a_whatif_on_an_unknown_gpu_is_refused(service: Service) -> None:
    answer = service.get(f"/runs/{pushed(service, document())}/whatif", params={"gpu": "Foo X1"})
    assert answer.status_code in (400, 422)
    assert "Foo X1" in answer.text


def test_runs_are_compared(service: Service) -> None:
    slow, fast = document(300), document(100)
    base, head = pushed(service, slow), pushed(service, fast)
    answer = service.get("/compare", params={"base": base, "head": head}).json()
    mine = http_form(document_of(compare(slow, fast)))
    assert (answer["total"], answer["parts"]) == (mine["total"], mine["parts"])
    assert service.get("/compare", params={"base": base, "head": "nope"}).status_code == 404
