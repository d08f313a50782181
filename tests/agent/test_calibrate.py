"""Measured ceilings: plausible, repeatable, kept and found again."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent import calibrate as calibration_module
from agent.calibrate import calibrate, vector_ceilings
from agent.device import Device, cpu_name, last_level_cache_bytes, pick
from agent.measure import bandwidth, gemm, load
from agent.measure.rates import Rate, best
from agent.measure.timing import LEAST_CALLS, LEAST_SAMPLES, Timing, repeat, summarize
from agent.store import Store
from rooflight.errors import Refused
from rooflight.protocol import Calibration

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


def test_a_product_has_two_operations_for_each_of_m_n_k() -> None:
    assert gemm.flop(3, 5, 7) == 2 * 3 * 5 * 7


def test_median_and_spread_of_samples() -> None:
    # Sorted 1, 2, 3, 4, 10: median 3, quartiles 2 and 4, spread (4 - 2) / 3.
    timing = summarize([10.0, 1.0, 3.0, 2.0, 4.0], others=0.05)
    assert (timing.seconds, timing.estimator) == (3.0, "median of 5")
    assert timing.spread == pytest.approx(2 / 3)


def test_while_others_use_the_cpus_the_fastest_sample_tells_what_the_device_can_do() -> None:
    timing = summarize([10.0, 1.0, 3.0, 2.0, 4.0], others=0.5)
    assert (timing.seconds, timing.estimator) == (1.0, "fastest of 5")
    assert timing.spread == pytest.approx(2 / 3)
    assert summarize([3.0, 3.0], others=None).estimator == "median of 2"


def test_work_that_is_slower_than_its_budget_is_still_sampled_enough() -> None:
    calls = []
    timing = repeat(lambda: calls.append(1), lambda: None, budget_s=0.0)
    assert timing.estimator.endswith(f" of {LEAST_SAMPLES}")
    assert len(calls) >= LEAST_CALLS


def test_the_first_call_is_a_warm_up() -> None:
    """The first call takes 1000 ticks, each later one 1: the median knows nothing of the first."""
    durations = iter([0.2] + [0.003] * 1000)
    timing = repeat(lambda: time.sleep(next(durations)), lambda: None, budget_s=0.01)
    assert 0.003 <= timing.seconds < 0.1


def test_the_best_of_rates() -> None:
    assert best([Rate(1.0, 0, "a"), Rate(3.0, 0, "b"), Rate(2.0, 0, "c")]) == Rate(3.0, 0, "b")
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
    patch.setattr(calibration_module, "QUICK", (0.2, 0.2, 0.1, 0.1))
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
    measured_things = {f"gemm_{dtype}" for dtype in measured.gemm_tflops} | {"stream", "copy", "launch"}
    assert set(measured.spread_pct) == measured_things
    assert all(spread >= 0 for spread in measured.spread_pct.values())


@pytest.mark.torch
def test_fp32_products_are_not_slower_than_fp64_ones(measured: Calibration) -> None:
    """Twice the lanes; the rest is left for the noise of a shared machine."""
    assert measured.gemm_tflops["fp32"] > 0.5 * measured.gemm_tflops["fp64"]


@pytest.mark.torch
@pytest.mark.usefixtures("one_thread")
def test_a_product_measured_thrice_is_the_same_within_a_factor_of_three() -> None:
    device = pick("cpu")
    rates = [gemm.ceiling(device, "fp32", 0.2) for _ in range(3)]
    values = [rate.per_s for rate in rates if rate is not None]
    assert len(values) == 3
    assert max(values) < 3 * statistics.median(values) < 9 * min(values)


def test_vector_ceilings_are_claimed_where_products_run_on_vector_units() -> None:
    products = {"fp32": Rate(1.0, 0, ""), "fp64": Rate(0.5, 0, ""), "bf16": Rate(9.0, 0, "")}
    assert set(vector_ceilings(CPU, products)) == {"fp32", "fp64"}


@pytest.mark.torch
def test_stream_arrays_are_larger_than_the_caches() -> None:
    """Unless a sixteenth of the free memory is less, as on a machine of under 2 GiB."""
    size = bandwidth.array_bytes(CPU)
    assert size % bandwidth.MIB == 0
    assert size >= min(4 * (last_level_cache_bytes() or 0), 64 * bandwidth.MIB)


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


@pytest.mark.torch
def test_on_a_busy_machine_short_products_come_again_and_on_one_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """64^3 is short and comes again; 600^3 is over 2 * 512^3 operations and is left out after the first."""
    import torch

    seen = []

    def busy(_work: object, _wait: object, budget_s: float, _sample_s: float) -> Timing:
        seen.append(torch.get_num_threads())
        time.sleep(budget_s)
        return Timing(1e-6, 0.0, "fastest of 5", disturbed=True)

    monkeypatch.setattr(gemm, "repeat", busy)
    monkeypatch.setattr(gemm, "CPU_SHAPES", ((64, 64, 64), (600, 600, 600)))
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        rate = gemm.ceiling(CPU, "fp32", budget_s=0.2)
        # Two layouts on two threads, then both again on one, until the 0.2 s are over.
        assert seen[:4] == [2, 2, 1, 1]
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert rate is not None
    # 2 * 64^3 = 524288 operations in 1 us, and never those of 600^3.
    assert rate.per_s == pytest.approx(524288e6)


@pytest.mark.torch
def test_a_slow_moment_does_not_end_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first case takes 10 ms a call, all later ones 1 us: the best is of the later ones."""
    seconds = itertools.chain([1e-2], itertools.repeat(1e-6))

    def busy(_work: object, _wait: object, budget_s: float, _sample_s: float) -> Timing:
        time.sleep(budget_s)
        return Timing(next(seconds), 0.0, "fastest of 5", disturbed=True)

    monkeypatch.setattr(gemm, "repeat", busy)
    monkeypatch.setattr(gemm, "CPU_SHAPES", ((64, 64, 64),))
    rate = gemm.ceiling(CPU, "fp32", budget_s=0.3)
    assert rate is not None
    assert rate.per_s == pytest.approx(524288e6)


@pytest.mark.torch
def test_short_passes_take_every_part_of_the_arrays_in_turn() -> None:
    import torch

    arrays = [torch.arange(20.0) + 100 * i for i in range(3)]
    firsts: list[list[float]] = []
    work = bandwidth.in_turn(lambda *parts: firsts.append([float(part[0]) for part in parts]), arrays)
    for _ in range(8):
        work()
    # 20 elements in at most 8 parts: parts of 3, seven of them, from 0, 3, ... 18; then the first again.
    assert firsts == [[n, 100 + n, 200 + n] for n in (0, 3, 6, 9, 12, 15, 18, 0)]


@pytest.mark.torch
@pytest.mark.usefixtures("one_thread")
def test_a_busy_machine_is_streamed_in_short_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole passes of 64 MiB take 1 s, those over an eighth 1 ms: triad = 3 x 8 MiB / 1 ms."""
    timings = itertools.cycle([1.0, 1e-3, 1e-2])
    monkeypatch.setattr(
        bandwidth, "repeat", lambda *_: Timing(next(timings), 0.0, "fastest of 5", disturbed=True)
    )
    monkeypatch.setattr(bandwidth, "array_bytes", lambda _: 64 * bandwidth.MIB)
    rates = bandwidth.streams(CPU, 0.1)
    assert rates["triad"].per_s == pytest.approx(3 * 8 * 2**20 / 1e-3)
    assert rates["read"].per_s == pytest.approx(8 * 2**20 / 1e-3)
    assert "in 8 parts" in rates["triad"].what
