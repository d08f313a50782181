"""Measured ceilings: plausible, repeatable, kept and found again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import msgspec
import pytest

from agent import calibrate as calibration_module
from agent import device as device_module
from agent.calibrate import Budget, Found, calibrate, vector_ceilings
from agent.device import Device, cpu_name, last_level_cache_bytes, pick
from agent.measure import bandwidth, gemm, load
from agent.measure.clocks import Clocks
from agent.measure.confidence import Circumstances
from agent.measure.links import Links
from agent.measure.rates import Rate, best
from agent.measure.timing import Timing
from agent.store import Store
from rooflight.calibration import Calibration, Clock
from rooflight.errors import Refused
from rooflight.protocol import encode

CPU = Device("cpu", "cpu", "AMD EPYC", "vm", 2)


def a_calibration(**values: object) -> Calibration:
    given = {
        "device": CPU.name,
        "kind": "cpu",
        "measured_at": "2026-12-01T10:00:00Z",
        "host": CPU.host,
        "conditions": {"threads": "2"},
        **values,
    }
    return Calibration(**given)  # type: ignore[arg-type]


def a_rate(per_s: float) -> Rate:
    return Rate(per_s, "", Timing(1.0, 0.0, ""))


def test_the_best_of_rates() -> None:
    assert best([a_rate(1.0), a_rate(3.0), a_rate(2.0)]) == a_rate(3.0)
    assert best([]) is None


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Threads that wait for each other make a busy machine's figures meaningless; one is only slow."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def measured(one_thread: None) -> Calibration:
    """A calibration of this machine in a second, on smaller shapes than the real one's."""
    patch = pytest.MonkeyPatch()
    patch.setattr(calibration_module, "QUICK", Budget(0.2, 0.2, 0.1, 0.1))
    patch.setattr(calibration_module, "CPU_ROUNDS", 1)
    patch.setattr(gemm, "CPU_SHAPES", ((128, 128, 128), (256, 256, 256)))
    patch.setattr(bandwidth, "CPU_MOST", 64 * bandwidth.MIB)
    try:
        return calibrate(pick("cpu"), quick=True, note=lambda _: None)
    finally:
        patch.undo()


@pytest.mark.torch
def test_ceilings_are_those_of_a_cpu(measured: Calibration) -> None:
    """Between a microcontroller and 192 cores at 4 GHz with 64 operations a clock (49 TFLOP/s)."""
    assert {"fp32", "fp64"} <= set(measured.gemm_tflops)
    assert all(0.0005 < rate < 100 for rate in measured.gemm_tflops.values())
    assert measured.stream_gbs is not None
    assert 0.2 < measured.stream_gbs < 2000
    assert measured.copy_gbs is not None
    assert 0.2 < measured.copy_gbs < 2000
    assert measured.launch_us is not None
    assert 0.1 < measured.launch_us < 1000


@pytest.mark.torch
def test_a_calibration_says_on_what_and_how_it_was_measured(measured: Calibration) -> None:
    device = pick("cpu")
    assert device.threads == 1
    assert (measured.device, measured.kind, measured.host) == (device.name, "cpu", device.host)
    assert measured.measured_at.endswith("Z")
    assert measured.conditions["threads"] == str(device.threads)
    assert measured.conditions["mode"] == "quick"
    assert measured.software["torch"]
    figures = {f"gemm_{dtype}" for dtype in measured.gemm_tflops} | {"stream", "copy", "read", "launch"}
    assert set(measured.spread_pct) == set(measured.samples) == figures
    assert measured.confidence in ("high", "medium", "low")
    assert measured.confidence_reasons
    assert measured.streams_gbs["triad"] == measured.stream_gbs
    assert (measured.link_gbs, measured.p2p_gbs) == ({}, {})
    assert "not applicable" in measured.conditions["link"]
    assert all(spread >= 0 for spread in measured.spread_pct.values())


@pytest.mark.torch
def test_fp32_products_are_not_slower_than_fp64_ones(measured: Calibration) -> None:
    """Twice the lanes; the rest is left for the noise of a shared machine."""
    assert measured.gemm_tflops["fp32"] > 0.5 * measured.gemm_tflops["fp64"]


def test_vector_ceilings_are_claimed_where_products_run_on_vector_units() -> None:
    products = {"fp32": a_rate(1.0), "fp64": a_rate(0.5), "bf16": a_rate(9.0)}
    assert set(vector_ceilings(CPU, products)) == {"fp32", "fp64"}


