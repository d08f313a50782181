"""The real pynvml on the stub: links, ECC, processes and their owners, what an old driver lacks, and the
return of what was lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent.sampler.host import Found, Host
from tests.agent.conftest import a_process
from tests.agent.nvml_stub import StubNvml, compile_stub, lines
from tests.agent.test_nvml import LOST, OTHER, UUID, a_gpu, a_host, codes

pytestmark = pytest.mark.compiler

# nvml.h: PCIe counts bytes, NVLink KiB over all links.
PCIE_TX, PCIE_RX, NVLINK_TX, NVLINK_RX = "field:197", "field:198", "field:138:all", "field:139:all"
U32, U64 = 1, 3


def counted(name: str, *readings: tuple[float, str]) -> list[tuple[float, str]]:
    """Moments at which one numbered field of one device has the answers given."""
    return [(t, a_host(a_gpu(**{name: answer}))) for t, answer in readings]


def rates(samples: list[list[dict[str, Any]]], name: str) -> list[Any]:
    return [sample[name] for [sample] in samples]


def test_links_are_the_rates_of_their_counters(stub_library: StubNvml) -> None:
    # (3000000 - 1000000) KiB x 1024 B / 2 s; NVML's own times, in microseconds, are the ones that count.
    nvlink = counted(NVLINK_TX, (10.0, "0 1000000 3 1000000"), (12.7, "0 3000000 3 3000000"))
    assert rates(stub_library.sample(nvlink), "nvlink_tx_bytes_per_s") == [None, 1_024_000_000]
    # 500 B in 2 s, by the time of the look where NVML gives none
    pcie = counted(PCIE_RX, (10.0, "0 1000"), (12.0, "0 1500"), (13.0, "0 1500"))
    assert rates(stub_library.sample(pcie), "pcie_rx_bytes_per_s") == [None, 250, 0]


def test_a_counter_that_went_backwards_or_is_blank_is_a_gap(stub_library: StubNvml) -> None:
    blank = 2**64 - 1
    ticks = counted(
        NVLINK_RX, (1.0, "0 500"), (2.0, "0 100"), (3.0, "0 300"), (4.0, f"0 {blank}"), (5.0, "0 500")
    )
    # 200 KiB in 1 s; then 200 KiB in the 2 s since the last known count
    assert rates(stub_library.sample(ticks), "nvlink_rx_bytes_per_s") == [None, None, 204_800, None, 102_400]


def test_ecc_counts_each_have_their_own_answer(stub_library: StubNvml) -> None:
    gpu = a_gpu(**{"field:3": "0 7", "field:4": "3", "field:5": "0 4294967295", "field:6": "0 0"})
    [[sample]] = stub_library.sample([(1.0, a_host(gpu))])
    assert [
        sample[f"ecc_{kind}"]
        for kind in (
            "corrected_volatile",
            "uncorrected_volatile",
            "corrected_aggregate",
            "uncorrected_aggregate",
        )
    ] == [7, None, 4294967295, 0]
    assert sample["util_pct"] == 40


def test_the_temperature_of_the_memory(stub_library: StubNvml) -> None:
    ticks = counted("field:82", (1.0, f"0 66 {U32}"), (2.0, f"0 2147483634 {U32}"), (3.0, "999"))
    assert rates(stub_library.sample(ticks), "mem_temp_c") == [66, None, None]


def test_a_refusal_of_all_numbered_fields_costs_those_alone(stub_library: StubNvml) -> None:
    [[sample]] = stub_library.sample([(1.0, a_host(a_gpu(nvmlDeviceGetFieldValues="13")))])
    assert (sample["ecc_corrected_volatile"], sample["mem_temp_c"], sample["power_w"]) == (None, None, 150)


def test_a_device_that_is_lost_in_a_numbered_field_gives_no_half_sample(stub_library: StubNvml) -> None:
    ticks = counted(NVLINK_TX, (1.0, "0 1"), (2.0, "15"))
    [[_], [sample]] = stub_library.sample(ticks)
    assert (sample["uuid"], sample["state"], sample["power_w"]) == (UUID, "lost", None)


def test_without_64_bit_counters_pcie_is_asked_for_in_turns(stub_library: StubNvml) -> None:
    """Three devices have six rates; a look asks four questions, of 20 ms each.  NVML answers in KiB/s."""
    gpus = [
        a_gpu(i, f"GPU-{i}", **{"nvmlDeviceGetPcieThroughput:tx": f"0 {10 + i}",
                                "nvmlDeviceGetPcieThroughput:rx": "0 5", PCIE_TX: f"0 77 {U32}"})
        for i in range(3)
    ]  # fmt: skip
    ticks = stub_library.sample([(float(t), a_host(*gpus)) for t in range(3)])
    asked = [[s[f"pcie_{d}_bytes_per_s"] for s in samples for d in ("tx", "rx")] for samples in ticks]
    assert asked == [
        [10240, 5120, 11264, 5120, None, None],
        [None, None, None, None, 12288, 5120],
        [10240, 5120, 11264, 5120, None, None],
    ]


def test_with_counters_pcie_is_not_asked_for(stub_library: StubNvml) -> None:
    answers = {"nvmlDeviceGetPcieThroughput:tx": "0 999", PCIE_TX: f"0 4096 {U64}"}
    assert rates(stub_library.sample([(1.0, a_host(a_gpu(**answers)))]), "pcie_tx_bytes_per_s") == [None]


def test_a_driver_without_newer_calls(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Its library lacks the symbols; the binding says so in an error of another kind for some of them."""
    old = compile_stub(tmp_path_factory.mktemp("old"), "-DOLD_DRIVER")
    gpu = a_gpu(nvmlDeviceGetComputeRunningProcesses="0 5 4096 4294967295")
    [[sample]] = old.sample([(1.0, a_host(gpu))])
    assert (sample["util_pct"], sample["nvlink_tx_bytes_per_s"]) == (40, None)
    assert [(p["pid"], p["mem"]) for p in sample["processes"]] == [(5, 4096)]


