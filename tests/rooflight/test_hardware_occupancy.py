"""Occupancy by hand: blocks that fit by each resource, warps that they bring."""

from __future__ import annotations

import pytest

from rooflight.hardware import gpus
from rooflight.hardware.limits import Limits, limits_of, record_of
from rooflight.hardware.occupancy import Occupancy, limits_from_properties, occupancy

V100 = {
    "warpSize": 32,
    "maxThreadsPerMultiprocessor": 2048,
    "regsPerMultiprocessor": 65536,
    "sharedMemPerMultiprocessor": 98304,
}


@pytest.mark.parametrize(
    ("compute", "threads", "regs", "smem", "fraction", "limiter"),
    [
        # 2048 / 256 = 8 blocks of 8 warps = 64 of 64.
        ("8.0", 256, 32, 0, 1.0, "threads"),
        # 128 regs x 32 = 4096 a warp; 65536 / 4096 = 16 warps; 8 warps a block: 2 blocks = 16 of 64.
        ("7.0", 256, 128, 0, 0.25, "registers"),
        # 33 regs x 32 = 1056, rounded to 1280; 65536 / 1280 = 51 warps / 8 = 6 blocks = 48 of 64.
        ("7.0", 256, 33, 0, 0.75, "registers"),
        # 48 KiB of 96: 2 blocks of 4 warps = 8 of 64.
        ("7.0", 128, 16, 49_152, 0.125, "shared memory"),
        # The system takes 1 KiB since 8.0: 164 / (40 + 1) = 4 blocks of 8 warps = 32 of 64.
        ("8.0", 256, 16, 40 * 1024, 0.5, "shared memory"),
        # 32 threads a block: 32 blocks of one warp = 32 of 64.
        ("8.0", 32, 16, 0, 0.5, "blocks"),
        # 7.5 has 32 warps and 16 blocks: 16 of 32.
        ("7.5", 32, 16, 0, 0.5, "blocks"),
        # 33 threads are two warps: 24 blocks x 2 = 48 of 48.
        ("8.9", 33, 16, 0, 1.0, "threads"),
        # 1024 of 1536 threads: one block, 32 of 48 warps.
        ("8.6", 1024, 32, 0, 2 / 3, "threads"),
    ],
)
def test_occupancy(compute: str, threads: int, regs: int, smem: int, fraction: float, limiter: str) -> None:
    assert occupancy(compute, threads, regs, smem) == Occupancy(pytest.approx(fraction), limiter)


def test_the_devices_own_limits_come_first() -> None:
    # Half the registers: 32768 / 4096 = 8 warps = 1 block of 8 = 8 of 64.
    half = Limits(threads=2048, blocks=32, registers=32_768, shared_bytes=98_304)
    assert occupancy("7.0", 256, 128, 0, half) == Occupancy(0.125, "registers")


def test_limits_of_a_trace() -> None:
    assert limits_from_properties(V100, "7.0") == Limits(2048, 32, 65536, 98304, 32) == limits_of("7.0")
    assert limits_from_properties(V100) == Limits(2048, None, 65536, 98304, 32)


def test_properties_of_a_trace_are_taken_as_they_are() -> None:
    # 64 registers x 32 = 2048 a warp: 8192 hold 4 warps, one block of 4, of 1024 / 32 = 32 warps.
    small = {"maxThreadsPerMultiprocessor": 1024, "warpSize": 32, "regsPerMultiprocessor": 8192}
    assert occupancy("7.0", 128, 64, 0, small) == Occupancy(4 / 32, "registers")
    assert occupancy("7.0", 256, 32, 0, {"warpSize": 32}) == occupancy("7.0", 256, 32, 0)
    # "9.0" with wavefronts of 64 is gfx90a, not Hopper.
    assert occupancy("9.0", 256, 32, 0, {"warpSize": 64}) is None


def test_limits_of_an_amd_trace_leave_out_registers_and_blocks() -> None:
    mi210 = {**V100, "warpSize": 64, "sharedMemPerMultiprocessor": 65536}
    limits = limits_from_properties(mi210, "9.0")
    assert limits == Limits(2048, None, None, 65536, 64)
    # 64 KiB / 20 KiB = 3 blocks of 256 / 64 = 4 waves: 12 of 32.
    assert occupancy("gfx90a", 256, 128, 20_480, limits) == Occupancy(12 / 32, "shared memory")
    # Exactly three fit: nothing of 64 KiB is the system's, whatever "9.0" means elsewhere.
    assert occupancy("9.0", 256, 128, 65_536 // 3 // 128 * 128, mi210) == Occupancy(12 / 32, "shared memory")


@pytest.mark.parametrize(
    "properties", [{}, {"maxThreadsPerMultiprocessor": "2048"}, {"maxThreadsPerMultiprocessor": 0}]
)
def test_limits_of_a_trace_without_them(properties: dict[str, object]) -> None:
    assert limits_from_properties(properties) is None


@pytest.mark.parametrize(
    ("compute", "threads", "regs", "smem"),
    [
        ("gfx1036", 256, 32, 0),  # no limits known
        ("99.9", 256, 32, 0),
        ("8.0", 0, 32, 0),
        ("8.0", -1, 32, 0),
        ("8.0", 100_000, 32, 0),
        ("8.0", 1024, 32, 10**12),  # a block that no SM holds
        ("8.0", 1024, 10**9, 0),
    ],
)
def test_impossible_or_unknown(compute: str, threads: int, regs: int, smem: int) -> None:
    assert occupancy(compute, threads, regs, smem) is None


def test_unknown_resources_do_not_limit() -> None:
    assert occupancy("8.0", 256, None, None) == Occupancy(1.0, "threads")


@pytest.mark.parametrize(
    ("compute", "threads", "smem", "expected"),
    [
        # 32 waves of 64: 256 threads are 4 waves, 8 blocks fill the CU.
        ("gfx942", 256, 0, Occupancy(1.0, "threads")),
        # 64 KiB of LDS, nothing of it the system's: 65536 // 20480 = 3 blocks of 4 waves = 12 of 32.
        ("gfx942", 256, 20_480, Occupancy(12 / 32, "shared memory")),
        # CDNA4 has 160 KiB: 163840 // 20480 = 8 blocks of 4 waves = 32 of 32.
        ("gfx950", 256, 20_480, Occupancy(1.0, "threads")),
        # 40 waves on CDNA1, 32 waves of 32 on RDNA3 (256 threads are 8 of them, 4 blocks).
        ("gfx908", 1024, 0, Occupancy(32 / 40, "threads")),
        ("gfx1100", 256, 0, Occupancy(1.0, "threads")),
    ],
)
def test_compute_units_of_amd(compute: str, threads: int, smem: int, expected: Occupancy) -> None:
    """Registers do not limit there: 512 a thread would leave 1 wave per SIMD."""
    assert occupancy(compute, threads, 512, smem) == expected


def test_every_limit_has_its_source_and_date() -> None:
    known = {g.compute for g in gpus()} - {"pvc", "hpu"}
    assert len(known) == 16
    for compute in known:
        row = record_of(compute)
        assert row is not None, compute
        assert row["sources"]
        assert row["date"] == "2026-12-02"


def test_limits_agree_with_the_entries() -> None:
    """An entry's shared memory per SM is that of its compute capability."""
    for gpu in gpus():
        limits = limits_of(gpu.compute)
        if limits is not None and gpu.smem_per_sm_kib is not None:
            assert limits.shared_bytes == gpu.smem_per_sm_kib * 1024, gpu.id
