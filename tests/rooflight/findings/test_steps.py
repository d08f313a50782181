"""Steps that differ, and what the recording lacks."""

from __future__ import annotations

import pytest

from tests.recording import Recording


def stepped(*lengths: float) -> Recording:
    scene, at = Recording(), 0.0
    for n, length in enumerate(lengths):
        scene.step(n, at, length).kernel("gemm", at, at + 1, length - 1)
        at += length
    return scene


def test_uneven_steps() -> None:
    """100, 100, 100, 100, 200: the median is 100, p99 = 100 + 0.96 x 100 = 196; 100 above it over 5 steps."""
    found = stepped(100, 100, 100, 100, 200).findings()["uneven-steps"]
    assert found.saving_us == 20
    assert found.evidence[0].steps[0] == 4


@pytest.mark.parametrize("lengths", [(100, 100, 100, 200), (100, 100, 100, 100, 125)])
def test_even_or_few_steps(lengths: tuple[float, ...]) -> None:
    """Four are too few; p99 of the others is 100 + 0.96 x 25 = 124, under 1.25 x the median."""
    assert "uneven-steps" not in stepped(*lengths).findings()


def test_recording_options() -> None:
    found = Recording().kernel("gemm", 0, 1, 100).findings()["recording-options"]
    assert [e.text.partition(":")[0] for e in found.evidence] == ["no marked steps", "no input shapes"]
    assert found.saving_us is None
    complete = Recording().step(0, 0, 102).host("Torch-Compiled Region: 0/0", 0, 100)
    complete = complete.op("aten::mm", 0, [[64, 64], [64, 64]]).kernel("gemm", 1, 2, 100)
    assert "recording-options" not in complete.findings()
