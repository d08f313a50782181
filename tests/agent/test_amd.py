"""AMD's devices through a module of amdsmi's shapes: what each odd answer becomes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from agent.sampler.amd import Amd, fill, open_amd
from agent.sampler.devices import open_devices
from agent.sampler.host import Host
from agent.sampler.nvml import NO_DRIVER, NoDriverError
from agent.sampler.sample import DeviceSample
from tests.agent.amdsmi_stub import AmdSmi, Refused, an_mi300x
from tests.agent.conftest import a_process
from tests.cases import load, load_input

CASE = "69-amd-smi-shapes"


def flags(sample: DeviceSample) -> list[tuple[str, int | None, str]]:
    return [(f.code, f.count, f.detail) for f in sample.flags]


def test_case_69() -> None:
    """A value in three shapes, and N/A at any level: null for that field, and the others stay."""
    expect, samples = load(CASE)["expect"], {}
    for tree in load_input(CASE):
        samples[str(tree["gpu"])] = sample = DeviceSample(f"GPU-{tree['gpu']}", 0.0, tree["gpu"])
        fill(sample, tree)
    assert {gpu: s.util_pct for gpu, s in samples.items()} == expect["util_pct"]
    assert {gpu: s.power_w for gpu, s in samples.items()} == expect["power_w"]
    assert {gpu: s.temp_c for gpu, s in samples.items()} == expect["temp_c"]
    assert {gpu: s.mem_used for gpu, s in samples.items()} == expect["mem_used_bytes"]
    [(_, count, detail)] = [f for f in flags(samples["1"]) if f[0] == "field_unavailable"]
    assert (count, detail) == (5, "utilisation, memory activity, power, temperature, memory (gpu 1)")
    # Only of gpu 2 is one other thing missing: its activity of the memory.
    assert flags(samples["0"]) == []
    assert flags(samples["2"]) == [("field_unavailable", 1, "memory activity (gpu 2)")]


def test_a_healthy_device() -> None:
    [sample] = Amd(AmdSmi(an_mi300x())).sample(5.0)
    assert (sample.uuid, sample.name, sample.state) == ("GPU-aaaaaaaaaaaaaaaa", "AMD Instinct MI300X", "ok")
    assert (sample.util_pct, sample.mem_activity_pct, sample.power_w) == (87, 41, 612)
    assert (sample.temp_c, sample.mem_temp_c, sample.sm_clock_mhz, sample.mem_clock_mhz) == (
        71,
        60,
        2100,
        1300,
    )
    assert (sample.mem_total, sample.mem_used) == (206_141_652_992, 1_073_741_824)
    assert sample.mem_free == 206_141_652_992 - 1_073_741_824
    assert sample.energy_mj == 30_600_000
    assert (sample.ecc_corrected_volatile, sample.ecc_uncorrected_volatile) == (3, 0)
    assert (sample.throttle, sample.flags) == (None, [])


def test_each_refusal_costs_its_own_field() -> None:
    gone = {"power_info": Refused(), "temp_metric.HOTSPOT": Refused(10), "gpu_activity": Refused(1)}
    [sample] = Amd(AmdSmi(an_mi300x(**gone))).sample(5.0)
    assert (sample.power_w, sample.temp_c, sample.util_pct) == (None, None, None)
    assert (sample.mem_used, sample.sm_clock_mhz) == (1_073_741_824, 2100)
    assert flags(sample) == [
        ("field_unavailable", 4, "utilisation, memory activity, power, temperature (gpu 0)")
    ]


def test_older_releases_have_other_names() -> None:
    """ROCm 5 and 6: average power, edge temperature, VRAM in MB, cur_clk, the energy counter as power."""
    device = an_mi300x(
        **{
            "power_info": {"average_socket_power": 250, "current_socket_power": "N/A"},
            "temp_metric.HOTSPOT": Refused(),
            "temp_metric.EDGE": 48,
            "gpu_memory_total.VRAM": Refused(),
            "gpu_vram_usage": {"vram_total": 196592, "vram_used": 1024},
            "clock_info.GFX": {"cur_clk": 1700},
            "energy_count": {"power": 1000, "counter_resolution": 15.0},
        }
    )
    [sample] = Amd(AmdSmi(device)).sample(5.0)
    assert (sample.power_w, sample.temp_c, sample.sm_clock_mhz, sample.energy_mj) == (250, 48, 1700, 15)
    assert (sample.mem_total, sample.mem_used) == (196592 * 2**20, 1024 * 2**20)


@pytest.mark.parametrize(
    "blank", [0xFFFF, 0xFFFFFFFF, 2**64 - 1, "N/A", None, {}, [], {"value": "N/A"}, True, "W", "1" * 30]
)
def test_blanks_of_every_width_are_unknown(blank: Any) -> None:
    sample = DeviceSample("GPU-1", 0.0, 0)
    fill(sample, {"power": {"socket_power": blank}, "usage": blank, "temperature": {"hotspot": blank}})
    assert (sample.power_w, sample.util_pct, sample.temp_c) == (None, None, None)
    assert "out_of_range" not in {f.code for f in sample.flags}


def test_a_percentage_beyond_100_and_a_unit_that_is_unknown() -> None:
    sample = DeviceSample("GPU-1", 0.0, 0)
    fill(
        sample,
        {"usage": {"gfx_activity": 101}, "mem_usage": {"used_vram": "5 furlongs", "total_vram": "2 GB"}},
    )
    assert (sample.util_pct, sample.mem_used, sample.mem_total) == (None, None, 2 * 2**30)
    assert ("out_of_range", 1, "utilisation (gpu 0): 101") in flags(sample)


def test_partitions_are_devices_whose_socket_is_counted_once() -> None:
    def partition(n: int, **answers: Any) -> dict[str, Any]:
        told = {"kfd_id": 1, "node_id": 2 + n, "current_partition_id": n}
        return an_mi300x(f"GPU-{n}", gpu_kfd_info=told, **answers)

    nameless = partition(2, gpu_enumeration_info=Refused())
    samples = Amd(AmdSmi(partition(0), partition(1), nameless, an_mi300x("GPU-b"))).sample(5.0)
    assert [(s.uuid, s.parent_uuid, s.gpu_instance_id) for s in samples] == [
        ("GPU-0", None, None), ("GPU-1", "GPU-0", 1), (None, "GPU-0", 2), ("GPU-b", None, None),
    ]  # fmt: skip
    assert [s.power_w for s in samples] == [612, None, None, 612]
    assert [s.energy_mj is None for s in samples] == [False, True, True, False]
    assert [s.util_pct for s in samples] == [87] * 4
    assert ("device_unmatched", None, "GPU index 2 has no UUID to join it by") in flags(samples[2])


def test_partitions_of_one_uuid_are_not_taken_for_one_device() -> None:
    told = [{"kfd_id": 1, "node_id": n, "current_partition_id": n} for n in (0, 1)]
    samples = Amd(AmdSmi(*(an_mi300x("GPU-same", gpu_kfd_info=t) for t in told))).sample(5.0)
    assert [(s.uuid, s.parent_uuid, s.state) for s in samples] == [
        ("GPU-same", None, "ok"), (None, "GPU-same", "ok"),
    ]  # fmt: skip
    assert ("device_unmatched", None, "GPU index 1 has the UUID of another") in flags(samples[1])


def test_a_lost_device_comes_back_in_a_new_session() -> None:
    module = AmdSmi(an_mi300x("GPU-a"), an_mi300x("GPU-b"))
    amd = open_amd_with(module)
    amd.sample(1.0)
    module.devices[0] = {}
    states = [[(s.uuid, s.state) for s in amd.sample(t)] for t in (2.0, 2.5)]
    assert states == [[("GPU-b", "ok"), ("GPU-a", "lost")]] * 2
    module.devices[0] = an_mi300x("GPU-a")
    assert module.sessions == 1
    assert {(s.uuid, s.state) for s in amd.sample(3.0)} == {("GPU-a", "ok"), ("GPU-b", "ok")}
    assert module.sessions == 2


def test_processes_and_their_owners(proc: Path) -> None:
    (proc / "self/ns/pid").unlink()
    (proc / "self/ns/pid").symlink_to("pid:[4026531836]")
    a_process(proc, 77, "train", uid=0)
    rows = [
        {"name": "N/A", "pid": 77, "mem": 9, "memory_usage": {"gtt_mem": 1, "cpu_mem": 2, "vram_mem": 7}},
        {"name": "python3", "pid": 5555, "mem": 4},
    ]
    amd = Amd(AmdSmi(an_mi300x(gpu_process_list=rows)), Host(proc))
    [sample] = amd.sample(5.0)
    assert [(p.pid, p.name, p.user, p.mem) for p in sample.processes or ()] == [
        (77, "train", "root", 7),
        (5555, None, None, 4),
    ]


def open_amd_with(module: AmdSmi) -> Amd:
    module.amdsmi_init()
    return Amd(module)


def test_without_a_driver_or_a_binding_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NoDriverError, match="no AMD driver found"):
        open_amd(node=tmp_path / "kfd")
    monkeypatch.setitem(sys.modules, "amdsmi", None)
    with pytest.raises(NoDriverError, match="amdsmi is not installed"):
        open_amd(node=tmp_path)
    monkeypatch.setitem(sys.modules, "amdsmi", AmdSmi(refuses=34))
    with pytest.raises(NoDriverError, match=r"the AMD driver refused \(Error code: 34 "):
        open_amd(node=tmp_path)
    monkeypatch.setitem(sys.modules, "amdsmi", AmdSmi(an_mi300x()))
    assert len(open_amd(node=tmp_path).sample(1.0)) == 1


def test_a_binding_without_its_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """amdsmi itself then fails with a KeyError, within its import."""
    (tmp_path / "amdsmi.py").write_text("_libraries = {}\n_libraries['libamd_smi.so']\n")
    monkeypatch.delitem(sys.modules, "amdsmi", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(NoDriverError, match="cannot load its library"):
        open_amd(node=tmp_path)


def test_nvidia_is_asked_first_and_its_word_stands_where_amd_is_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def none(**_: object) -> Any:
        raise NoDriverError(NO_DRIVER)

    monkeypatch.setattr("agent.sampler.devices.open_nvml", none)
    monkeypatch.setattr("agent.sampler.devices.NODE", tmp_path / "kfd")
    with pytest.raises(NoDriverError, match="no NVIDIA driver found"):
        open_devices()
    monkeypatch.setattr("agent.sampler.devices.NODE", tmp_path)
    monkeypatch.setattr("agent.sampler.devices.open_amd", lambda: open_amd(node=tmp_path))
    monkeypatch.setitem(sys.modules, "amdsmi", AmdSmi(an_mi300x()))
    assert [s.name for s in open_devices().sample(1.0)] == ["AMD Instinct MI300X"]
