"""What another recording would tell is said only where it applies."""

from __future__ import annotations

from typing import Any

from rooflight import analyze
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


# --- launches without their kernels ---------------------------------------------------------------------


def lost(n: int, of: int, **also: Any) -> list[str]:
    """Launches in a step of 1000, of which the first ``n`` have no kernel."""
    scene = Recording().step(0, 0, 1000)
    for i in range(of):
        if i < n:
            scene.host("cudaLaunchKernel", 10 * i, 1, cat="cuda_runtime", correlation=900 + i)
        else:
            scene.kernel("gemm", 10 * i, 10 * i + 1, 5)
    if also:
        scene.host(also["call"], 990, 1, cat="cuda_runtime", correlation=999)
    return [t for t in told(scene) if "without their kernel" in t]


def test_launches_whose_kernels_were_not_recorded() -> None:
    assert [t.partition(",")[0] for t in lost(1, 10)] == ["1 of 10 launches without their kernel"]
    assert lost(1, 11) == lost(0, 5) == []


def test_what_is_captured_does_not_run_then() -> None:
    """Nor is any other call one that launches a kernel."""
    assert lost(5, 10, call="cudaStreamBeginCapture") == []
    assert lost(1, 10, call="cudaEventRecord") == lost(1, 10)


def test_a_launch_after_the_last_step_is_not_counted() -> None:
    scene = recorded().host("hipLaunchKernel", 2000, 1, cat="hip_runtime", correlation=77)
    assert not any("without their kernel" in t for t in told(scene))
    within = recorded().host("hipLaunchKernel", 500, 1, cat="hip_runtime", correlation=77)
    assert any(t.startswith("1 of 2 launches") for t in told(within))


# --- the ranks of a run ------------------------------------------------------------------------------------


def of_ranks(*scenes: Recording) -> list[list[str]]:
    """What is said of each rank about what the others recorded."""
    timelines = [
        s.timeline(distributedInfo={"rank": r, "world_size": len(scenes)}) for r, s in enumerate(scenes)
    ]
    found = [{f.code: f for f in r.findings} for r in analyze(timelines).document.ranks]
    return [
        [e.text for e in f["unlike-recordings"].evidence] if "unlike-recordings" in f else [] for f in found
    ]


def test_every_rank_is_told_what_some_did_not_record() -> None:
    bare = Recording().step(0, 0, 1000).host("aten::mm", 0, 3).kernel("gemm", 1, 2, 900)
    text = "ranks 1, 2 of 3 without input shapes (record_shapes=True)"
    assert of_ranks(recorded(), bare, bare) == [[text]] * 3
    assert of_ranks(recorded(), recorded()) == of_ranks(bare, bare) == [[], []]


def test_also_a_rank_whose_verdicts_are_withheld_is_told() -> None:
    """The second rank's kernel has no launch, so that nothing is said of its time; and no steps."""
    unlinked = recorded("aten::mm", correlation=55)
    steps = Recording().op("aten::mm", 0, [[64, 64], [64, 64]]).kernel("gemm", 1, 2, 900, correlation=55)
    assert of_ranks(unlinked, steps) == [["rank 1 of 2 without marked steps (prof.step())"]] * 2


def test_a_rank_without_gpu_work_is_told() -> None:
    host = Recording().step(0, 0, 1000).op("aten::mm", 0, [[64, 64], [64, 64]])
    assert of_ranks(recorded(), host)[0] == ["rank 1 of 2 without GPU work"]
