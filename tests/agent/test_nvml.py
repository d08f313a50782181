"""The real pynvml on a stub of the driver's library: what each odd answer becomes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.agent.nvml_stub import StubNvml, lines

pytestmark = pytest.mark.compiler

UUID = "GPU-11111111-0000-4000-8000-000000000001"
OTHER = "GPU-22222222-0000-4000-8000-000000000002"


def a_gpu(index: int | str = 0, uuid: str = UUID, name: str = "NVIDIA A10", **answers: str) -> list[str]:
    """A healthy device; ``answers`` replace or add the lines of single calls."""
    calls = {
        "nvmlDeviceGetName": f"0 {name}",
        "nvmlDeviceGetUUID": f"0 {uuid}",
        "nvmlDeviceGetUtilizationRates": "0 40 10",
        "nvmlDeviceGetPowerUsage": "0 150000",
        "nvmlDeviceGetTemperature": "0 50",
        "nvmlDeviceGetMemoryInfo_v2": "0 25757220864 323878912 25430327296 3014656",
        "nvmlDeviceGetMigMode": "0 0 0",
        **answers,
    }
    return [f"{index} {call} {answer}" for call, answer in calls.items()]


def a_host(*gpus: list[str], count: int | None = None) -> str:
    n = len(gpus) if count is None else count
    return lines(f"- nvmlDeviceGetCount 0 {n}", *(line for gpu in gpus for line in gpu))


def codes(sample: dict[str, Any]) -> set[str]:
    return {flag["code"] for flag in sample["flags"]}


def test_a_healthy_device(stub_library: StubNvml) -> None:
    gpu = a_gpu(**{"nvmlDeviceGetFanSpeed": "0 34", "nvmlDeviceGetClockInfo:sm": "0 1695"})
    [[sample]] = stub_library.sample([(100.0, a_host(gpu))])
    assert sample["uuid"] == UUID
    assert (sample["util_pct"], sample["mem_activity_pct"], sample["fan_pct"]) == (40, 10, 34)
    assert (sample["power_w"], sample["temp_c"], sample["sm_clock_mhz"]) == (150, 50, 1695)
    # 25757220864 = used 3014656 + reserved 323878912 + free 25430327296
    assert (
        sample["mem_used"] + sample["mem_reserved"] + sample["mem_free"] == sample["mem_total"] == 25757220864
    )
    assert sample["state"] == "ok"


def test_a_call_that_is_not_supported_costs_its_own_field(stub_library: StubNvml) -> None:
    [[sample]] = stub_library.sample([(1.0, a_host(a_gpu(nvmlDeviceGetPowerUsage="3")))])
    assert sample["power_w"] is None
    assert (sample["util_pct"], sample["temp_c"]) == (40, 50)
    assert {"code": "not_supported", "count": None, "detail": "power (device 0)"} in sample["flags"]


@pytest.mark.parametrize("code", ["1", "4", "10", "13", "999"])
def test_any_error_gives_null_and_never_zero(stub_library: StubNvml, code: str) -> None:
    [[sample]] = stub_library.sample([(1.0, a_host(a_gpu(nvmlDeviceGetUtilizationRates=code)))])
    assert sample["util_pct"] is None
    assert sample["power_w"] == 150


def test_a_percentage_beyond_100_is_not_one(stub_library: StubNvml) -> None:
    [[sample]] = stub_library.sample([(1.0, a_host(a_gpu(nvmlDeviceGetUtilizationRates="0 101 10")))])
    assert (sample["util_pct"], sample["mem_activity_pct"]) == (None, 10)
    [flag] = [f for f in sample["flags"] if f["code"] == "out_of_range"]
    assert "101" in flag["detail"]


@pytest.mark.parametrize("blank", [2147483632, 2147483647, 4294967295])
def test_blank_values_are_unknown(stub_library: StubNvml, blank: int) -> None:
    gpu = a_gpu(nvmlDeviceGetTemperature=f"0 {blank}", nvmlDeviceGetUtilizationRates=f"0 {blank} 7")
    [[sample]] = stub_library.sample([(1.0, a_host(gpu))])
    assert (sample["temp_c"], sample["util_pct"], sample["mem_activity_pct"]) == (None, None, 7)
    assert "out_of_range" not in codes(sample)


def test_the_first_version_of_memory_counts_the_reserved_as_used(stub_library: StubNvml) -> None:
    # 326893568 = 3014656 used + 323878912 reserved
    gpu = a_gpu(
        nvmlDeviceGetMemoryInfo_v2="13", nvmlDeviceGetMemoryInfo="0 25757220864 25430327296 326893568"
    )
    [[sample]] = stub_library.sample([(1.0, a_host(gpu))])
    assert (sample["mem_used"], sample["mem_reserved"], sample["mem_free"]) == (326893568, None, 25430327296)
    assert "mem_used_includes_reserved" in codes(sample)


def test_unified_memory_is_the_hosts(stub_library: StubNvml, proc: Path) -> None:
    gpu = a_gpu(name="NVIDIA GB10", nvmlDeviceGetMemoryInfo_v2="3", nvmlDeviceGetMemoryInfo="3")
    [[sample]] = stub_library.sample([(1.0, a_host(gpu))], proc)
    # 127600748 x 1024 and 118566368 x 1024
    assert (sample["mem_total"], sample["mem_available"]) == (130663165952, 121411960832)
    assert (sample["mem_used"], sample["memory_kind"], sample["util_pct"]) == (None, "unified", 40)
    assert "memory_kind" in codes(sample)


def test_a_card_without_memory_figures_is_not_unified(stub_library: StubNvml, proc: Path) -> None:
    gpu = a_gpu(nvmlDeviceGetMemoryInfo_v2="3", nvmlDeviceGetMemoryInfo="3")
    [[sample]] = stub_library.sample([(1.0, a_host(gpu))], proc)
    assert (sample["mem_total"], sample["memory_kind"]) == (None, "device")


def test_mig_instances_are_devices_and_the_parent_has_no_utilisation(stub_library: StubNvml) -> None:
    parent = a_gpu(
        nvmlDeviceGetMigMode="0 1 1", nvmlDeviceGetMemoryInfo_v2="0 42949672960 0 27962417152 14987255808"
    )
    first = a_gpu("0/0", "MIG-a", nvmlDeviceGetMemoryInfo_v2="0 20937965568 0 10937965568 10000000000")
    third = a_gpu("0/2", "MIG-b", nvmlDeviceGetMemoryInfo_v2="0 5100273664 0 113017856 4987255808")
    [samples] = stub_library.sample([(1.0, a_host(parent, first, third, count=1))])
    assert [s["uuid"] for s in samples] == [UUID, "MIG-a", "MIG-b"]
    assert [s["parent_uuid"] for s in samples] == [None, UUID, UUID]
    assert [s["util_pct"] for s in samples] == [None, None, None]
    # The instances' 10000000000 + 4987255808 are parts of the parent's 14987255808.
    assert samples[0]["mem_used"] == samples[1]["mem_used"] + samples[2]["mem_used"] == 14987255808
    assert all("mig_utilisation_unavailable" in codes(s) for s in samples)


LOST = ("nvmlDeviceGetName 15", "nvmlDeviceGetUUID 15", "nvmlDeviceGetUtilizationRates 15")


def test_a_lost_device_keeps_its_uuid_and_the_others_their_values(stub_library: StubNvml) -> None:
    """The lost one is index 0, so that the other takes its index when the driver counts one device."""
    both = a_host(a_gpu(0, UUID), a_gpu(1, OTHER))
    lost = a_host([f"0 {line}" for line in LOST], a_gpu(1, OTHER))
    shifted = a_host(a_gpu(0, OTHER, nvmlDeviceGetUtilizationRates="0 77 1"))
    # The last comes while the lost device, once at the same index, rests before its next try.
    moments = [(10.0, both), (20.0, lost), (30.0, shifted), (30.5, shifted)]
    ticks = stub_library.sample(moments)
    by_uuid = [{s["uuid"]: s for s in samples} for samples in ticks]
    assert [set(tick) for tick in by_uuid] == [{UUID, OTHER}] * 4
    assert [tick[UUID]["state"] for tick in by_uuid] == ["ok", "lost", "lost", "lost"]
    assert [tick[UUID]["util_pct"] for tick in by_uuid] == [40, None, None, None]
    assert [tick[OTHER]["util_pct"] for tick in by_uuid] == [40, 40, 77, 77]
    [flag] = by_uuid[3][UUID]["flags"]
    assert (flag["code"], flag["detail"]) == ("device_lost", "GPU index 0 since 20")


def test_a_device_lost_in_the_middle_of_a_sample_gives_no_half_of_one(stub_library: StubNvml) -> None:
    half = a_gpu(0, UUID, nvmlDeviceGetTemperature="15")
    ticks = stub_library.sample([(1.0, a_host(a_gpu(0, UUID))), (2.0, a_host(half))])
    [sample] = ticks[1]
    assert (sample["uuid"], sample["state"], sample["util_pct"], sample["power_w"]) == (
        UUID,
        "lost",
        None,
        None,
    )


def test_a_lost_device_is_asked_again_with_growing_pauses(stub_library: StubNvml) -> None:
    """Lost at 2, it is asked at 3, 5 and 9: back at 4, it is seen at 5."""
    lost, well = a_host([f"0 {line}" for line in LOST]), a_host(a_gpu(0, UUID))
    moments = [(1.0, well), (2.0, lost), (3.0, lost), (4.0, well), (5.0, well), (6.0, well)]
    ticks = stub_library.sample(moments)
    assert [tick[0]["state"] for tick in ticks] == ["ok", "lost", "lost", "lost", "ok", "ok"]


def test_a_device_that_never_told_its_uuid_is_shown_by_index(stub_library: StubNvml) -> None:
    [samples] = stub_library.sample([(1.0, a_host([f"0 {line}" for line in LOST], a_gpu(1, OTHER)))])
    assert [(s["uuid"], s["index"], s["state"]) for s in samples] == [(None, 0, "lost"), (OTHER, 1, "ok")]
    assert {"device_lost", "device_unmatched"} <= codes(samples[0])


def test_pids_of_another_namespace_are_numbers_without_names(stub_library: StubNvml, proc: Path) -> None:
    """Here 77 is a bash, but the driver's 77 is a process of the host; 901's memory is not available."""
    all_ones = 2**64 - 1
    gpu = a_gpu(
        nvmlDeviceGetMemoryInfo_v2="0 25757220864 323878912 23433341952 2000000000",
        nvmlDeviceGetComputeRunningProcesses=(
            f"0 28290 1061158912 4294967295 77 524288000 4294967295 901 {all_ones} 4294967295"
        ),
    )
    [[sample]] = stub_library.sample([(1.0, a_host(gpu))], proc)
    assert [(p["pid"], p["name"], p["mem"], p["gpu_instance_id"]) for p in sample["processes"]] == [
        (28290, None, 1061158912, None),
        (77, None, 524288000, None),
        (901, None, None, None),
    ]
    # 2000000000 - 1061158912 - 524288000
    assert sample["mem_unaccounted"] == 414553088
    [flag] = [f for f in sample["flags"] if f["code"] == "pid_foreign_namespace"]
    assert flag["count"] == 3


def test_pids_of_the_first_namespace_have_their_names(stub_library: StubNvml, proc: Path) -> None:
    (proc / "self/ns/pid").unlink()
    (proc / "self/ns/pid").symlink_to("pid:[4026531836]")
    gpu = a_gpu(nvmlDeviceGetComputeRunningProcesses="0 77 1000 0 28290 2000 4294967295")
    [[sample]] = stub_library.sample([(1.0, a_host(gpu))], proc)
    assert [(p["pid"], p["name"], p["gpu_instance_id"]) for p in sample["processes"]] == [
        (77, "bash", 0),
        (28290, None, None),
    ]


def test_no_processes_is_an_empty_list_and_not_unknown(stub_library: StubNvml) -> None:
    without = a_host(a_gpu(nvmlDeviceGetComputeRunningProcesses="0"))
    unsupported = a_host(a_gpu())
    assert [s["processes"] for [s] in stub_library.sample([(1.0, without), (2.0, unsupported)])] == [[], None]


def test_a_driver_that_refuses_is_told_in_words(stub_library: StubNvml, proc: Path) -> None:
    done = stub_library.run([(1.0, lines("- nvmlInitWithFlags 18"))], proc)
    assert done.returncode == 1
    assert b"the NVIDIA driver refused" in done.stderr


def test_a_driver_that_is_not_loaded_is_no_driver(stub_library: StubNvml, proc: Path) -> None:
    done = stub_library.run([(1.0, lines("- nvmlInitWithFlags 9"))], proc)
    assert done.stderr.strip() == b"no NVIDIA driver found: no telemetry was recorded"
