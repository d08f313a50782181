"""What another recording would tell is said only where it applies."""

from __future__ import annotations

from typing import Any

from tests.recording import Recording


def told(scene: Recording) -> list[str]:
    found = scene.findings().get("recording-options")
    return [] if found is None else [e.text for e in found.evidence]


def recorded(op: str = "aten::mm", **of_kernel: Any) -> Recording:
    """One product of known size in a marked step."""
    scene = Recording().step(0, 0, 1000).op(op, 0, [[64, 64], [64, 64]])
    return scene.kernel("gemm", 1, 2, 900, **of_kernel)


def test_modules_are_missed_only_where_there_are_none() -> None:
    assert [t.partition(":")[0] for t in told(recorded())] == ["no modules"]
    frame = {"Python id": 1, "Python module id": 0}
    within = recorded().host("nn.Module: Linear_0", 0, 900, cat="python_function", **frame)
    assert told(within) == []
    assert told(recorded().host("Torch-Compiled Region: 0/0", 0, 900)) == []


def test_kernels_of_graphs_without_ops() -> None:
    """900 of 900 us are replayed; 90 of 1,000 are under a tenth."""
    scene = Recording().step(0, 0, 1000).kernel("gemm", 1, 2, 900, **{"graph node id": 5})
    assert any("--eager FILE" in t and "90 % of the time" in t for t in told(scene))
    few = recorded().kernel("small", 910, 911, 80, **{"graph node id": 5})
    assert not any("--eager" in t for t in told(few))


def test_sizes_that_are_values_take_an_execution_trace() -> None:
    scene = Recording().step(0, 0, 1000).op("aten::masked_select", 0, [[1 << 20], [1 << 20]])
    scene.kernel("void at::native::masked_select_kernel<float>", 1, 2, 900)
    assert any("an execution trace beside it" in t for t in told(scene))
    assert not any("execution trace" in t for t in told(recorded()))
