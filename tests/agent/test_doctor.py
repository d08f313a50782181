"""The doctor: for each state of a host, the row that says it and what to do."""

from __future__ import annotations

import datetime
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent import cli
from agent.capture.fabric import Fabric
from agent.config import Config
from agent.doctor import disk, driver, service, sockets, software, training
from agent.doctor.rows import Row, guarded
from agent.processes import Processes
from agent.sampler.nvml import NO_DRIVER, NoDriverError, Nvml
from agent.spool import Spool
from agent.store import Store
from rooflight.calibration import Calibration
from tests.agent.nvml_stub import ROOT, StubNvml
from tests.agent.servers import FakeServer, running
from tests.agent.test_capture_fabric import Process
from tests.agent.test_nvml import a_gpu, a_host
from tests.shared import CHECKOUT


def states(rows: list[Row]) -> list[tuple[str, str]]:
    return [(row.check, row.state) for row in rows]


def test_a_row_is_one_line() -> None:
    row = Row("token", "problem", "none is set", "Make one")
    assert row.line() == "problem  token        none is set. Make one"


def test_a_look_that_fails_is_told_and_no_more() -> None:
    def look() -> list[Row]:
        raise OSError("an odd host")

    [row] = guarded("nvidia", look)
    assert (row.state, "an odd host" in row.text) == ("warning", True)


# Software


@pytest.mark.parametrize(("version", "state"), [((3, 10), "problem"), ((3, 11), "ok"), ((3, 14), "ok")])
def test_python_of_3_11_and_later(version: tuple[int, int], state: str) -> None:
    assert states(list(software.python(version))) == [("python", state)]


@pytest.mark.parametrize(
    ("version", "state"),
    [(None, "ok"), ("2.0.1+cu118", "warning"), ("2.1.0", "ok"), ("2.13.0+cpu", "ok"), ("3.0", "ok")],
)
def test_torch_asks_a_daemon_since_2_1(version: str | None, state: str) -> None:
    assert states(list(software.torch(version))) == [("torch", state)]


# Drivers


def no_driver() -> Nvml:
    raise NoDriverError(NO_DRIVER)


def refusing() -> Nvml:
    raise NoDriverError("the NVIDIA driver refused (Insufficient Permissions): no telemetry was recorded")


def test_no_driver_is_a_warning_and_a_node_without_one_a_problem(tmp_path: Path) -> None:
    assert states(list(driver.nvidia(tmp_path, tmp_path, no_driver))) == [("nvidia", "warning")]
    (tmp_path / "nvidiactl").touch()
    [row] = driver.nvidia(tmp_path, tmp_path, refusing)
    assert row.state == "problem"
    assert "Insufficient Permissions" in row.text


def test_a_host_of_amd_alone(tmp_path: Path) -> None:
    assert list(driver.amd(tmp_path)) == []
    (tmp_path / "kfd").touch()
    assert states(list(driver.nvidia(tmp_path, tmp_path, no_driver))) == [("nvidia", "ok")]
    assert states(list(driver.amd(tmp_path, None))) == [("amd", "warning")]
    assert states(list(driver.amd(tmp_path, "25.3.0"))) == [("amd", "ok")]


#: The rows of the real pynvml on the stub, as JSON.
DRIVER = """
import pathlib, sys
import msgspec
from agent.doctor import driver
rows = list(driver.nvidia(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])))
sys.stdout.buffer.write(msgspec.json.encode(rows))
"""


def driver_rows(stub: StubNvml, scenario: str, folder: Path) -> list[tuple[str, str, str]]:
    (stub.folder / "scenario").write_text(scenario)
    environ = {
        **os.environ,
        "LD_LIBRARY_PATH": str(stub.folder),
        "ROOFLIGHT_NVML_SCENARIO": str(stub.folder / "scenario"),
        "PYTHONPATH": str(ROOT),
    }
    command = [sys.executable, "-c", DRIVER, str(folder), str(folder)]
    done = subprocess.run(command, env=environ, capture_output=True, check=True, timeout=60)
    return [(row["check"], row["state"], row["text"]) for row in json.loads(done.stdout)]


@pytest.mark.compiler
def test_a_good_driver(stub_library: StubNvml, tmp_path: Path) -> None:
    gpu = a_gpu(nvmlDeviceGetPersistenceMode="0 1")
    told = driver_rows(stub_library, a_host(gpu) + "- nvmlSystemGetDriverVersion 0 580.65.06\n", tmp_path)
    assert told == [("nvidia", "ok", "driver 580.65.06"), ("devices", "ok", "1 (NVIDIA A10)")]


