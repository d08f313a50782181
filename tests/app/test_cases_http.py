"""Every case by HTTP: sent to the service, done by its own job, asked back; or refused, with nothing kept."""

from __future__ import annotations

import html
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from app.ingest.tasks import analyzed, perform
from app.jobs import queue
from app.models import Blob, Profile, RunDocument
from app.settings import Settings
from rooflight import analyze, read
from rooflight.errors import Refused
from rooflight.http_form import BIG, http_form
from tests.app.conftest import Service, a_postgres, a_service
from tests.cases import PARTS, Answer, Part, by_command, differences, parts_of, strict_json

WORKER = "test"
REFUSED = [p for p in PARTS if p.outcome == "reject"]


def label(value: Any) -> str | None:
    return value.label if isinstance(value, Part) else None


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)], scope="module")
def service(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One service for all cases, as in life: what one leaves behind would meet the next."""
    data = tmp_path_factory.mktemp("data")
    if request.param == "sqlite":
        with a_service(settings(data, f"sqlite:///{data}/rooflight.db")) as running:
            yield running
        return
    with a_postgres() as url, a_service(settings(data, url)) as running:
        yield running


def settings(data: Path, url: str, **more: Any) -> Settings:
    return Settings(data=data, database=url, workers=0, unpacked_bytes=32 * 2**20, **more)


@dataclass(frozen=True)
class Sent:
    """What came of the files of a part: the answer to the last one, and the status that it had."""

    run: str
    status: int
    answer: Answer


def send(service: Service, run: str, file: Path) -> tuple[int, dict[str, Any]]:
    """The status of a trace that was sent, at whichever moment it was known, and the job or the problem."""
    answer = service.post(f"/runs/{run}/traces", params={"filename": file.name}, content=file.read_bytes())
    said = strict_json(answer.text)
    if answer.status_code != 202:
        assert answer.headers["content-type"] == "application/problem+json"
        return answer.status_code, said
    work(service, said["job"]["id"])
    seen = service.get(f"/jobs/{said['job']['id']}")
    assert seen.status_code == 200
    job = strict_json(seen.text)
    if job["state"] == "done":
        return 202, job
    assert job["state"] == "refused", job
    return job["problem"]["status"], job["problem"]


def work(service: Service, job: str) -> None:
    """Do the job as a child process would, in this one."""
    database = service.app.state.database

    async def act() -> None:
        async with database.write() as session:
            claimed = await queue.claim(session, WORKER, 60)
            assert claimed is not None
            assert claimed.id == job
        await perform(job, WORKER, service.settings, database, analyzed)

    assert service.client.portal is not None
    service.client.portal.call(act)


def ask(service: Service, part: Part, run: str | None = None) -> Sent:
    """Send the files of a part one after the other; all but the last are taken."""
    run = service.a_run() if run is None else run
    *first, last = part.files
    for file in first:
        assert send(service, run, file)[0] == 202
    status, said = send(service, run, last)
    if status != 202:
        return Sent(run, status, Answer(None, said["detail"]))
    answer = service.get(f"/runs/{run}/analysis")
    assert answer.status_code == 200
    return Sent(run, status, Answer(strict_json(answer.text)))


def kept(service: Service) -> tuple[Any, ...]:
    """All that a trace can leave: files, blobs, profiles, analyses, listed runs."""

    async def rows() -> list[int]:
        async with service.app.state.database.read() as session:
            tables = (Blob, Profile, RunDocument)
            return [await session.scalar(select(func.count()).select_from(t)) or 0 for t in tables]

    assert service.client.portal is not None
    listed = service.get("/runs", params={"pending": True, "limit": 200}).json()["items"]
    return service.files(), service.client.portal.call(rows), [(r["id"], r["state"]) for r in listed]


def numbers(value: Any, key: str = "") -> Any:
    """The analysis as the command line writes it: over HTTP big integers are decimal strings."""
    if isinstance(value, dict):
        return {k: numbers(v, k) for k, v in value.items()}
    if isinstance(value, list):
        return [numbers(v, key) for v in value]
    return int(value) if key in BIG and value is not None else value


@pytest.mark.parametrize("part", [p for p in PARTS if p.outcome != "reject"], ids=label)
def test_a_case_gets_its_answer(service: Service, part: Part) -> None:
    sent = ask(service, part)
    if sent.answer.document is None:
        assert part.ways, sent.answer.words
        assert differences(part, sent.answer) == []
        return
    assert differences(part, Answer(numbers(sent.answer.document))) == []
    # By command line and by HTTP one answer; what a case forbids is looked for there.
    assert sent.answer.document == http_form(by_command(part).answer.document)
    assert_every_view_agrees(service, sent)


def assert_every_view_agrees(service: Service, sent: Sent) -> None:
    document = sent.answer.document
    assert document is not None
    names = [k["name"] for r in document["ranks"] for k in kernels(r)]
    assert sorted(row["name"] for row in pages(service, sent.run, "kernels")) == sorted(names)
    steps = [(r["rank"], s["n"], s["step_time_us"]) for r in document["ranks"] for s in r["steps"]]
    recorded = [s for s in pages(service, sent.run, "steps") if s["source"] == "recorded"]
    assert [(s["rank"], s["n"], s["step_time_us"]) for s in recorded] == steps
    ranks = strict_json(service.get(f"/runs/{sent.run}/ranks").text)
    assert [r["devices"] for r in ranks["items"]] == [r["devices"] for r in document["ranks"]]
    assert ranks["missing_ranks"] == document["missing_ranks"]
    listed = service.get("/runs", params={"limit": 200}).json()["items"]
    assert [r["state"] for r in listed if r["id"] == sent.run] == ["ready"]
    page = html.unescape(service.client.get(f"/runs/{sent.run}", headers={"Accept": "text/html"}).text)
    for flag in [*document["flags"], *document["ranks"][0]["flags"]]:
        assert f">{flag['code']}<" in page
        assert flag["detail"] in page


def kernels(rank: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of a rank; of one without GPU work the ops of its CPU."""
    rows: list[dict[str, Any]] = rank["kernels"] or (rank["cpu"] or {"ops": []})["ops"]
    return rows


def pages(service: Service, run: str, what: str) -> list[dict[str, Any]]:
    """The rows of a paged list; no case has more than one page of them."""
    answer = strict_json(service.get(f"/runs/{run}/{what}", params={"limit": 2000}).text)
    assert answer["next_cursor"] is None
    items: list[dict[str, Any]] = answer["items"]
    return items


@pytest.mark.parametrize("part", REFUSED, ids=label)
def test_a_refusal_leaves_nothing_and_the_good_input_is_taken(service: Service, part: Part) -> None:
    run = service.a_run()
    *first, last = part.files
    for file in first:
        assert send(service, run, file)[0] == 202
    before = kept(service)
    status, problem = send(service, run, last)
    assert status in part.statuses, "among them no 5xx"
    assert problem["status"] == status == the_status(part)
    assert differences(part, Answer(None, problem["detail"])) == []
    assert kept(service) == before
    assert_still_as_it_was(service, run, listed=bool(first))
    # Right after it, in the same process; in the same run where that run has no rank of its own yet.
    good = ask(service, part.good, None if first else run)
    assert differences(part.good, good.answer) == []


def the_status(part: Part) -> int:
    """The status of the refusal where all files are read and analysed at once."""
    with pytest.raises(Refused) as caught:
        analyze([read(file) for file in part.files])
    return caught.value.status


def assert_still_as_it_was(service: Service, run: str, *, listed: bool) -> None:
    seen = service.get(f"/runs/{run}/analysis")
    assert seen.status_code == (200 if listed else 404)
    if listed:
        # The second file of a rank is refused and the first stays.
        assert [r["rank"] for r in seen.json()["ranks"]] == [1]


def test_a_bomb_costs_little_memory_and_time(service: Service) -> None:
    """The process that takes it grows by less than what it would unpack to."""
    [part] = parts_of("15-gzip-bomb")
    run, before, began = service.a_run(), rss_mib("VmRSS"), time.monotonic()
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    status, _ = send(service, run, part.files[0])
    assert status in part.statuses
    assert time.monotonic() - began < part.expect["seconds_max"]
    assert rss_mib("VmHWM") - before < part.expect["peak_rss_growth_mib_max"]


def rss_mib(field: str) -> float:
    [line] = [x for x in Path("/proc/self/status").read_text().splitlines() if x.startswith(field)]
    return int(line.split()[1]) / 1024


def test_the_process_of_a_job_answers_the_same(tmp_path: Path) -> None:
    """A refusal that only the analysis finds, and the good input after it, each in a child process."""
    [part] = parts_of("09-missing-key-quote")
    real = settings(tmp_path, f"sqlite:///{tmp_path}/rooflight.db").model_copy(update={"workers": 1})
    with a_service(real) as service:
        run = service.a_run()
        job = done(service, run, part.files[0])
        assert (job["state"], job["problem"]["status"]) == ("refused", the_status(part))
        assert differences(part, Answer(None, job["problem"]["detail"])) == []
        assert done(service, run, part.good.files[0])["state"] == "done"
        answer = strict_json(service.get(f"/runs/{run}/analysis").text)
    assert differences(part.good, Answer(numbers(answer))) == []


def done(service: Service, run: str, file: Path) -> dict[str, Any]:
    """The job of a trace when a worker has ended it."""
    sent = service.post(f"/runs/{run}/traces", params={"filename": file.name}, content=file.read_bytes())
    end = time.monotonic() + 60
    while time.monotonic() < end:
        job: dict[str, Any] = service.get(f"/jobs/{sent.json()['job']['id']}").json()
        if job["state"] not in ("queued", "running"):
            return job
        time.sleep(0.05)
    raise AssertionError(f"still {job}")
