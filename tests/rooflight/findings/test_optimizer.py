"""Optimizers of many kernels.  H100 SXM: memory 3.015 TB/s.  All times are us."""

from __future__ import annotations

import pytest

from rooflight.protocol import Finding
from tests.recording import Recording
from tests.rooflight.findings.scenes import memory_us

ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>"


def shown(finding: Finding) -> str:
    return finding.evidence[0].text


PARAMETERS = 1 << 20


def updated(
    n: int, *, name: str = "Optimizer.step#Adam.step", last: str = "aten::addcdiv_", shapes: bool = True
) -> Recording:
    """``n`` kernels of 12 us over 1,048,576 floats each, the last of them by another op."""
    scene = Recording().step(0, 0, 1000).host(name, 0, 500, cat="user_annotation")
    whole = [PARAMETERS]
    for i in range(n):
        op, dims = ("aten::mul_", [whole, []]) if i < n - 1 else (last, [whole, whole, whole, []])
        scene.op(op, 10 * i, dims if shapes else []).kernel(ADD, 10 * i + 1, 12 * i + 2, 12)
    return scene.kernel("other", 501, 502, 498)


def test_unfused_adam() -> None:
    """20 kernels, 240 us.  addcdiv_ writes 4 MiB: the parameters.  The fused kernel moves 7 x 4 MiB: 9.74."""
    found = updated(20).findings()["unfused-optimizer"]
    assert found.saving_us == pytest.approx(240 - memory_us(7 * 4 * PARAMETERS), abs=0.01)
    assert "7 x 4,194,304 bytes" in found.assumption
    assert shown(found) == "20 kernels per call of the optimizer, 0.24 ms per step, 24 %"


def test_other_optimizers_save_what_is_above_the_bytes_of_their_kernels() -> None:
    """19 mul_ read and write 4 MiB: 2.78 us.  addcdiv_ reads three times 4 MiB and writes 4: 5.56 us."""
    found = updated(20, name="Optimizer.step#RMSprop.step").findings()["unfused-optimizer"]
    bytes_us = 19 * memory_us(2 * 4 * PARAMETERS) + memory_us(4 * 4 * PARAMETERS)
    assert found.saving_us == pytest.approx(240 - bytes_us, abs=0.01)


def test_without_sizes_the_kernels_are_counted() -> None:
    found = updated(20, shapes=False).findings()["unfused-optimizer"]
    assert found.saving_us is None
    assert shown(found) == "20 kernels per call of the optimizer, 0.24 ms per step, 24 %"


@pytest.mark.parametrize(
    "scene",
    [updated(19), updated(20, last="aten::_fused_adam_"), updated(20, name="Loss.step#Adam.step")],
    ids=["few", "fused", "no optimizer"],
)
def test_no_unfused_optimizer(scene: Recording) -> None:
    assert "unfused-optimizer" not in scene.findings()
