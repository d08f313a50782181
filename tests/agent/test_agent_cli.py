"""The agent's commands from the command line to the server and to the exit status."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from agent.cli import COMMANDS, main
from agent.commands import options
from agent.commands import run as run_command
from agent.device import Device
from agent.summary import printable, render, summarize
from rooflight.calibration import Calibration, Clock
from rooflight.protocol import Ceiling, Cpu, CpuStep, Document, Kernel, Parts, Roofs, decode, encode
from rooflight.retry import Retry
from tests.agent.servers import FakeServer, Seen, accepts, running
from tests.factories import a_document


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty state folder and no settings of whoever runs the tests."""
    for name in ("SERVER", "TOKEN", "PROJECT", "CONFIG"):
        monkeypatch.delenv(f"ROOFLIGHT_{name}", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ROOFLIGHT_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(options, "PATIENCE", Retry(tries=1))
    return tmp_path / "state"


def a_cpu_document() -> Document:
    """Three steps of 10, 20 and 90 ms; four ops of which ``mm`` is the biggest."""
    document = a_document()
    rank = document.ranks[0]
    rank.devices, rank.steps, rank.kernels, rank.roofs = {}, [], [], {}
    ops = [
        Kernel(name, op=name, time_us=time, regime=regime, roof_fraction=fraction, share_pct=share, kind="op")
        for name, time, regime, fraction, share in (
            ("aten::add", 3_000.0, "memory", 0.8, 2.5),
            ("aten::mm", 90_000.0, "compute", 0.61, 75.0),
            ("aten::gelu", 6_000.0, "latency", 0.2, 5.0),
            ("aten::tanh", 1_000.0, "unknown", None, 0.8),
        )
    ]
    rank.cpu = Cpu(
        roof=Roofs(
            kind="cpu",
            compute={"fp32": Ceiling(practical=0.117e12, origin="measured")},
            memory=Ceiling(practical=27.7e9, origin="measured"),
        ),
        steps=[CpuStep(n, 1000.0 * ms, Parts(compute=1000.0 * ms)) for n, ms in ((1, 10), (2, 20), (3, 90))],
        ops=ops,
        name="AMD EPYC",
        regime="compute",
        regime_confidence="high",
    )
    return document


@pytest.fixture
def analysed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Path, Calibration | None]]:
    """Stands in for the analysis where a test is about what comes after it; collects what it was given."""
    calls: list[tuple[Path, Calibration | None]] = []

    def analyse(trace: Path, calibration: Calibration | None) -> Document:
        assert trace.is_file()
        calls.append((trace, calibration))
        return a_cpu_document()

    monkeypatch.setattr(run_command, "analyse", analyse)
    return calls


def free_url() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}"


RUN = ("run", "--workload", "gemm", "--size", "small", "--steps", "2", "--device", "cpu", "--no-calibrate")


@pytest.mark.torch
def test_a_run_is_measured_analysed_sent_and_summed_up(
    analysed: list[tuple[Path, Calibration | None]], capsys: pytest.CaptureFixture[str]
) -> None:
    with running(FakeServer(accepts)) as fake:
        assert main([*RUN, "--server", fake.url, "--token", "t", "--project", "vision", "--run", "one"]) == 0
    assert fake.paths() == ["/projects", "/projects/vision/runs", "/runs/r-1/profiles"]
    sent = decode(fake.seen[2].body)
    assert sent.telemetry is not None
    assert sent.telemetry["windows"] or "no telemetry was recorded" in sent.telemetry["statement"]
    text = capsys.readouterr().out
    assert f"page       {fake.url}/runs/r-1" in text
    assert "compute-bound, confidence high" in text
    assert len(text.splitlines()) <= 24


