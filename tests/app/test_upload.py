"""A raw trace is sent: bad ones leave nothing, good ones are durable before they are answered."""

from __future__ import annotations

import gzip
import io
import json
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import func, select

from app.models import Blob, Job
from tests.app.conftest import Service

GOOD = json.dumps({"traceEvents": [], "schemaVersion": 1}).encode()


def send(service: Service, run: str, body: Any, name: str = "t.json", **headers: str) -> Any:
    return service.post(f"/runs/{run}/traces", params={"filename": name}, content=body, headers=headers)


def counted(service: Service, table: type[Blob] | type[Job]) -> int:
    async def count() -> int:
        async with service.app.state.database.read() as session:
            return await session.scalar(select(func.count()).select_from(table)) or 0

    assert service.client.portal is not None
    return service.client.portal.call(count)


def assert_nothing_kept(service: Service, run: str) -> None:
    assert service.files() == []
    assert counted(service, Blob) == counted(service, Job) == 0
    assert service.get(f"/runs/{run}").json()["state"] == "empty"
    assert service.get("/runs", params={"pending": True}).json()["items"] == []


def bomb(mib: int) -> bytes:
    """``mib`` MiB of blanks in one JSON array: a thousandth of that when packed."""
    return gzip.compress(b"[" + b" " * (mib * 2**20) + b"]")