def test_processes_have_their_owners_and_a_number_used_again_has_none(
    stub_library: StubNvml, proc: Path
) -> None:
    """At 100 s the driver names 77, 78 and 79; 78 was started at 102.5 s and so is another process."""
    (proc / "self/ns/pid").unlink()
    (proc / "self/ns/pid").symlink_to("pid:[4026531836]")
    a_process(proc, 77, "py (x) y", uid=0, ticks=250)  # 2.5 s after the boot at 0, by 100 ticks a second
    a_process(proc, 78, "late", ticks=10_250)
    a_process(proc, 79, "nobody's", uid=3_999_999_999, ticks=9_900)
    gpu = a_gpu(nvmlDeviceGetComputeRunningProcesses="0 77 1 0 78 2 0 79 3 0")
    [[sample]] = stub_library.sample([(100.0, a_host(gpu))], proc)
    assert [(p["name"], p["uid"], p["user"], p["started"]) for p in sample["processes"]] == [
        ("py (x) y", 0, "root", 2.5),
        (None, None, None, None),
        ("nobody's", 3_999_999_999, None, 99.0),
    ]
    assert [p["mem"] for p in sample["processes"]] == [1, 2, 3]
    [flag] = [f for f in sample["flags"] if f["code"] == "pid_foreign_namespace"]
    assert flag["count"] == 1


def test_a_number_that_is_given_anew_is_read_anew(proc: Path) -> None:
    """What is known of a process is kept as long as its name and its start are the same."""
    (proc / "self/ns/pid").unlink()
    (proc / "self/ns/pid").symlink_to("pid:[4026531836]")
    host = Host(proc)
    a_process(proc, 77, "first", uid=0, ticks=100)
    assert [host.process(77, 10.0) for _ in range(2)] == [Found("first", 0, "root", 1.0)] * 2
    a_process(proc, 77, "second", uid=3_999_999_999, ticks=200)
    assert host.process(77, 10.0) == Found("second", 3_999_999_999, None, 2.0)
    (proc / "77/stat").write_text("nonsense")
    assert host.process(77, 10.0) is None
    assert host.process(99, 10.0) is None


def test_a_lost_device_comes_back_in_a_new_session_only(stub_library: StubNvml) -> None:
    """Lost at 2 and well by itself from then on, it is seen again when the session is new, at 3."""
    lost, well = a_host([f"0 {line}" for line in LOST]), a_host(a_gpu(0, UUID))
    ticks = stub_library.sample([(1.0, well), (2.0, lost), (2.5, well), (3.0, well)])
    assert [tick[0]["state"] for tick in ticks] == ["ok", "lost", "lost", "ok"]


def test_a_driver_that_is_loaded_anew_brings_all_devices_back(stub_library: StubNvml) -> None:
    """Uninitialised (1), then not loaded (9), then there again."""
    both = a_host(a_gpu(0, UUID), a_gpu(1, OTHER))
    gone, absent = lines("- nvmlDeviceGetCount 1"), lines("- nvmlInitWithFlags 9", "- nvmlDeviceGetCount 1")
    ticks = stub_library.sample([(1.0, both), (2.0, gone), (3.0, absent), (6.0, both)])
    assert [[s["state"] for s in tick] for tick in ticks] == [
        ["ok"] * 2,
        ["lost"] * 2,
        ["lost"] * 2,
        ["ok"] * 2,
    ]
    assert [s["util_pct"] for s in ticks[2]] == [None, None]
    assert "device_lost" in codes(ticks[2][0])
