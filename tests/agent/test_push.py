"""Sending a kept analysis: once, and once only however often it is tried."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from agent.push import PATIENCE, push_document
from rooflight.client import Client, ClientError
from rooflight.protocol import decode, encode
from tests.agent.servers import FakeServer, Seen, accepts, running
from tests.factories import a_document


@pytest.fixture
def document(tmp_path: Path) -> Path:
    path = tmp_path / "analysis.json"
    path.write_bytes(encode(a_document()))
    return path


def a_client(url: str) -> Client:
    return Client(url, "rfl_ab_cd", retry=PATIENCE, sleep=lambda _: None)


def profiles(fake: FakeServer) -> list[Seen]:
    return [request for request in fake.seen if request.path.endswith("/profiles")]


def test_project_run_and_analysis_are_sent_in_this_order(document: Path) -> None:
    with running(FakeServer(accepts)) as fake:
        assert push_document(a_client(fake.url), document, "vision", "nightly", host="gpu-7") == "r-1"
    assert fake.paths() == ["/projects", "/projects/vision/runs", "/runs/r-1/profiles"]
    assert decode(fake.seen[2].body) == a_document()
    assert all(request.headers["authorization"] == "Bearer rfl_ab_cd" for request in fake.seen)
    assert b'"host":"gpu-7"' in fake.seen[1].body


def test_a_second_push_goes_to_the_same_run_with_the_same_key(document: Path) -> None:
    with running(FakeServer(accepts)) as fake:
        for _ in range(2):
            push_document(a_client(fake.url), document, "vision", "nightly")
    assert fake.paths() == ["/projects", "/projects/vision/runs", "/runs/r-1/profiles", "/runs/r-1/profiles"]
    first, second = profiles(fake)
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"]
    assert first.body == second.body


def test_another_name_is_another_run(document: Path) -> None:
    with running(FakeServer(accepts)) as fake:
        push_document(a_client(fake.url), document, "vision", "nightly")
        push_document(a_client(fake.url), document, "vision", "again")
    assert fake.paths().count("/projects/vision/runs") == 2


def test_another_document_has_another_key(document: Path) -> None:
    with running(FakeServer(accepts)) as fake:
        push_document(a_client(fake.url), document, "vision", "nightly")
        document.write_bytes(encode(a_document(kernels=3)))
        push_document(a_client(fake.url), document, "vision", "nightly")
    first, second = profiles(fake)
    assert first.headers["idempotency-key"] != second.headers["idempotency-key"]


def test_a_lost_answer_does_not_make_a_second_run(document: Path) -> None:
    def fails_at_the_analysis(request: Seen) -> tuple[int, dict[str, object]]:
        return (422, {"title": "no"}) if request.path.endswith("/profiles") else accepts(request)

    with running(FakeServer(fails_at_the_analysis)) as fake:
        with pytest.raises(ClientError):
            push_document(a_client(fake.url), document, "vision", "nightly")
        fake.answer = accepts
        push_document(a_client(fake.url), document, "vision", "nightly")
    assert fake.paths().count("/projects/vision/runs") == 1


@pytest.mark.parametrize("receipt", ["", "{", '{"server": 7}', "[]"])
def test_a_broken_receipt_is_passed_over(document: Path, receipt: str) -> None:
    document.with_name("sent.json").write_text(receipt)
    with running(FakeServer(accepts)) as fake:
        assert push_document(a_client(fake.url), document, "vision", "nightly") == "r-1"


def test_whoever_waits_at_the_terminal_waits_half_a_minute_at_most() -> None:
    """Bounds 2, 4, 8, 16 s before tries 2 to 5: 30 s if every draw is the largest."""
    waits = [PATIENCE.wait_s(attempt, None, draw=lambda: 1.0) for attempt in range(1, 7)]
    assert waits == [2.0, 4.0, 8.0, 16.0, None, None]
    assert all(PATIENCE.wait_s(3, None, draw=random.Random(s).random) <= 8 for s in range(50))  # type: ignore[operator]