def in_zip(**files: bytes) -> bytes:
    """A zip of ``files`` with the ending .json."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, body in files.items():
            archive.writestr(f"{name}.json", body)
    return target.getvalue()


BAD = {
    "empty": (b"", 422, "empty"),
    "only blanks": (b" \n ", 422, "empty"),
    "no JSON": (b"\x7fELF\x02\x01", 422, "not a trace"),
    "a text": (b"hello", 422, "not a trace"),
    "truncated JSON": (GOOD[:-4], 400, "truncated"),
    "truncated gzip": (gzip.compress(GOOD)[:-9], 400, "truncated"),
    "gzip without its trailer": (gzip.compress(GOOD)[:-8], 400, "truncated"),
    "gzip with a wrong CRC": (gzip.compress(GOOD)[:-8] + b"\0" * 8, 400, "damaged"),
    "gzip of nothing": (gzip.compress(b""), 422, "empty"),
    "truncated zip": (in_zip(a=GOOD)[:-9], 400, "truncated"),
    "zip of half a document": (in_zip(a=GOOD[:-4]), 400, "truncated"),
    "zip of several traces": (in_zip(a=GOOD, b=GOOD), 422, "several traces: a.json, b.json"),
    "zip of no trace": (in_zip(), 422, "holds no *.json"),
    "unpacks past the size": (bomb(40), 413, "limit"),
    "unpacks past the ratio": (bomb(30), 413, "limit"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_trace_is_refused_at_once_and_leaves_nothing(service: Service, kind: str) -> None:
    body, status, named = BAD[kind]
    run = service.a_run()
    answer = send(service, run, body)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert named in answer.json()["detail"]
    assert answer.json()["status"] == status
    assert "Traceback" not in answer.text
    assert_nothing_kept(service, run)
    assert send(service, run, GOOD).status_code == 202


def test_a_bomb_is_stopped_while_it_is_inflated(service: Service) -> None:
    """10 GB when unpacked, 10 MB when sent: refused by its first MiB, in seconds."""
    run, piece = service.a_run(), gzip.compress(b" " * 2**26)

    def body() -> Any:
        yield gzip.compress(b"[")
        for _ in range(40):  # 40 x 64 MiB, past every limit long before the end
            yield piece

    began = time.monotonic()
    answer = send(service, run, body())
    assert answer.status_code == 413, answer.text
    assert time.monotonic() - began < 10
    assert_nothing_kept(service, run)


@pytest.mark.parametrize("told", [True, False])
def test_a_trace_past_the_limit_is_413(service: Service, told: bool) -> None:
    """With a Content-Length before a byte is read, without one when the limit is passed."""
    run, body = service.a_run(), b"[" + b"1," * (2 * 2**20) + b"1]"
    answer = send(service, run, body if told else iter([body]))
    assert answer.status_code == 413
    assert_nothing_kept(service, run)


def test_a_form_is_told_how_to_send(service: Service) -> None:
    run = service.a_run()
    answer = service.post(f"/runs/{run}/traces", files={"file": ("t.json", GOOD)})
    assert answer.status_code == 415
    assert "--data-binary" in answer.json()["hint"]
    assert_nothing_kept(service, run)


def test_an_unknown_run_takes_no_trace(service: Service) -> None:
    assert send(service, "nope", GOOD).status_code == 404
    assert service.files() == []


def test_a_zip_with_one_trace_is_taken(service: Service) -> None:
    assert send(service, service.a_run(), in_zip(a=GOOD), name="artifact.zip").status_code == 202


def test_a_good_trace_is_on_disk_when_it_is_answered(service: Service) -> None:
    run = service.a_run()
    answer = send(service, run, gzip.compress(GOOD), name="rank0.json.gz")
    assert answer.status_code == 202
    job = answer.json()["job"]
    assert (job["state"], job["attempts"], job["source"]) == ("queued", 0, "rank0.json.gz")
    assert answer.headers["location"] == f"/api/v1/jobs/{job['id']}"
    assert service.get(f"/jobs/{job['id']}").json() == job
    [file] = service.files()
    assert file.startswith("blobs/")
    seen = service.get(f"/runs/{run}").json()
    assert (seen["state"], seen["job_id"]) == ("analyzing", job["id"])
    # Not listed before it has an accepted profile, unless asked for.
    assert service.get("/runs").json()["items"] == []
    assert [r["id"] for r in service.get("/runs", params={"pending": True}).json()["items"]] == [run]


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        ("<script>alert(1)</script>.json", "script>.json"),
        ("../../../etc/passwd", "passwd"),
        ("C:\\traces\\rank 0.json", "rank 0.json"),
        ("a\0b.json", "ab.json"),
        ("a\r\nSet-Cookie: x=y\x1b[31m.json", "aSet-Cookie: x=y[31m.json"),
        ("x" * 4_000, "x" * 200),
        ("..", "trace.json"),
        ("", "trace.json"),
        ("日本語.json", "日本語.json"),
    ],
)
def test_a_file_name_is_shown_never_used(service: Service, sent: str, shown: str) -> None:
    run = service.a_run()
    answer = send(service, run, GOOD, name=sent)
    assert answer.status_code == 202, answer.text
    assert answer.json()["job"]["source"] == shown
    assert all(f.startswith("blobs/") for f in service.files())


def test_the_same_trace_sent_twice_is_one_job(service: Service) -> None:
    run = service.a_run()
    first = send(service, run, GOOD, **{"Idempotency-Key": "k"})
    second = send(service, run, GOOD, **{"Idempotency-Key": "k"})
    assert (first.status_code, second.status_code) == (202, 200)
    assert first.json() == second.json()
    assert send(service, run, GOOD + b" ", **{"Idempotency-Key": "k"}).status_code == 409
    assert (counted(service, Job), counted(service, Blob), len(service.files())) == (1, 1, 1)


def test_eight_at_once_are_one_job(service: Service) -> None:
    run = service.a_run()
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: send(service, run, GOOD, **{"Idempotency-Key": "k"}), range(8)))
    assert sorted(a.status_code for a in answers) == [200] * 7 + [202]
    assert (counted(service, Job), len(service.files())) == (1, 1)


def test_equal_traces_of_two_runs_share_their_bytes(service: Service) -> None:
    for _ in range(2):
        assert send(service, service.a_run(), GOOD).status_code == 202
    assert (counted(service, Job), counted(service, Blob), len(service.files())) == (2, 1, 1)


def test_a_full_disk_is_said_and_leaves_nothing(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    from app.blobs import Incoming

    def full(_self: Incoming, _data: bytes) -> None:
        raise OSError(28, "No space left on device")

    run = service.a_run()
    with monkeypatch.context() as patch:
        patch.setattr(Incoming, "write", full)
        answer = send(service, run, GOOD)
    assert answer.status_code == 507
    assert "disk" in answer.json()["title"]
    assert_nothing_kept(service, run)
    assert send(service, run, GOOD).status_code == 202
