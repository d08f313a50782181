"""What keeps a launch from filling its device, by hand."""

from __future__ import annotations

import pytest

from rooflight.cli.markdown import markdown
from rooflight.cli.table import table
from rooflight.hardware.occupancy import Occupancy, occupancy
from rooflight.protocol import Kernel
from rooflight.regimes.limiter import Launch, limiter
from rooflight.report.html import report
from rooflight.report.summary import because
from tests.factories import a_document
from tests.recording import H100, Recording
from tests.rooflight.findings.drawn_kernels import ADD


def on_h100(blocks: int | None = 132, threads: int = 256, registers: int = 32, shared: int = 0) -> Launch:
    room = occupancy("9.0", threads, registers, shared)
    return Launch(blocks, threads, registers, shared, 132, room)


@pytest.mark.parametrize(
    ("launch", "said"),
    [
        (on_h100(40), "40 blocks on 132 SMs"),
        (on_h100(1), "1 block on 132 SMs"),
        (on_h100(132), None),
        # 168 x 32 = 5,376 a warp; 65,536 // 5,376 = 12 warps // 8 = 1 block = 8 of 64.
        (on_h100(None, registers=168), "occupancy 12.5 %, limited by registers (168 a thread)"),
        # 228 KiB // (96 + 1) = 2 blocks of 8 warps = 16 of 64.
        (
            on_h100(None, shared=96 * 1024),
            "occupancy 25 %, limited by shared memory (96.0 KiB a block)",
        ),
        # 32 blocks of a warp = 32 of 64.
        (on_h100(None, threads=32), "occupancy 50 %, limited by blocks (32 an SM)"),
        # 2,048 // 1,024 = 2 blocks of 32 warps = 64 of 64; 132 x 2 = 264 at once, 270 / 264 = 1.0227.
        (on_h100(270, threads=1024), "1.02 waves of 264 blocks, the last 2 % full"),
        (on_h100(264, threads=1024), None),
        # 3.5 waves: 924 blocks; at four and more nothing is said.
        (on_h100(924, threads=1024), "3.50 waves of 264 blocks, the last 50 % full"),
        (on_h100(1188, threads=1024), None),
        (Launch(), None),
        (Launch(blocks=0, sm_count=132, room=Occupancy(1.0, "threads", 8)), None),
        (Launch(room=Occupancy(0.5, "registers")), "occupancy 50 %, limited by registers"),
    ],
)
def test_each_limit_is_told_with_its_figure(launch: Launch, said: str | None) -> None:
    assert limiter(launch) == said


def test_several_are_told_together() -> None:
    """40 of 132 SMs have a block, of 8 of 64 warps."""
    assert limiter(on_h100(40, registers=168)) == (
        "40 blocks on 132 SMs; occupancy 12.5 %, limited by registers (168 a thread)"
    )


def a_slow_add(device: dict[str, object] = H100) -> Kernel:
    """An add of 1 Mi floats that takes 900 us: 12.6 MB in 900 us are 14 GB/s.  150 blocks of 255 registers,
    of which an SM holds one: 132 at once, 150 / 132 = 1.136."""
    shape = {"grid": [150, 1, 1], "block": [256, 1, 1], "registers per thread": 255, "shared memory": 0}
    scene = Recording(device).step(0, 0, 1000).op("aten::add", 0, [[1 << 20], [1 << 20], []])
    return scene.kernel(ADD, 1, 2, 900, **shape).rank().kernels[0]


def test_a_kernel_bound_by_latency_says_it() -> None:
    row = a_slow_add()
    assert (row.regime, row.reason) == ("latency", "low_occupancy")
    said = (
        "occupancy 12.5 %, limited by registers (255 a thread); 1.14 waves of 132 blocks, the last 14 % full"
    )
    assert row.limiter == said
    assert because(row) == f"low occupancy: {said}"


def test_of_other_regimes_nothing_is_told() -> None:
    """The same add in 8 us: 12.6 MB / 8 us = 1.57 TB/s of 3.35, under 60 %; in 5 us 2.5 TB/s are above."""
    shape = {"grid": [150, 1, 1], "block": [256, 1, 1], "registers per thread": 255, "shared memory": 0}
    scene = Recording().step(0, 0, 100).op("aten::add", 0, [[1 << 20], [1 << 20], []])
    row = scene.kernel(ADD, 1, 2, 5, **shape).rank().kernels[0]
    assert (row.regime, row.limiter) == ("memory", None)


@pytest.mark.parametrize("show", [table, markdown, report])
def test_each_surface_says_it(show: object) -> None:
    document = a_document()
    kernel = document.ranks[0].kernels[0]
    kernel.regime, kernel.reason, kernel.limiter = "latency", "underfilled", "64 blocks on 80 SMs"
    assert "underfilled: 64 blocks on 80 SMs" in show(document)  # type: ignore[operator]