@pytest.mark.compiler
def test_a_driver_with_everything_to_say(stub_library: StubNvml, tmp_path: Path) -> None:
    lost = a_gpu(1, "GPU-2", nvmlDeviceGetUtilizationRates="15", nvmlDeviceGetPersistenceMode="15")
    mig = a_gpu(0, nvmlDeviceGetMigMode="0 1 1", nvmlDeviceGetPersistenceMode="0 0")
    instance = ["0/0 nvmlDeviceGetUUID 0 MIG-1", "0/0 nvmlDeviceGetName 0 NVIDIA A100 MIG 1g.5gb"]
    (tmp_path / "driver/nvidia").mkdir(parents=True)
    (tmp_path / "driver/nvidia/params").write_text("DmaRemapPeerMmio: 1\nRmProfilingAdminOnly: 1\n")
    told = driver_rows(stub_library, a_host(mig, lost, instance, count=2), tmp_path)
    assert [row[:2] for row in told] == [
        ("nvidia", "ok"),
        ("devices", "ok"),
        ("devices", "warning"),  # the MIG instance
        ("devices", "problem"),  # the lost one
        ("devices", "warning"),  # persistence is off on one, and not told of the other
        ("counters", "ok"),
    ]


@pytest.mark.compiler
def test_a_driver_without_a_device(stub_library: StubNvml, tmp_path: Path) -> None:
    told = driver_rows(stub_library, a_host(), tmp_path)
    assert [row[:2] for row in told] == [("nvidia", "ok"), ("devices", "problem")]


# Sockets


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def test_a_free_socket_an_agents_and_anothers(folder: Path, tmp_path: Path) -> None:
    assert states(list(sockets.socket(folder, Processes()))) == [("captures", "ok")]
    program = (
        "import sys\nfrom pathlib import Path\nfrom agent.capture.fabric import Fabric\n"
        "with Fabric(Path(sys.argv[1])):\n    print('there', flush=True)\n    sys.stdin.read()\n"
    )
    for name, state in (("rooflight-agent", "ok"), ("dynolog", "problem")):
        script = tmp_path / name
        script.write_text(program)
        command = [sys.executable, script, folder]
        environ = os.environ | {"PYTHONPATH": str(CHECKOUT)}
        with subprocess.Popen(
            command, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as other:
            assert other.stdout
            assert other.stdout.readline() == "there\n"
            [row] = sockets.socket(folder, Processes())
            other.communicate("")
        assert f"pid {other.pid}" in row.text
        assert row.state == state, row.text


def test_the_abstract_socket_is_found_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "net").mkdir()
    head = "Num       RefCount Protocol Flags    Type St Inode Path\n"
    line = "0000000000000000: 00000002 00000000 00000000 0002 01 4711 {}\n"
    (tmp_path / "net/unix").write_text(head + line.format("/tmp/dynolog") + line.format("@dynologic"))
    assert sockets.holder(None, Processes(tmp_path)) is None
    (tmp_path / "net/unix").write_text(head + line.format("@dynolog@"))
    (tmp_path / "77/fd").mkdir(parents=True)
    (tmp_path / "77/fd/5").symlink_to("socket:[4711]")
    (tmp_path / "77/cmdline").write_bytes(b"/usr/bin/dynolog\0--enable_ipc_monitor\0")
    assert sockets.holder(None, Processes(tmp_path)) == sockets.Holder(
        77, "/usr/bin/dynolog --enable_ipc_monitor"
    )
    (tmp_path / "77/fd/5").unlink()
    assert sockets.holder(None, Processes(tmp_path)) == sockets.Holder(None, "another user's process")


def test_a_folder_whose_path_is_too_long(tmp_path: Path) -> None:
    [row] = sockets.socket(tmp_path / ("d" * 60), Processes())
    assert (row.state, "bytes" in row.text) == ("problem", True)


