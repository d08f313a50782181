"""The geometry of a launch, as the profiler writes it and as it must not be written."""

from __future__ import annotations

import pytest

from rooflight.trace.timeline import LaunchShape
from tests.recording import Recording


def _told(grid: object, block: object, registers: object, shared: object) -> LaunchShape | None:
    args = {"grid": grid, "block": block, "registers per thread": registers, "shared memory": shared}
    return Recording().kernel("k", 0, 5, 10, **args).timeline().shape(0)


@pytest.mark.parametrize(
    ("grid", "known"),
    [
        ([8, 1, 1], (8, 1, 1)),
        ([], ()),
        (None, None),
        ([8.0, 1, 1], None),
        ([True, 1, 1], None),
        ([-8, 1, 1], None),
        ([8, 1, 1, 1], None),
        ("8", None),
    ],
)
def test_a_grid_is_up_to_three_whole_numbers(grid: object, known: object) -> None:
    assert _told(grid, [256, 1, 1], 32, 4096) == LaunchShape(known, (256, 1, 1), 32, 4096)  # type: ignore[arg-type]


@pytest.mark.parametrize(("registers", "known"), [(32, 32), (-1, None), (32.0, None), ("32", None), (0, 0)])
def test_registers_are_a_count(registers: object, known: int | None) -> None:
    assert _told([8, 1, 1], [256, 1, 1], registers, 4096) == LaunchShape((8, 1, 1), (256, 1, 1), known, 4096)
