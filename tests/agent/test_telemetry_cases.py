"""The cases of NVML, through the real pynvml on the stub.  Case 65 is in :mod:`tests.agent.test_dcgm`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent.counters import Windows
from agent.health import text
from agent.sampler.sample import DeviceSample
from tests.agent.nvml_stub import StubNvml, lines
from tests.cases import FOLDER, load

pytestmark = pytest.mark.compiler

Ticks = list[list[DeviceSample]]


def play(stub: StubNvml, case: str, proc: Path) -> tuple[Ticks, dict[str, Any]]:
    """The samples of a case, and what is expected of them."""
    document = json.loads((FOLDER / case / "input.nvml.json").read_text())
    ticks = stub.sample([(tick["t"], _scenario(tick)) for tick in document["ticks"]], proc)
    return msgspec.convert(ticks, Ticks), load(case)["expect"]


def windows(ticks: Ticks) -> dict[str, dict[str, Any]]:
    """The windows of all ticks, by UUID."""
    made = Windows()
    for samples in ticks:
        made.add(samples)
    return {window["uuid"]: window for window in made.take()}


def _scenario(tick: dict[str, Any]) -> str:
    rows = [f"- nvmlDeviceGetCount 0 {tick.get('nvmlDeviceGetCount', len(tick['devices']))}"]
    for i, device in enumerate(tick["devices"]):
        rows += [_line(str(i), call, value) for call, value in device.items() if call != "mig"]
        for j, instance in enumerate(device.get("mig", [])):
            rows += [_line(f"{i}/{j}", call, value) for call, value in instance.items()]
    return lines(*rows)


def _line(device: str, call: str, value: Any) -> str:
    if isinstance(value, dict) and "code" in value:
        return f"{device} {call} {value['code']}"
    order = {"nvmlDeviceGetMemoryInfo_v2": ("total", "reserved", "free", "used"),
             "nvmlDeviceGetMemoryInfo": ("total", "free", "used"),
             "nvmlDeviceGetUtilizationRates": ("gpu", "memory")}  # fmt: skip
    if call in order:
        value = [value[key] for key in order[call]]
    elif call == "nvmlDeviceGetComputeRunningProcesses":
        value = [row[key] for row in value for key in ("pid", "usedGpuMemory", "gpuInstanceId")]
    words = " ".join(map(str, value)) if isinstance(value, list) else str(value)
    return f"{device} {call} 0 {words}"


def flags(sample: DeviceSample) -> set[str]:
    return {f"{flag.code}: {flag.detail}" for flag in sample.flags}


def test_case_60(stub_library: StubNvml, proc: Path) -> None:
    """A field that is not supported: a gap, also in the mean; never 0 W, never a text in its place."""
    ticks, expect = play(stub_library, "60-field-not-supported", proc)
    for field in ("power_w", "fan_pct"):
        assert {str(i): [getattr(tick[i], field) for tick in ticks] for i in (0, 1)} == expect[field]
    assert sum(map(len, ticks)) == expect["samples_stored"]
    p620, a100 = windows(ticks).values()
    assert p620["power_w"] is expect["power_avg_w"]["0"] is None
    assert a100["power_w"]["mean"] == expect["power_avg_w"]["1"]
    assert "not_supported: power (device 0)" in flags(ticks[0][0])
    # The whole sample is not dropped, and what has no power has no line in the agent's own page.
    assert [s.util_pct for s in ticks[0]] == [40, 40]
    assert text("h", [], ticks[0]).count("DCGM_FI_DEV_POWER_USAGE{") == 1


def test_case_61(stub_library: StubNvml, proc: Path) -> None:
    """MIG: no utilisation anywhere, memory of the instances within the parent's."""
    [[parent, *instances]], expect = play(stub_library, "61-mig-utilisation", proc)
    assert {key: getattr(parent, key) for key in expect["parent"]} == expect["parent"]
    seen = [{key: getattr(i, key) for key in ("util_pct", "mem_used")} for i in instances]
    assert seen == expect["instances"]
    whole = [s for s in (parent, *instances) if s.parent_uuid is None]
    assert sum(s.mem_used or 0 for s in whole) == expect["host_mem_used_total"]
    assert all("mig_utilisation_unavailable" in {f.code for f in s.flags} for s in (parent, *instances))
    assert "DCGM_FI_DEV_GPU_UTIL{" not in text("h", [], [parent, *instances])
    # Each keeps its own name, by which no slice is given the roofs of the whole.
    assert [s.name for s in instances] == [f"NVIDIA A100-SXM4-40GB MIG {p}" for p in ("3g.20gb", "1g.5gb")]
    assert expect["full_gpu_peak_used_for_instances"] is False


def test_case_62(stub_library: StubNvml, proc: Path) -> None:
    """One GPU is lost, and indices shift: readings go by UUID, nothing is repeated."""
    ticks, expect = play(stub_library, "62-one-gpu-lost", proc)
    seen = {
        uuid: [next(s.util_pct for s in tick if s.uuid == uuid) for tick in ticks]
        for uuid in expect["util_pct_by_uuid"]
    }
    assert seen == expect["util_pct_by_uuid"]
    lost = next(s for s in ticks[3] if s.uuid == expect["lost_uuid"])
    assert flags(lost) == {"device_lost: GPU index 2 since 1764500010"}
    assert windows(ticks)[expect["lost_uuid"]]["state"] == "lost"


def test_case_63(stub_library: StubNvml, proc: Path) -> None:
    """The driver's reserve is not used memory; where the two cannot be parted, that is said."""
    [devices], expect = play(stub_library, "63-reserved-memory", proc)
    for field, values in expect.items():
        assert {str(s.index): getattr(s, field) for s in devices} == values
    flagged = [s.index for s in devices if "mem_used_includes_reserved" in {f.code for f in s.flags}]
    assert flagged == [1]
    assert [s.mem_activity_pct for s in devices] == [10, 10], "the time in which memory was accessed"


def test_case_64(stub_library: StubNvml, proc: Path) -> None:
    """A part whose memory is the host's."""
    [[sample]], expect = play(stub_library, "64-unified-memory-part", proc)
    keys = ("util_pct", "power_w", "mem_total", "mem_available")
    assert {key: getattr(sample, key) for key in keys} == {key: expect[key] for key in keys}
    assert sample.mem_used is expect["mem_used_gpu"] is None
    assert sample.memory_kind == "unified"
    assert sample.state == "ok"


def test_case_67(stub_library: StubNvml, proc: Path) -> None:
    """The driver's pids in a container: numbers, with their memory, and nobody's names."""
    [[sample]], expect = play(stub_library, "67-foreign-pid-namespace", proc)
    rows = [{key: getattr(p, key) for key in ("pid", "name", "mem")} for p in sample.processes or ()]
    assert rows == expect["processes"]
    assert {p.gpu_instance_id for p in sample.processes or ()} == {expect["gpu_instance_id"]}
    assert (sample.mem_used, sample.mem_unaccounted) == (expect["mem_used"], expect["mem_unaccounted"])
    [flag] = [f for f in sample.flags if f.code == "pid_foreign_namespace"]
    assert flag.count == 3
    told: Any = windows([[sample]])[sample.uuid or ""]["processes"]
    assert [(p["pid"], p["name"], p["user"]) for p in told] == [
        (28290, None, None),
        (77, None, None),
        (901, None, None),
    ]