def test_what_a_killed_agent_left_is_no_problem(folder: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as left:
        left.bind(str(folder / "dynolog"))
    [row] = sockets.socket(folder, Processes())
    assert (row.state, "killed agent" in row.text) == ("ok", True)


def test_listening_names_who_asks(folder: Path) -> None:
    # A poll: length, type, then activities, one pid, no job, and the pid.
    body = b"\2\0\0\0" + b"\1\0\0\0" + bytes(8) + os.getpid().to_bytes(4, "little")
    poll = len(body).to_bytes(8, "little") + b"req".ljust(32, b"\0") + body
    heard: list[Row] = []
    with Process(folder) as process:
        listener = threading.Thread(
            target=lambda: heard.extend(sockets.listen(folder, Processes(), seconds=2.0))
        )
        listener.start()
        end = time.monotonic() + 2
        while not (folder / "dynolog").exists() and time.monotonic() < end:
            time.sleep(0.01)
        process.ask(poll)
        answer = process.socket.recv(100)
        listener.join()
    assert answer == bytes(8) + b"req".ljust(32, b"\0"), "nothing to do"
    assert [row.state for row in heard] == ["ok"]
    assert f"process {os.getpid()} asks" in heard[0].text


def test_listening_to_nobody_and_to_a_held_socket(folder: Path) -> None:
    [row] = sockets.listen(folder, Processes(), seconds=0.05)
    assert (row.state, "nobody asked" in row.text) == ("warning", True)
    with Fabric(folder):
        [row] = sockets.listen(folder, Processes(), seconds=0.05)
    assert (row.state, "not listened" in row.text) == ("warning", True)


# Training processes


def a_process(
    proc: Path, pid: int, environ: str, library: str = "libtorch_cpu.so", net: str = "net:[1]"
) -> None:
    (proc / str(pid) / "ns").mkdir(parents=True)
    (proc / str(pid) / "maps").write_text(f"7f00-7f01 r-xp 0 08:01 1 /env/lib/{library}\n")
    (proc / str(pid) / "environ").write_bytes(environ.encode())
    (proc / str(pid) / "ns/net").symlink_to(net)
    (proc / str(pid) / "ns/mnt").symlink_to("mnt:[1]")


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    (tmp_path / "self/ns").mkdir(parents=True)
    (tmp_path / "self/ns/net").symlink_to("net:[1]")
    (tmp_path / "self/ns/mnt").symlink_to("mnt:[1]")
    return tmp_path


def test_processes_with_and_without_the_variable(proc: Path) -> None:
    assert states(list(training.training(Processes(proc), None))) == [("training", "ok")]
    a_process(proc, 10, "KINETO_USE_DAEMON=1\0RANK=0\0")
    a_process(proc, 11, "RANK=1\0")
    a_process(proc, 12, "", library="libc.so.6")
    rows = list(training.training(Processes(proc), None))
    assert [(row.state, row.text) for row in rows] == [
        ("ok", "started with KINETO_USE_DAEMON: 10"),
        ("warning", "started without KINETO_USE_DAEMON: 11"),
    ]


def test_processes_that_ask_where_nobody_answers(proc: Path) -> None:
    a_process(proc, 10, "KINETO_USE_DAEMON=1\0KINETO_IPC_SOCKET_DIR=/run/rooflight\0")
    a_process(proc, 11, "KINETO_USE_DAEMON=1\0KINETO_IPC_SOCKET_DIR=/run/other\0")
    a_process(proc, 12, "KINETO_USE_DAEMON=1\0", net="net:[2]")
    *_, row = training.training(Processes(proc), Path("/run/rooflight"))
    assert (row.state, row.text) == ("warning", "asks where this agent does not answer: 11, 12")


# The server


def asked(tmp_path: Path, url: str | None, token: str | None = "rfl_x") -> list[Row]:
    return list(service.server(Config(url, token, "default", tmp_path)))


def answering(status: int, body: dict[str, object]) -> FakeServer:
    return FakeServer(lambda _request: (status, body))


def test_no_server_is_a_warning(tmp_path: Path) -> None:
    assert states(asked(tmp_path, None)) == [("server", "warning")]


def test_a_server_that_takes_a_push_of_nothing(tmp_path: Path) -> None:
    with running(answering(201, {"added": 0, "skew_s": 0.4})) as fake:
        assert states(asked(tmp_path, fake.url)) == [("server", "ok"), ("token", "ok"), ("clock", "ok")]
    [request] = fake.seen
    assert request.path == "/api/v1/telemetry"


@pytest.mark.parametrize(
    ("skew", "state", "word"),
    [(5.0, "ok", "off"), (5.1, "warning", "behind"), (-90.0, "warning", "ahead of")],
)
def test_a_clock_more_than_five_seconds_off(tmp_path: Path, skew: float, state: str, word: str) -> None:
    with running(answering(201, {"added": 0, "skew_s": skew})) as fake:
        *_, row = asked(tmp_path, fake.url)
    assert (row.check, row.state, word in row.text) == ("clock", state, True)


@pytest.mark.parametrize(
    ("status", "check", "fix"),
    [
        (401, "token", "token create"),
        (403, "token", "may not write"),
        (426, "protocol", "Upgrade the server"),
        (404, "server", "address of a Rooflight server"),
        (500, "server", "server's log"),
    ],
)
def test_a_refusal_says_what_to_do(tmp_path: Path, status: int, check: str, fix: str) -> None:
    with running(answering(status, {"title": "no"})) as fake:
        *_, row = asked(tmp_path, fake.url)
    assert (row.check, row.state, fix in row.fix) == (check, "problem", True)


def test_nobody_there_and_another_program_there(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    assert states(asked(tmp_path, url)) == [("server", "problem")]
    with running(answering(200, {"added": "many"})) as fake:
        [row] = asked(tmp_path, fake.url)
    assert (row.state, "not that of a Rooflight server" in row.text) == ("problem", True)


def test_a_token_over_plain_http_to_another_machine(tmp_path: Path) -> None:
    [row] = asked(tmp_path, "http://rooflight.example")
    assert (row.check, row.state, "plain http" in row.text) == ("server", "problem", True)


# The disk


def test_a_folder_that_is_private_and_has_room(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    folder.mkdir(mode=0o700)
    assert states(list(disk.state(folder, 256, 10 << 30))) == [("state", "ok"), ("disk", "ok")]
    folder.chmod(0o755)
    assert states(list(disk.state(folder, 256, 10 << 30)))[1] == ("state", "warning")


def test_a_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert states(list(disk.state(tmp_path / "file/state", 256))) == [("state", "problem")]


@pytest.mark.parametrize(
    ("free_mib", "spool_mib", "told"),
    [
        (1024, 256, [("disk", "ok")]),
        (1023, 256, [("disk", "problem")]),  # less than the GiB that recordings leave
        (2000, 4000, [("disk", "warning")]),
        (100, 256, [("disk", "warning"), ("disk", "problem")]),
    ],
)
def test_the_room_on_the_disk(
    tmp_path: Path, free_mib: int, spool_mib: float, told: list[tuple[str, str]]
) -> None:
    tmp_path.chmod(0o700)
    assert states(list(disk.state(tmp_path, spool_mib, free_mib << 20)))[1:] == told


def test_what_waits_and_what_was_set_apart(tmp_path: Path) -> None:
    assert states(list(disk.spool(tmp_path, 1))) == [("daemon", "ok"), ("spool", "ok")]
    spool = Spool(tmp_path, note=lambda _: None, limit_bytes=1 << 20)
    for number in range(3):
        assert spool.put("telemetry", bytes(200 << 10), f"k{number}")  # 600 of 1024 KiB
    first = spool.next()
    assert first
    daemon, waiting = disk.spool(tmp_path, 1)
    assert daemon.text == "runs"
    assert (waiting.state, waiting.text) == ("warning", "3 batches of 0.6 MiB wait, of 1 MiB")
    spool.quarantine(first, "the server answered 422: no", 422)
    spool.close()
    daemon, waiting, apart = disk.spool(tmp_path, 1)
    assert daemon.text == "none runs with this state folder"
    assert waiting.state == "ok"
    assert "the server answered 422: no" in apart.text


def test_calibrations_that_are_missing_old_and_broken(tmp_path: Path) -> None:
    store, now = Store(tmp_path), datetime.datetime(2026, 12, 1, tzinfo=datetime.UTC)
    assert states(list(disk.calibrations(store, []))) == [("calibration", "ok")]
    store.save(Calibration("NVIDIA A10", "gpu", "2026-06-04T00:00:00Z", uuid="GPU-1"))  # 180 days
    assert states(list(disk.calibrations(store, ["GPU-1"], now))) == [("calibration", "ok")]
    later = now + datetime.timedelta(hours=1)
    [row] = disk.calibrations(store, ["GPU-1"], later)
    assert (row.state, "180 days" in row.text) == ("warning", True)
    [row] = disk.calibrations(store, ["GPU-1", "GPU-2"], now)
    assert "1 devices were never calibrated" in row.text
    (tmp_path / "calibrations/broken.json").write_text("{")
    assert [r.state for r in disk.calibrations(store, ["GPU-1"], now)] == ["warning"]


# The command


def test_the_command_ends_with_1_where_something_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ROOFLIGHT_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("ROOFLIGHT_CONFIG", str(tmp_path / "none.toml"))
    with running(answering(401, {"title": "no"})) as fake:
        assert cli.main(["doctor", "--json", "--server", fake.url]) == 1
    told = json.loads(capsys.readouterr().out)
    token = next(row for row in told["rows"] if row["check"] == "token")
    assert token["state"] == "problem"
    assert told["problems"] == sum(row["state"] == "problem" for row in told["rows"]) >= 1


def test_settings_that_cannot_be_read_are_a_problem_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "agent.toml").write_text("servr = 'x'\n")
    monkeypatch.setenv("ROOFLIGHT_CONFIG", str(tmp_path / "agent.toml"))
    assert cli.main(["doctor"]) == 1
    assert capsys.readouterr().out.startswith("problem  settings     unknown setting 'servr'")


def test_looking_makes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROOFLIGHT_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("ROOFLIGHT_CONFIG", str(tmp_path / "none.toml"))
    cli.main(["doctor", "--socket-dir", str(tmp_path / "sockets")])
    assert list(tmp_path.iterdir()) == []