def test_the_cpu_is_named_by_its_model(tmp_path: Path) -> None:
    file = tmp_path / "cpuinfo"
    file.write_text("processor\t: 0\nmodel name\t: AMD  EPYC 9654 96-Core\n")
    assert cpu_name(file) == "AMD EPYC 9654 96-Core"
    assert cpu_name(tmp_path / "none")


def test_the_largest_cache_is_the_last(tmp_path: Path) -> None:
    for index, size in enumerate(("32K", "1024K", "32M", "")):
        (tmp_path / f"index{index}").mkdir()
        (tmp_path / f"index{index}/size").write_text(f"{size}\n")
    assert last_level_cache_bytes(tmp_path) == 32 * 1024 * 1024
    assert last_level_cache_bytes(tmp_path / "none") is None


def test_a_calibration_is_found_for_its_device_alone(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.save(a_calibration(stream_gbs=10.0))
    found = store.find(CPU, pytest.fail)
    assert found is not None
    assert found.stream_gbs == 10.0
    others = (
        Device("cpu", "cpu", "Intel", "vm", 2),
        Device("cpu", "cpu", "AMD EPYC", "other", 2),
        Device("cpu", "cpu", "AMD EPYC", "vm", 1),
        Device("gpu", "cuda:0", "AMD EPYC", "vm", 2, "GPU-1"),
    )
    assert [store.find(device, pytest.fail) for device in others] == [None] * 4


def test_a_gpu_is_found_by_uuid(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.save(a_calibration(device="NVIDIA A10", kind="gpu", uuid="GPU-1", stream_gbs=1.0))
    store.save(a_calibration(device="NVIDIA A10", kind="gpu", uuid="GPU-2", stream_gbs=2.0))
    found = store.find(Device("gpu", "cuda:0", "NVIDIA A10", "moved", 8, "GPU-2"), pytest.fail)
    assert found is not None
    assert found.stream_gbs == 2.0
    assert store.find(Device("gpu", "cuda:0", "NVIDIA A10", "vm", 2), pytest.fail) is None


def test_a_new_calibration_replaces_the_one_before(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.save(a_calibration(stream_gbs=1.0))
    store.save(a_calibration(stream_gbs=2.0, measured_at="2026-12-01T11:00:00Z"))
    assert len(list((tmp_path / "calibrations").iterdir())) == 1
    found = store.find(CPU, pytest.fail)
    assert found is not None
    assert found.stream_gbs == 2.0


@pytest.mark.parametrize("content", [b"", b"{", b'{"device": 7}', b"\xff\xfe", b"[]", b" " * (2 << 20)])
def test_a_calibration_that_cannot_be_read_is_told_and_passed_over(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "calibrations").mkdir()
    (tmp_path / "calibrations/x.json").write_bytes(content)
    notes: list[str] = []
    assert Store(tmp_path).find(CPU, notes.append) is None
    [note] = notes
    assert "x.json" in note


def test_the_last_ten_runs_are_kept(tmp_path: Path) -> None:
    store = Store(tmp_path)
    folders = [store.new_run("gemm") for _ in range(13)]
    kept = set((tmp_path / "runs").iterdir())
    assert len(kept) == 10
    assert folders[-1] in kept


def test_a_state_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Refused, match="cannot be made"):
        Store(tmp_path / "file/state").save(a_calibration())


def test_the_share_of_others_is_what_is_busy_less_our_own() -> None:
    """10 s on two CPUs are 20 s in all: 14 s busy, of them 9 s ours, leave 5 of 20."""
    before = load.Load(total=1000.0, busy=400.0, own=30.0)
    assert load.others(before, load.Load(1020.0, 414.0, 39.0)) == pytest.approx(0.25)
    assert load.others(before, load.Load(1020.0, 408.0, 39.0)) == 0.0
    assert load.others(before, before) is None
    assert load.others(None, before) is None


def test_stolen_time_is_others_and_waiting_for_disks_is_not_work(tmp_path: Path) -> None:
    """user 100, nice 0, system 50, idle 700, iowait 30, irq 0, softirq 0, steal 20; guest is in user."""
    stat = tmp_path / "stat"
    stat.write_text("cpu  100 0 50 700 30 0 0 20 9 0\ncpu0 1 2 3\n")
    got = load.now(stat)
    assert got is not None
    assert got.busy / got.total == pytest.approx(170 / 900)
    stat.write_text("garbage\n")
    assert load.now(stat) is None
    assert load.now(tmp_path / "none") is None


def a_timing(seconds: float, samples: int = 40, *, disturbed: bool = False) -> Timing:
    return Timing(seconds, 0.01, "fast decile of 40", samples, disturbed)


class Measured:
    """Stands in for products, streams and launches; counts its rounds and is starved in the first few."""

    rounds: ClassVar[list[float]] = []
    starved = 0

    def __init__(self, *_: object) -> None:
        Measured.rounds.clear()

    def measure(self, budget_s: float) -> None:
        Measured.rounds.append(budget_s)

    def rate(self) -> Rate | None:
        return None

    def rates(self) -> dict[str, Rate]:
        return {name: a_rate(1.0) for name in ("triad", "copy", "read")}

    def timing(self) -> Timing:
        return a_timing(1e-6, disturbed=len(Measured.rounds) // 5 <= Measured.starved)


@pytest.mark.parametrize(("starved", "expected"), [(0, 4), (3, 4), (5, 6), (99, 8)])
def test_a_starved_calibration_goes_on_for_as_long_again(
    monkeypatch: pytest.MonkeyPatch, starved: int, expected: int
) -> None:
    """Four rounds, and up to four more until a round leaves no figure without samples.  A round measures
    three dtypes, the streams and the launches."""
    for name in ("Products", "Streams", "Launches"):
        monkeypatch.setattr(calibration_module, name, Measured)
    monkeypatch.setattr(Measured, "starved", starved)
    found = calibration_module.measure(CPU, Budget(8.0, 4.0, 1.0, 2.0), Clocks(CPU), lambda _: None)
    assert len(Measured.rounds) == 5 * expected
    assert Measured.rounds[:5] == [2.0, 2.0, 2.0, 1.0, 0.5]
    assert found.products == {}


def test_a_gpus_copy_is_from_the_host_and_its_links_are_told() -> None:
    """Bytes and operations per second in units of 10^9 and 10^12, to four digits; 1.23456 us is 1.235."""
    gpu = Device("gpu", "cuda:0", "NVIDIA A10", "lab1", 8, "GPU-0", 0)
    slow = Rate(24.0e9, "one way", Timing(1.0, 0.06, "", 40))
    host = {"h2d": Rate(25.0e9, "up", a_timing(1.0)), "d2h": Rate(26.0e9, "down", a_timing(1.0))}
    streams = {name: Rate(500.0e9, "", a_timing(1.0)) for name in ("triad", "copy", "read")}
    found = Found({}, streams, a_timing(1.23456e-6), Links(host, {"GPU-1": slow}))
    around = Circumstances(0.0, {"sm": Clock(1410, 1695, 1695)}, limits=["power cap"])
    result = calibration_module._result(gpu, found, around)
    assert (result.copy_gbs, result.stream_gbs, result.launch_us) == (25.0, 500.0, 1.235)
    assert (result.link_gbs, result.p2p_gbs) == ({"h2d": 25.0, "d2h": 26.0}, {"GPU-1": 24.0})
    assert result.clocks_mhz["sm"].min == 1410
    assert result.conditions["clocks_limited_by"] == "power cap"
    assert (result.confidence, result.confidence_reasons) == ("medium", ["p2p GPU-1: samples scatter by 6 %"])
    assert msgspec.json.decode(encode(result), type=Calibration) == result


def test_an_older_calibration_still_reads() -> None:
    text = b'{"device":"EPYC","kind":"cpu","measured_at":"2026-12-01T10:00:00Z","stream_gbs":10.0}'
    old = msgspec.json.decode(text, type=Calibration)
    assert (old.confidence, old.clocks_mhz, old.samples) == (None, {}, {})


class FakeGpus:
    """torch with two GPUs."""

    def __init__(self) -> None:
        self.cuda = SimpleNamespace(
            is_available=lambda: True,
            device_count=lambda: 2,
            get_device_properties=lambda i: SimpleNamespace(name="NVIDIA A10", uuid=f"u{i}"),
        )

    def get_num_threads(self) -> int:
        return 8


def test_a_gpu_is_chosen_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_module, "import_torch", FakeGpus)
    assert [d.uuid for d in device_module.every_gpu()] == ["GPU-u0", "GPU-u1"]
    chosen = pick("cuda:1")
    assert (chosen.place, chosen.index, chosen.uuid) == ("cuda:1", 1, "GPU-u1")
    assert pick("cuda").index == pick("auto").index == 0
    with pytest.raises(Refused, match="no cuda:2"):
        pick("cuda:2")


@pytest.mark.parametrize(
    ("text", "known"), [("cuda:0", True), ("cpu", True), ("cuda:", False), ("xpu", False)]
)
def test_choices_of_devices(text: str, known: bool) -> None:
    assert device_module.is_choice(text) is known


@pytest.mark.torch
def test_gpus_that_are_not_there_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for ask in (lambda: pick("cuda:0"), device_module.every_gpu):
        with pytest.raises(Refused, match="no CUDA device"):
            ask()
