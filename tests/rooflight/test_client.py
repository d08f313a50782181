"""The client against a server that answers from a script, and `rooflight upload` on top of it."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from rooflight.bodies import CHUNK
from rooflight.calibration import Calibration
from rooflight.cli.main import main
from rooflight.client import Client, Rejected, Unreachable
from rooflight.errors import Refused
from rooflight.protocol import decode
from rooflight.proxy import is_loopback
from rooflight.retry import RETRIED_STATUS, Retry
from tests.factories import a_document

TOKEN = "rfl_abc_0123456789"


@dataclass
class Seen:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Script:
    """Answers in the order given: (status, JSON, headers); ``drop`` hangs up without one; a request
    beyond the script is a failure of the test."""

    answers: list = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    url: str = ""

    def next(self):
        return self.answers.pop(0) if self.answers else (599, {"title": "not in the script"}, {})


def handler_of(script: Script) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            what = script.next()
            if what == "early":  # refuses before the body is read
                self.reply(413, {"title": "too large"}, {"Connection": "close"})
                script.seen.append(Seen(self.command, self.path, dict(self.headers), b""))
                return
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            script.seen.append(Seen(self.command, self.path, dict(self.headers), body))
            if what == "drop":
                self.close_connection = True
                return
            self.reply(*what)

        def reply(self, status: int, answer, headers=None) -> None:
            data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PUT = answer  # noqa: N815

        def log_message(self, *args) -> None:
            pass

    return Handler


class Server(ThreadingHTTPServer):
    daemon_threads = False  # so that leaving the block waits for every answer


@pytest.fixture
def script() -> Iterator[Script]:
    script = Script()
    with Server(("127.0.0.1", 0), handler_of(script)) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        script.url = f"http://127.0.0.1:{server.server_port}"
        yield script
        server.shutdown()
        thread.join()
    assert script.answers == [], "every scripted answer was asked for"


def client_of(script: Script, **kw) -> tuple[Client, list[float]]:
    """A client that notes how long it would sleep; the jitter draws its longest."""
    slept: list[float] = []
    return Client(script.url, TOKEN, sleep=slept.append, draw=lambda: 1.0, **kw), slept


JOB = {"job": {"id": "j1", "state": "queued", "run_id": "r1", "problem": None, "more": 1}}


def test_a_project_and_a_run_are_made_with_token_and_key(script):
    script.answers = [(201, {"id": "p/1", "name": "vision"}), (200, {"id": "r1", "name": "nightly"})]
    client, slept = client_of(script)
    project = client.create_project("vision")
    assert (project.id, project.name) == ("p/1", "vision")
    assert client.create_run(project.id, "nightly", host="gpu-7").id == "r1"
    first, second = script.seen
    assert (first.method, first.path) == ("POST", "/api/v1/projects")
    assert json.loads(first.body) == {"name": "vision"}
    assert second.path == "/api/v1/projects/p%2F1/runs"
    assert json.loads(second.body) == {"name": "nightly", "host": "gpu-7"}
    assert first.headers["Authorization"] == f"Bearer {TOKEN}"
    assert first.headers["Content-Type"] == "application/json"
    assert len(first.headers["Idempotency-Key"]) == 32
    assert first.headers["Idempotency-Key"] != second.headers["Idempotency-Key"]
    assert slept == []


def test_a_run_is_told_what_a_step_of_its_traces_holds(script):
    script.answers = [(201, {"id": "r1"})]
    client, _ = client_of(script)
    client.create_run("p", units_per_step={"tokens": 8192})
    assert json.loads(script.seen[0].body) == {"units_per_step": {"tokens": 8192}}


def test_a_trace_is_streamed_as_it_is_with_progress(script, tmp_path):
    content = bytes(range(256)) * (3 * CHUNK // 256) + b"tail"
    path = tmp_path / "a b&c.json.gz"
    path.write_bytes(gzip.compress(content, 0))
    size, sent = path.stat().st_size, []
    script.answers = [(202, JOB)]
    job = client_of(script)[0].upload_trace("r1", path, lambda done, total: sent.append((done, total)))
    assert (job.id, job.state, job.run_id) == ("j1", "queued", "r1")
    assert script.seen[0].path == "/api/v1/runs/r1/traces?filename=a+b%26c.json.gz"
    assert script.seen[0].headers["Content-Type"] == "application/gzip"
    assert gzip.decompress(script.seen[0].body) == content
    assert sent[0] == (CHUNK, size)
    assert sent[-1] == (size, size)
    assert [s for s, _ in sent] == sorted({s for s, _ in sent})


def test_an_empty_file_is_sent_so_that_the_server_says_so(script, tmp_path):
    (tmp_path / "empty.json").touch()
    script.answers = [
        (400, {"title": "the file is empty", "status": 400, "where": "byte 0", "hint": "send another"})
    ]
    with pytest.raises(Rejected, match=r"400: the file is empty \(byte 0\)\. send another") as e:
        client_of(script)[0].upload_trace("r1", tmp_path / "empty.json")
    assert e.value.status == 400


@pytest.mark.parametrize("status", sorted(RETRIED_STATUS))
def test_what_may_pass_is_tried_again_with_the_same_key_and_body(script, tmp_path, status):
    (tmp_path / "t.json").write_bytes(b'{"traceEvents": []}')
    script.answers = [(status, {}), (status, b"<html>"), (202, JOB)]
    client, slept = client_of(script)
    assert client.upload_trace("r1", tmp_path / "t.json").id == "j1"
    assert len({s.headers["Idempotency-Key"] for s in script.seen}) == 1
    assert [s.body for s in script.seen] == [b'{"traceEvents": []}'] * 3
    assert slept == [0.5, 1.0]  # 0.5 x 2^0, 0.5 x 2^1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 413, 415, 422, 301, 307])
def test_what_will_not_pass_is_not_tried_again(script, status):
    script.answers = [(status, {"title": "no", "status": status}, {"Location": "http://elsewhere.example/"})]
    client, slept = client_of(script)
    with pytest.raises(Rejected, match=f"{status}: no") as e:
        client.create_project("p")
    assert e.value.status == status
    assert len(script.seen) == 1
    assert slept == []


def test_tries_are_bounded_and_the_last_reason_is_told(script):
    script.answers = [(503, {"title": "starting"})] * 5
    client, slept = client_of(script)
    with pytest.raises(Rejected, match="503: starting"):
        client.create_project("p")
    assert slept == [0.5, 1.0, 2.0, 4.0]


def test_a_connection_that_breaks_is_tried_again(script):
    script.answers = ["drop", "drop", (200, {"id": "p1", "name": "p"})]
    client, slept = client_of(script)
    assert client.create_project("p").id == "p1"
    assert len(slept) == 2


def test_nobody_there_is_said_with_the_address():
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as closed:
        port = closed.server_port
    client = Client(f"http://127.0.0.1:{port}", sleep=lambda s: None, retry=Retry(tries=2))
    with pytest.raises(Unreachable, match=f"no answer from http://127.0.0.1:{port}: .*refused"):
        client.create_project("p")


def test_the_server_may_ask_for_more_patience_but_not_for_any(script):
    script.answers = [(429, {}, {"Retry-After": "7"}), (429, {"title": "slow down"}, {"Retry-After": "601"})]
    client, slept = client_of(script)
    with pytest.raises(Rejected, match="429: slow down"):
        client.create_project("p")
    assert slept == [7.0]


def test_a_server_that_refuses_early_is_heard(script, tmp_path):
    (tmp_path / "big.json").write_bytes(b" " * (8 << 20))
    script.answers = ["early"]
    with pytest.raises(Rejected, match="413: too large"):
        client_of(script, retry=Retry(tries=1))[0].upload_trace("r1", tmp_path / "big.json")


def test_an_answer_of_another_program_is_no_answer(script):
    script.answers = [(200, b"<html>router login</html>")]
    with pytest.raises(Unreachable, match="not that of a Rooflight server"):
        client_of(script)[0].create_project("p")


def test_an_analysis_is_pushed_under_the_hash_of_its_bytes(script):
    script.answers = [(201, {"id": "x"}), (200, {"id": "x"})]
    client, _ = client_of(script)
    client.push_analysis("r1", a_document())
    client.push_analysis("r1", a_document())
    a, b = script.seen
    assert a.path == "/api/v1/runs/r1/profiles"
    assert decode(a.body) == a_document()
    assert a.headers["Idempotency-Key"] == b.headers["Idempotency-Key"] == hashlib.sha256(a.body).hexdigest()


def test_a_calibration_is_pushed(script):
    script.answers = [(201, {"id": "c"})]
    client_of(script)[0].push_calibration(Calibration("EPYC", "cpu", "2026-12-01T00:00:00Z", stream_gbs=40.0))
    assert script.seen[0].path == "/api/v1/calibrations"
    assert json.loads(script.seen[0].body)["stream_gbs"] == 40.0


def test_waiting_asks_until_the_job_has_ended(script):
    states = ["queued", "running", "running", "done"]
    script.answers = [(200, {"id": "j1", "state": s, "run_id": "r1"}) for s in states]
    client, slept = client_of(script)
    assert client.wait("j1").state == "done"
    assert {s.path for s in script.seen} == {"/api/v1/jobs/j1"}
    assert slept == pytest.approx([0.2, 0.3, 0.45])


def test_waiting_has_an_end(script):
    script.answers = [(200, {"id": "j1", "state": "running"})] * 3
    with pytest.raises(Unreachable, match="still running"):
        client_of(script)[0].wait("j1", timeout_s=0.4)  # 0.2 + 0.3 >= 0.4


# ---- what is never sent ----


@pytest.mark.parametrize(
    "url", ["http://rooflight.example", "http://10.0.0.7:8585", "http://127.0.0.1.evil.example"]
)
def test_a_token_never_crosses_a_network_in_plain_text(url):
    with pytest.raises(Refused, match="plain http"):
        Client(url, TOKEN)
    assert Client(url).token is None, "without a token there is nothing to lose"
    assert Client(url, TOKEN, insecure=True).token == TOKEN
    assert Client(url.replace("http:", "https:"), TOKEN).token == TOKEN


def test_loopback():
    assert all(map(is_loopback, ["localhost", "LOCALHOST.", "127.0.0.1", "127.9.9.9", "::1"]))
    assert not any(map(is_loopback, ["localhost.example", "10.0.0.1", "0.0.0.0", "", "127.0.0.1.example"]))


@pytest.mark.parametrize(
    "url",
    ["", "rooflight", "ftp://x", "http://", "http://x?a=1", "http://u:p@x", "http://x:99999", "http://[x"],
)
def test_an_address_that_is_none_is_refused(url):
    with pytest.raises(Refused):
        Client(url)


def test_a_token_that_would_break_the_header_is_refused_and_not_repeated():
    for token in ("secret\r\nX: y", "sécret", ""):
        with pytest.raises(Refused) as e:
            Client("https://x.example", token)
        assert "cret" not in str(e.value)
    assert TOKEN not in repr(Client("https://x.example", TOKEN))


def test_a_file_that_cannot_be_read_is_no_matter_of_the_network(tmp_path):
    client = Client("http://127.0.0.1:9", sleep=pytest.fail)
    with pytest.raises(Refused, match="cannot read the trace"):
        client.upload_trace("r1", tmp_path / "none.json")


def test_a_file_that_shrinks_is_refused(script, tmp_path):
    path = tmp_path / "t.json"
    path.write_bytes(b" " * (2 * CHUNK))
    client, _ = client_of(script)  # the request never ends, so there is no answer to script

    def cut(sent: int, total: int) -> None:
        path.write_bytes(b"")

    with pytest.raises(Refused, match="shorter"):
        client.upload_trace("r1", path, cut)


# ---- the command ----


@pytest.fixture
def trace(tmp_path, monkeypatch):
    for name in ("SERVER", "TOKEN", "PROJECT"):
        monkeypatch.delenv(f"ROOFLIGHT_{name}", raising=False)
    path = tmp_path / "t.json"
    path.write_bytes(b'{"traceEvents": []}')
    return path


MADE = [(201, {"id": "p1", "name": "vision"}), (201, {"id": "r1", "name": "nightly"}), (202, JOB)]


def test_upload_prints_the_page(script, trace, capsys):
    script.answers = [*MADE, (200, {"id": "j1", "state": "done", "run_id": "r1"})]
    argv = ["upload", str(trace), "--server", script.url + "/", "--project", "vision", "--run", "nightly"]
    assert main([*argv, "--token", TOKEN]) == 0
    assert capsys.readouterr().out == f"{script.url}/runs/r1\n"
    assert [s.path for s in script.seen][1] == "/api/v1/projects/p1/runs"


def test_upload_takes_its_settings_from_the_environment(script, trace, capsys, monkeypatch):
    monkeypatch.setenv("ROOFLIGHT_SERVER", script.url)
    monkeypatch.setenv("ROOFLIGHT_TOKEN", TOKEN)
    monkeypatch.setenv("ROOFLIGHT_PROJECT", "from-env")
    script.answers = list(MADE)
    assert main(["upload", str(trace), "--no-wait"]) == 0
    assert json.loads(script.seen[0].body) == {"name": "from-env"}
    assert json.loads(script.seen[1].body) == {}, "the server names the run"
    assert script.seen[0].headers["Authorization"] == f"Bearer {TOKEN}"
    assert capsys.readouterr().out.startswith(script.url)


def test_a_refused_trace_ends_with_2_and_one_line(script, trace, capsys):
    problem = {
        "title": "no traceEvents",
        "status": 422,
        "detail": "d",
        "where": "byte 3",
        "hint": "send a trace",
    }
    script.answers = [*MADE, (200, {"id": "j1", "state": "refused", "run_id": "r1", "problem": problem})]
    assert main(["upload", str(trace), "--server", script.url]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == f"rooflight upload: no traceEvents ({trace}: byte 3). send a trace\n"


def test_a_failed_analysis_says_why(script, trace, capsys):
    problem = {
        "title": "the analysis failed",
        "status": 500,
        "detail": "tried 3 times: killed",
        "where": "",
        "hint": "",
    }
    script.answers = [*MADE, (200, {"id": "j1", "state": "failed", "run_id": "r1", "problem": problem})]
    assert main(["upload", str(trace), "--server", script.url]) == 2
    assert (
        capsys.readouterr().err == f"rooflight upload: the analysis failed: tried 3 times: killed ({trace})\n"
    )


def test_a_trace_that_is_rejected_at_once_is_named(script, trace, capsys):
    script.answers = [
        *MADE[:2],
        (400, {"title": "it is truncated", "where": "byte 7", "hint": "copy it again"}),
    ]
    assert main(["upload", str(trace), "--server", script.url]) == 2
    said = f"the server answered 400: it is truncated ({trace}: byte 7). copy it again"
    assert capsys.readouterr().err == f"rooflight upload: {said}\n"


def test_a_wrong_token_ends_with_2_and_one_line(script, trace, capsys):
    script.answers = [(401, {"title": "no such token", "status": 401})]
    assert main(["upload", str(trace), "--server", script.url, "--token", "rfl_bad"]) == 2
    told = "`rooflight-server token create` on the server makes one: give it by ROOFLIGHT_TOKEN or --token"
    assert capsys.readouterr().err == f"rooflight upload: the server answered 401: no such token. {told}\n"


def test_a_push_tells_when_it_was_sent_and_travels_compressed(script):
    """The clock is asked at each try; the bytes under one key are the same."""
    script.answers = [(503, {}), (201, {"added": 2, "dropped": {"trace": 1}, "skew_s": -90.0})]
    times = iter([1000.0, 1010.5])
    client, _ = client_of(script, clock=lambda: next(times))
    received = client.push_telemetry(b'{"windows": []}' * 100, key="k")
    assert (received.added, received.dropped, received.skew_s) == (2, {"trace": 1}, -90.0)
    first, second = script.seen
    assert [s.headers["Rooflight-Sent-At"] for s in script.seen] == ["1000.000000", "1010.500000"]
    assert first.headers["Rooflight-Schema"] == "1"
    assert first.headers["Content-Encoding"] == "gzip"
    assert first.body == second.body
    assert gzip.decompress(first.body) == b'{"windows": []}' * 100


def test_a_date_to_come_back_at_is_counted_from_the_servers_own_clock(script, monkeypatch):
    """10:00:30 less 10:00:00 is 30 s, whatever this machine takes the time to be."""
    now = "Wed, 02 Dec 2015 10:00:00 GMT"
    monkeypatch.setattr(BaseHTTPRequestHandler, "date_time_string", lambda *_: now)
    script.answers = [
        (503, {}, {"Retry-After": "Wed, 02 Dec 2015 10:00:30 GMT"}),
        (201, {"id": "p", "name": "n"}),
    ]
    client, slept = client_of(script)
    client.create_project("n")
    assert slept == [30.0]


def test_a_trace_may_begin_within_a_file(script, tmp_path):
    path = tmp_path / "0001.batch"
    path.write_bytes(b"a line before\n" + gzip.compress(b"{}"))
    script.answers = [(202, JOB)]
    client_of(script)[0].upload_trace("r1", path, name="mine.json.gz", start=14)
    assert script.seen[0].path == "/api/v1/runs/r1/traces?filename=mine.json.gz"
    assert script.seen[0].headers["Content-Type"] == "application/gzip"
    assert gzip.decompress(script.seen[0].body) == b"{}"


def _parts(script, monkeypatch, tmp_path, *answers):
    monkeypatch.setattr("rooflight.bodies.PART_BYTES", 4)
    script.answers = [(200, {"offset": at, "job": None}, {}) if isinstance(at, int) else at for at in answers]
    path = tmp_path / "t.json"
    path.write_bytes(b"head0123456789")
    return lambda: client_of(script)[0].upload_in_parts("r1", path, "ab" * 32, start=4)


DONE = (202, {"offset": 10, "job": {"id": "j1"}}, {})


def test_a_trace_goes_in_parts_from_where_the_server_is(script, tmp_path, monkeypatch):
    """Ten bytes, of which four arrived in an earlier try: parts of four at 4, and of two at 8."""
    send = _parts(script, monkeypatch, tmp_path, 4, 8, DONE)
    assert send().id == "j1"
    assert [s.method for s in script.seen] == ["GET", "PUT", "PUT"]
    assert [s.body for s in script.seen[1:]] == [b"4567", b"89"]
    assert "offset=4&size=10&filename=t.json" in script.seen[1].path
    told = base64.b64encode(hashlib.sha256(b"4567").digest()).decode()
    assert script.seen[1].headers["Content-Digest"] == f"sha-256=:{told}:"


def test_a_trace_that_is_there_is_not_sent(script, tmp_path, monkeypatch):
    send = _parts(script, monkeypatch, tmp_path, (200, DONE[1], {}))
    assert send().id == "j1"
    assert [s.method for s in script.seen] == ["GET"]


def test_where_the_server_is_elsewhere_by_now_it_is_asked_again(script, tmp_path, monkeypatch):
    send = _parts(script, monkeypatch, tmp_path, 8, (409, {"title": "a hole"}, {}), 0, 4, 8, DONE)
    assert send().id == "j1"
    assert [s.body for s in script.seen if s.method == "PUT"] == [b"89", b"0123", b"4567", b"89"]


def test_a_server_that_stays_where_it_is_refuses(script, tmp_path, monkeypatch):
    send = _parts(script, monkeypatch, tmp_path, 0, (409, {"title": "it differs"}, {}), 0)
    with pytest.raises(Rejected, match="it differs"):
        send()