@pytest.mark.torch
def test_with_trace_sends_the_trace_after_the_analysis(
    analysed: list[tuple[Path, Calibration | None]],
) -> None:
    with running(FakeServer(accepts)) as fake:
        assert main([*RUN, "--server", fake.url, "--with-trace"]) == 0
    assert fake.paths()[2:] == [
        "/runs/r-1/profiles",
        "/projects/default/runs",
        "/runs/r-1/traces?filename=gemm.pt.trace.json.gz",
    ]
    assert json.loads(fake.seen[3].body)["name"] == "gemm (raw trace)"
    assert fake.seen[4].body == analysed[0][0].read_bytes()


@pytest.mark.torch
def test_the_raw_trace_goes_with_the_roof_it_is_judged_by(
    analysed: list[tuple[Path, Calibration | None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    own = Calibration(device="A CPU", kind="cpu", measured_at="2026-12-01T00:00:00Z", stream_gbs=10.0)
    monkeypatch.setattr("agent.commands.run._calibration", lambda *_, **__: own)
    with running(FakeServer(accepts)) as fake:
        assert main([*RUN, "--server", fake.url, "--with-trace"]) == 0
    paths = fake.paths()
    assert paths.index("/calibrations") < paths.index("/runs/r-1/traces?filename=gemm.pt.trace.json.gz")


@pytest.mark.torch
def test_a_raw_trace_that_is_refused_does_not_lose_the_analysis(
    analysed: list[tuple[Path, Calibration | None]], capsys: pytest.CaptureFixture[str]
) -> None:
    def refuses_traces(request: Seen) -> tuple[int, dict[str, object]]:
        return (413, {"title": "too large"}) if "/traces" in request.path else accepts(request)

    with running(FakeServer(refuses_traces)) as fake:
        assert main([*RUN, "--server", fake.url, "--with-trace"]) == 1
    said = capsys.readouterr()
    assert f"{fake.url}/runs/r-1" in said.out
    assert "rooflight upload" in said.err


@pytest.mark.torch
def test_a_server_that_is_down_costs_nothing_but_the_push(
    analysed: list[tuple[Path, Calibration | None]], capsys: pytest.CaptureFixture[str], state: Path
) -> None:
    url = free_url()
    assert main([*RUN, "--server", url, "--token", "t"]) == 1
    said = capsys.readouterr()
    assert f"no answer from {url}" in said.err
    [document] = state.glob("runs/*/analysis.json")
    assert f"rooflight-agent push {document}" in said.err
    assert decode(document.read_bytes()).ranks[0].cpu == a_cpu_document().ranks[0].cpu
    assert "compute-bound" in said.out
    with running(FakeServer(accepts)) as fake:
        assert main(["push", str(document), "--server", fake.url]) == 0
    assert decode(fake.seen[2].body) == decode(document.read_bytes())
    assert capsys.readouterr().out == f"{fake.url}/runs/r-1\n"


@pytest.mark.torch
@pytest.mark.parametrize("status", [401, 404, 422])
def test_a_server_that_says_no_is_quoted(
    analysed: list[tuple[Path, Calibration | None]], capsys: pytest.CaptureFixture[str], status: int
) -> None:
    def refuses(_: Seen) -> tuple[int, dict[str, object]]:
        return status, {"title": "the reason is this"}

    with running(FakeServer(refuses)) as fake:
        assert main([*RUN, "--server", fake.url]) == 1
    assert len(fake.seen) == 1
    assert "the reason is this" in capsys.readouterr().err


@pytest.mark.torch
def test_without_a_server_nothing_is_sent_and_that_is_no_error(
    analysed: list[tuple[Path, Calibration | None]], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main([*RUN, "--out", str(tmp_path / "out"), "--json"]) == 0
    got = json.loads(capsys.readouterr().out)
    assert (got["run_id"], got["url"], got["problem"]) == (None, None, None)
    assert (got["n_steps"], got["step_time_p50_us"], got["regime"]) == (3, 20_000.0, "compute")
    assert [k["op"] for k in got["kernels"]] == ["aten::mm", "aten::gelu", "aten::add"]
    assert {p.name for p in (tmp_path / "out").iterdir()} == {"analysis.json", "gemm.pt.trace.json.gz"}


@pytest.mark.torch
def test_no_push_beats_a_server_of_the_settings(
    analysed: list[tuple[Path, Calibration | None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(FakeServer(accepts)) as fake:
        monkeypatch.setenv("ROOFLIGHT_SERVER", fake.url)
        assert main([*RUN, "--no-push"]) == 0
    assert fake.seen == []


@pytest.mark.torch
@pytest.mark.parametrize(("share", "said"), [(0.4, True), (0.1, False)])
def test_steps_beside_other_programs_are_said_to_be_longer(
    share: float, said: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.commands.run.load.others", lambda _before, _after: share)
    assert main([*RUN, "--no-push"]) == 0
    assert ("other programs used 40 % of the CPUs" in capsys.readouterr().err) is said


@pytest.mark.torch
def test_a_cpu_without_a_calibration_is_measured_once(
    analysed: list[tuple[Path, Calibration | None]], monkeypatch: pytest.MonkeyPatch, state: Path
) -> None:
    measured = []

    def calibrate(device: object, *, quick: bool, note: object) -> Calibration:
        measured.append(quick)
        return Calibration(
            device.name, "cpu", "2026-12-01T10:00:00Z", host=device.host, stream_gbs=7.0,  # type: ignore[attr-defined]
            conditions={"threads": str(device.threads)},  # type: ignore[attr-defined]
        )  # fmt: skip

    monkeypatch.setattr(run_command, "calibrate", calibrate)
    arguments = [a for a in RUN if a != "--no-calibrate"]
    assert main(arguments) == 0
    assert main(arguments) == 0
    assert measured == [True]
    assert [c.stream_gbs for _, c in analysed if c is not None] == [7.0, 7.0]


@pytest.mark.torch
def test_calibrate_keeps_prints_and_sends(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], state: Path, tmp_path: Path
) -> None:
    from agent.commands import calibrate as command

    a = Calibration("AMD EPYC", "cpu", "2026-12-01T10:00:00Z", {"fp32": 0.117}, stream_gbs=27.7,
                    spread_pct={"gemm_fp32": 3.21, "stream": 1.0})  # fmt: skip
    monkeypatch.setattr(command, "calibrate", lambda *_, **__: a)
    with running(FakeServer(accepts)) as fake:
        assert main(["calibrate", "--server", fake.url, "--out", str(tmp_path / "c.json")]) == 0
    assert fake.paths() == ["/calibrations"]
    [kept] = state.glob("calibrations/*.json")
    assert kept.read_bytes() == (tmp_path / "c.json").read_bytes() == fake.seen[0].body == encode(a)
    text = capsys.readouterr().out
    assert "fp32 products" in text
    assert "0.117 TFLOP/s" in text
    assert "27.7 GB/s" in text
    assert main(["calibrate", "--server", free_url(), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["stream_gbs"] == 27.7


def a_gpu(n: int) -> Device:
    return Device("gpu", f"cuda:{n}", "NVIDIA A10", "lab1", 8, f"GPU-{n}", n)


def test_all_gpus_are_measured_and_the_slow_one_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], state: Path
) -> None:
    """400 GB/s beside 500, 500: 20 % below the median of two others.  A device of another host that was
    measured with this state folder is no sibling."""
    from agent.commands import calibrate as command
    from agent.store import Store

    gbs = [500.0, 400.0, 500.0]

    def calibrate(device: Device, *, quick: bool, note: object) -> Calibration:
        assert device.index is not None
        return Calibration(
            device.name, "gpu", "2026-12-01T10:00:00Z", stream_gbs=gbs[device.index], uuid=device.uuid,
            host=device.host, confidence="medium", confidence_reasons=["stream: samples scatter by 7 %"],
            clocks_mhz={"sm": Clock(1410, 1695, 1980)}, p2p_gbs={"GPU-9": 20.0}, link_gbs={"d2h": 24.0},
        )  # fmt: skip

    Store(state).save(Calibration("NVIDIA A10", "gpu", "2026-12-01T10:00:00Z", stream_gbs=9e3, uuid="GPU-x"))
    monkeypatch.setattr(command, "calibrate", calibrate)
    monkeypatch.setattr(command, "every_gpu", lambda: [a_gpu(n) for n in range(3)])
    assert main(["calibrate", "--device", "all"]) == 0
    said = capsys.readouterr()
    assert (
        "NVIDIA A10 GPU-1: stream is 20 % below the median of 2 others of its model (400, not 500)"
        in said.err
    )
    assert said.err.count("below") == 1
    assert said.out.count("confidence medium: stream: samples scatter by 7 %") == 3
    assert "1695 MHz   1410 to 1980" in said.out
    assert "copy to host" in said.out
    assert "to GPU-9" in said.out
    assert main(["calibrate", "--device", "all", "--json"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["uuid"] for line in lines] == ["GPU-0", "GPU-1", "GPU-2"]
    assert main(["calibrate", "--device", "all", "--out", "c.json"]) == 2
    assert "--out holds one calibration, and there are 3 GPUs" in capsys.readouterr().err


def test_a_long_list_of_doubts_is_cut_on_the_screen() -> None:
    from agent.commands.calibrate import render

    reasons = [f"reason {n}" for n in range(6)]
    c = Calibration("EPYC", "cpu", "2026-12-01T10:00:00Z", confidence="low", confidence_reasons=reasons)
    text = render(c, Path("c.json"))
    assert "confidence low: reason 0; reason 1; reason 2; reason 3 and 2 more" in text


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["calibrate", "--device", "cuda:x"], "'cuda:x' is none of auto, cuda, cpu, cuda:N, all\n"),
        (["run", "--workload", "gemm", "--device", "all"], "'all' is none of auto, cuda, cpu, cuda:N\n"),
    ],
)
def test_a_device_that_is_none_of_the_choices_is_misuse(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_status:
        main(arguments)
    assert exit_status.value.code == 2
    assert capsys.readouterr().err.endswith(says)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run", "--workload", "resnet"], "there are: attention"),
        (["run", "--workload", "gemm", "--server", "ftp://x"], "not the address of a server"),
        (["run", "--workload", "gemm", "--server", "http://gpu.example", "--token", "t"], "plain http"),
        (["push", "/nowhere/analysis.json", "--server", "http://127.0.0.1:1"], "no such file"),
        (["push", "/nowhere/analysis.json"], "no server to send to"),
    ],
)
def test_misuse_is_one_line_and_status_2(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    said = capsys.readouterr()
    assert says in said.err
    assert len(said.err.splitlines()) == 1
    assert said.out == ""


@pytest.mark.torch
def test_an_output_folder_that_cannot_be_made_is_said_before_anything_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert main([*RUN, "--out", str(tmp_path / "file/out")]) == 2
    assert "cannot be made" in capsys.readouterr().err


def test_a_file_that_is_no_analysis_is_not_sent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.json").write_text('{"traceEvents": []}')
    with running(FakeServer(accepts)) as fake:
        assert main(["push", str(tmp_path / "x.json"), "--server", fake.url]) == 2
    assert fake.seen == []
    assert "not an analysis" in capsys.readouterr().err


@pytest.mark.parametrize("steps", ["0", "-1", "1001", "many"])
def test_a_number_of_steps_beyond_reason_is_refused(steps: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as e:
        main(["run", "--workload", "gemm", "--steps", steps])
    assert e.value.code == 2
    assert "--steps" in capsys.readouterr().err


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_and_its_section_in_the_docs(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as e:
        main([command, "--help"])
    assert e.value.code == 0
    assert f"rooflight-agent {command}" in capsys.readouterr().out
    page = Path(__file__).parents[2] / "docs/agent.md"
    assert f"## rooflight-agent {command}" in page.read_text()


def test_the_summary_of_a_cpu_names_its_biggest_ops() -> None:
    summary = summarize(a_cpu_document(), "host")
    text = render(summary, "gemm")
    lines = text.splitlines()
    assert lines[0] == "gemm on AMD EPYC"
    assert "20.00 ms median of 3 (10.00 to 90.00)" in text
    assert "fp32 0.117 TFLOP/s, memory 27.7 GB/s (measured)" in text
    # 90 ms of mm over three steps
    assert [line.split() for line in lines[-3:]] == [
        ["aten::mm", "75.0", "%", "30.00", "ms", "61", "%", "compute"],
        ["aten::gelu", "5.0", "%", "2.00", "ms", "20", "%", "latency"],
        ["aten::add", "2.5", "%", "1.00", "ms", "80", "%", "memory"],
    ]
    assert max(map(len, lines)) <= 110


def test_the_summary_of_a_gpu_takes_its_kernels() -> None:
    summary = summarize(a_document(), "host")
    assert (summary.device, summary.kind, summary.regime) == ("Tesla V100", "gpu", "input")
    assert len(summary.rows) == 3
    times = [kernel.time_us for kernel in a_document().ranks[0].kernels]
    assert [row.time_us for row in summary.rows] == sorted(times, reverse=True)[:3]


def test_a_verdict_that_is_withheld_is_not_made_up() -> None:
    document = a_document()
    document.ranks[0].regime = document.ranks[0].regime_confidence = None
    document.ranks[0].verdict_withheld = "more than half of the steps have no GPU work"
    assert "none given: more than half of the steps have no GPU work" in render(summarize(document, "x"), "t")


def test_nothing_measured_is_said_as_such() -> None:
    document = a_cpu_document()
    rank = document.ranks[0]
    assert rank.cpu is not None
    rank.cpu.steps, rank.cpu.ops, rank.cpu.roof, rank.cpu.name = [], [], Roofs(kind="cpu"), None
    text = render(summarize(document, "AMD EPYC"), "gemm")
    assert "no steps were recorded" in text
    assert "rooflight-agent calibrate" in text
    assert text.startswith("gemm on AMD EPYC\n")


def test_names_from_outside_do_not_drive_the_terminal() -> None:
    assert printable("a\x1b[31mb\nc\u202ed") == "a?[31mb?c?d"


@pytest.mark.torch
def test_the_starved_workload_is_found_to_be_input_bound(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """From the real profiler through the real analysis: the verdict is the one that was built in."""
    arguments = ["run", "--workload", "starved", "--steps", "5", "--device", "cpu", "--no-calibrate"]
    assert main([*arguments, "--no-push", "--out", str(tmp_path), "--json"]) == 0
    got = json.loads(capsys.readouterr().out)
    assert (got["kind"], got["n_steps"], got["regime"]) == ("cpu", 5, "input")
    document = decode((tmp_path / "analysis.json").read_bytes())
    cpu = document.ranks[0].cpu
    assert cpu is not None
    for step in cpu.steps:
        parts = sum(getattr(step.parts_us, name) for name in Parts.__struct_fields__)
        assert parts == pytest.approx(step.step_time_us, abs=0.0005)


@pytest.mark.torch
def test_the_calibration_of_this_device_is_the_roof(tmp_path: Path) -> None:
    from agent.device import pick
    from agent.profiling import Plan, record

    trace = tmp_path / "trace.json.gz"
    record(run_command.WORKLOADS["gemm"], pick("cpu"), Plan(2, 1, "small"), trace)
    calibration = Calibration("AMD EPYC", "cpu", "2026-12-01T10:00:00Z", {"fp32": 0.117}, stream_gbs=27.7)
    cpu = run_command.analyse(trace, calibration).ranks[0].cpu
    assert cpu is not None
    assert cpu.roof.compute["fp32"].practical == pytest.approx(0.117e12)
    assert cpu.roof.memory is not None
    assert cpu.roof.memory.practical == pytest.approx(27.7e9)
    assert cpu.roof.memory.origin == "measured"
    assert run_command.analyse(trace, None).ranks[0].cpu.roof.memory is None  # type: ignore[union-attr]
