"""A real daemon over the stub of NVML and a page of dcgm-exporter: what it serves, and what it delivers."""

from __future__ import annotations

import gzip
import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.agent.nvml_stub import StubNvml
from tests.agent.servers import FakeServer, Seen, running
from tests.agent.test_dcgm import exporter, line, page
from tests.agent.test_nvml import UUID, a_gpu, a_host
from tests.shared import CHECKOUT
from tests.training import wait_until

pytestmark = pytest.mark.compiler


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


@contextmanager
def daemon(folder: Path, *flags: str, **environ: str) -> Iterator[subprocess.Popen[bytes]]:
    env = os.environ | {
        "ROOFLIGHT_STATE": str(folder / "state"),
        "ROOFLIGHT_CONFIG": str(folder / "none.toml"),
        **environ,
    }
    command = [
        sys.executable,
        "-m",
        "agent.cli",
        "daemon",
        "--interval-s",
        "0.1",
        "--window-s",
        "0.3",
        *flags,
    ]
    with subprocess.Popen(command, cwd=CHECKOUT, env=env, stderr=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0


def accepted(request: Seen) -> tuple[int, dict[str, object]]:
    return (201, {"added": 1, "dropped": {}}) if request.path.endswith("/telemetry") else (204, {})


def windows(server: FakeServer) -> list[dict[str, Any]]:
    bodies = [json.loads(gzip.decompress(s.body)) for s in server.seen if s.path.endswith("/telemetry")]
    return [window for body in bodies for window in body["windows"]]


def test_nvml_and_dcgm_arrive_as_one_window_and_stand_on_one_page(
    stub_library: StubNvml, tmp_path: Path
) -> None:
    scenario = tmp_path / "scenario"
    scenario.write_text(a_host(a_gpu(nvmlDeviceGetTotalEnergyConsumption="0 5000", **{"field:5": "0 2"})))
    metrics, figures = free_port(), line("DCGM_FI_PROF_SM_ACTIVE", 0.75, UUID)
    figures += line("DCGM_FI_DEV_POWER_USAGE", 1, UUID)  # NVML tells 150 W itself
    with exporter(page(figures)) as address, running(FakeServer(accepted)) as server:
        environ = {"LD_LIBRARY_PATH": str(stub_library.folder), "ROOFLIGHT_NVML_SCENARIO": str(scenario)}
        flags = ("--server", server.url, "--dcgm", str(address), "--metrics", str(metrics))
        with daemon(tmp_path, *flags, **environ):
            window = wait_until(lambda: next((w for w in windows(server) if "sm_active" in w), None))
            with urllib.request.urlopen(f"http://127.0.0.1:{metrics}/metrics") as answer:
                served = answer.read().decode()
    assert window["uuid"] == UUID
    assert window["sm_active"]["last"] == 0.75
    assert window["power_w"] == {"min": 150.0, "mean": 150.0, "max": 150.0, "last": 150.0}
    assert window["ecc_corrected_aggregate"]["last"] == 2
    assert window["energy_j"] == 0.0
    labels = f'gpu="0",UUID="{UUID}"'
    for told in (
        "DCGM_FI_PROF_SM_ACTIVE{%s",
        "DCGM_FI_DEV_ECC_SBE_AGG_TOTAL{%s",
        "DCGM_FI_DEV_POWER_USAGE{%s",
    ):
        assert told % labels in served
    assert "rooflight_agent_dcgm_failures_total 0\n" in served


def test_an_exporter_that_is_not_there_costs_nothing_but_its_figures(
    stub_library: StubNvml, tmp_path: Path
) -> None:
    scenario = tmp_path / "scenario"
    scenario.write_text(a_host(a_gpu()))
    metrics = free_port()
    with running(FakeServer(accepted)) as server:
        environ = {"LD_LIBRARY_PATH": str(stub_library.folder), "ROOFLIGHT_NVML_SCENARIO": str(scenario)}
        flags = (
            "--server",
            server.url,
            "--dcgm",
            f"http://127.0.0.1:{free_port()}",
            "--metrics",
            str(metrics),
        )
        with daemon(tmp_path, *flags, **environ):
            window = wait_until(lambda: next(iter(windows(server)), None))
            with urllib.request.urlopen(f"http://127.0.0.1:{metrics}/metrics") as answer:
                served = answer.read().decode()
    assert window["util_pct"]["last"] == 40
    assert "sm_active" not in window
    failures = next(
        row for row in served.splitlines() if row.startswith("rooflight_agent_dcgm_failures_total")
    )
    assert float(failures.split()[1]) >= 1
    assert "rooflight_agent_loop_failures_total" not in served or 'loop="dcgm"} 0' in served
