"""The demo's summary and its check of page against API, on documents whose answer is known."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from rooflight import protocol
from rooflight.http_form import encode_http
from rooflight.protocol import Cpu, CpuStep, Kernel, Parts, Roofs
from tests.factories import a_document
from tests.shared import CHECKOUT


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> dict[str, ModuleType]:
    monkeypatch.syspath_prepend(str(CHECKOUT / "scripts"))
    return {name: importlib.import_module(name) for name in ("summary", "demo_check", "service", "demo")}


def as_served(document: protocol.Document) -> dict[str, Any]:
    return dict(json.loads(encode_http(document)))


def a_cpu_document() -> protocol.Document:
    """Steps of 4, 6 and 20 ms; ops of 6, 3 and 1 ms, so 60, 30 and 10 % of the op time."""
    document = a_document(kernels=0, steps=0)
    rank = document.ranks[0]
    rank.devices = {}
    steps = [CpuStep(n, us, Parts(compute=us)) for n, us in enumerate((4000.0, 6000.0, 20000.0))]
    ops = [
        Kernel("aten::add", time_us=1000.0, regime="memory", roof_fraction=0.5),
        Kernel("aten::mm", time_us=6000.0, regime="compute", roof_fraction=0.725),
        Kernel("aten::foo", time_us=3000.0),
    ]
    rank.cpu = Cpu(Roofs(kind="cpu"), steps, ops, name="Some CPU", regime="compute", regime_confidence="high")
    return document


def rows_of(lines: list[str]) -> list[str]:
    """What stands under the heading of the biggest kernels."""
    return lines[1 + next(i for i, line in enumerate(lines) if line.startswith("biggest")) :]


def test_an_op_of_the_cpu_carries_its_shapes_and_no_share_of_a_bound_that_is_0(
    scripts: dict[str, ModuleType],
) -> None:
    document = a_cpu_document()
    assert document.ranks[0].cpu is not None
    document.ranks[0].cpu.ops = [
        Kernel("aten::cat", time_us=1.0, kind="op", input_dims="[[8, 4]]", roof_fraction=0.0)
    ]
    lines = scripts["summary"].lines(as_served(document))
    assert rows_of(lines)[0].split(maxsplit=4) == ["100.0", "%", "–", "unknown", "aten::cat [[8, 4]]"]


def test_a_recording_without_gpu_work_speaks_of_the_cpu(scripts: dict[str, ModuleType]) -> None:
    lines = scripts["summary"].lines(as_served(a_cpu_document()))
    assert lines[0].startswith("device     Some CPU")
    assert lines[1] == "step time  6.000 ms (median of 3 steps)"
    assert lines[2] == "regime     compute (high confidence)"
    assert lines[3].startswith("first      Use fewer or cheaper FLOPs")
    assert "OMP_NUM_THREADS" in " ".join(lines[4:6])
    # The biggest first; a roof fraction that is unknown is a dash, not 0.
    assert [line.split() for line in rows_of(lines)] == [
        ["60.0", "%", "72.5", "%", "compute", "aten::mm"],
        ["30.0", "%", "–", "unknown", "aten::foo"],
        ["10.0", "%", "50.0", "%", "memory", "aten::add"],
    ]


def test_three_kernels_of_a_gpu_run_are_shown(scripts: dict[str, ModuleType]) -> None:
    document = a_document(kernels=12)
    lines = scripts["summary"].lines(as_served(document))
    assert lines[0] == f"device     {document.ranks[0].devices['0'].name}"
    assert len(rows_of(lines)) == 3


def test_a_withheld_verdict_gives_its_reason(scripts: dict[str, ModuleType]) -> None:
    document = a_document()
    document.ranks[0].regime, document.ranks[0].verdict_withheld = None, "graph_under_recorded"
    lines = scripts["summary"].lines(as_served(document))
    assert "regime     none: graph_under_recorded" in lines
    assert any(line.startswith("first      Record again") for line in lines)


class Fake:
    """A service whose answers are written down; anything else is 404."""

    def __init__(self, reply: Any, answers: dict[str, tuple[str, bytes]]) -> None:
        self.reply, self.answers = reply, answers

    def get(self, path: str) -> Any:
        if path not in self.answers:
            return self.reply(404, "application/problem+json", b"{}")
        return self.reply(200, *self.answers[path])


PAGE = """<link rel="stylesheet" href="/static/css/app.css"><script src="/static/plotly.min.js"></script>
<h1>compute</h1><p>6.00 ms</p><td>aten::mm</td><td>6.000</td><td>aten::foo</td><td>3.00</td>
<td>aten::add</td><td>1\u202f000.0</td>"""


def a_service(scripts: dict[str, ModuleType], document: protocol.Document, page: str = PAGE) -> Fake:
    answers = {
        "/runs/r": ("text/html", page.encode()),
        "/static/css/app.css": ("text/css", b"a{}"),
        "/static/plotly.min.js": ("text/javascript", b"1"),
        "/api/v1/runs/r/analysis": ("application/json", encode_http(document)),
    }
    for name in ("kernels", "steps", "regimes", "roofline"):
        answers[f"/api/v1/runs/r/{name}"] = ("application/json", b'{"items": [1]}')
    return Fake(scripts["service"].Reply, answers)


def run_check(scripts: dict[str, ModuleType], service: Fake) -> None:
    document = scripts["demo_check"].check_api(service, "r")
    scripts["demo_check"].check_page(service, "r", document)


def test_a_run_that_is_whole_passes(scripts: dict[str, ModuleType]) -> None:
    run_check(scripts, a_service(scripts, a_cpu_document()))


@pytest.mark.parametrize("gone", ["/runs/r", "/static/css/app.css", "/api/v1/runs/r/roofline"])
def test_what_is_not_served_fails_the_check(scripts: dict[str, ModuleType], gone: str) -> None:
    service = a_service(scripts, a_cpu_document())
    del service.answers[gone]
    with pytest.raises(scripts["service"].DemoError, match="answers 200, not 404"):
        run_check(scripts, service)


def test_parts_that_do_not_sum_to_the_step_fail_the_check(scripts: dict[str, ModuleType]) -> None:
    document = a_cpu_document()
    # 4000 us of wall, 3999.999 us of parts: one nanosecond is missing.
    document.ranks[0].cpu.steps[0].parts_us = Parts(compute=3999.999)
    with pytest.raises(scripts["service"].DemoError, match="parts of step 0 sum to"):
        run_check(scripts, a_service(scripts, document))


@pytest.mark.parametrize(("flops", "good"), [(2 * 4 * 8 * 16 * 3, True), (0, False), (None, False)])
def test_the_flops_of_a_product_are_checked(
    scripts: dict[str, ModuleType], flops: int | None, good: bool
) -> None:
    document = a_cpu_document()
    row = document.ranks[0].cpu.ops[1]
    # Three calls of [4, 8] @ [8, 16].
    row.op, row.kind, row.input_dims, row.count, row.flops = "aten::mm", "op", "[[4, 8], [8, 16]]", 3, flops
    if good:
        run_check(scripts, a_service(scripts, document))
        return
    with pytest.raises(scripts["service"].DemoError, match="is 3072 FLOPs, not"):
        run_check(scripts, a_service(scripts, document))


def test_a_page_without_the_name_of_a_big_kernel_fails_the_check(scripts: dict[str, ModuleType]) -> None:
    with pytest.raises(scripts["service"].DemoError, match="the page names aten::mm"):
        run_check(scripts, a_service(scripts, a_cpu_document(), PAGE.replace("aten::mm", "")))


@pytest.mark.parametrize("number", ["3.00", "1\u202f000.0"])
def test_a_page_with_another_number_fails_the_check(scripts: dict[str, ModuleType], number: str) -> None:
    with pytest.raises(scripts["service"].DemoError, match="the page shows"):
        run_check(scripts, a_service(scripts, a_cpu_document(), PAGE.replace(number, "2.00")))


@pytest.mark.parametrize(
    ("text", "good"),
    [("1.23 ms", True), ("1\u202f234.6 µs", True), ("1234.567", True), ("1.24 ms", False), ("1 ms", False)],
)
def test_a_time_is_shown_when_it_is_the_value_as_far_as_it_is_written(
    scripts: dict[str, ModuleType], text: str, good: bool
) -> None:
    assert scripts["demo_check"].PageParts(f"<p>{text}</p>").shows_time(1234.567) is good


def test_a_page_that_loads_from_elsewhere_fails_the_check(scripts: dict[str, ModuleType]) -> None:
    page = PAGE + '<script src="https://cdn.example/x.js"></script>'
    with pytest.raises(scripts["service"].DemoError, match="served by Rooflight itself"):
        run_check(scripts, a_service(scripts, a_cpu_document(), page))


def test_a_program_that_fails_says_why(scripts: dict[str, ModuleType], tmp_path: Path) -> None:
    service = scripts["service"].Service("http://127.0.0.1:9", tmp_path)
    with pytest.raises(scripts["service"].DemoError, match="rooflight frobnicate failed"):
        scripts["demo"].program(service, "rooflight", "frobnicate")


def test_a_taken_port_is_replaced_by_a_free_one(scripts: dict[str, ModuleType]) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        found = scripts["service"].free_port(port)
    assert found not in (0, port)
