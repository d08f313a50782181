"""Waiting for input, launches, results and copies: the idle parts are the saving.  All times are us."""

from __future__ import annotations

from rooflight.protocol import Finding
from tests.recording import Recording

ALONE = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def shown(finding: Finding) -> str:
    return finding.evidence[0].text


def fed(wait: float) -> Recording:
    """Two steps of 1000: the loader works for ``wait``, then a kernel of 500 runs."""
    scene = Recording()
    for n in (0, 1):
        at = 1000.0 * n
        scene.step(n, at, 1000)
        scene.host(
            "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at, wait, cat="user_annotation"
        )
        scene.kernel("gemm", at + 499, at + 500, 500)
    return scene


def test_input_starved() -> None:
    """The device is idle in [0, 500) of each step, and 300 of that lie in the loader: 30 % of 1000."""
    found = fed(300).findings()
    assert found["input-starved"].saving_us == 300
    assert shown(found["input-starved"]) == "0.3 ms per step, 30 %, wait for input"
    assert found["input-starved"].evidence[0].steps == [0, 1]
    # The loader works in the training process itself.
    assert found["dataloader-workers"].saving_us == 300


def test_a_loader_that_works_beside_the_device_starves_nobody() -> None:
    """It works while the kernel runs, and for 9 of 1000 us while it does not: under 1 %."""
    scene = Recording().step(0, 0, 1000).kernel("gemm", 8, 9, 991)
    scene.host(ALONE, 0, 500, cat="user_annotation")
    assert not {"input-starved", "dataloader-workers"} & scene.findings().keys()


def test_workers_are_not_missed_where_there_are_some() -> None:
    scene = Recording().step(0, 0, 1000).kernel("gemm", 499, 500, 500)
    scene.host("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 0, 300, cat="user_annotation")
    found = scene.findings()
    assert found["input-starved"].saving_us == 300
    assert "dataloader-workers" not in found


def test_host_bound_dispatch() -> None:
    """The op is open in [100, 398) before its launch at 398; the kernel starts at 400: 298 of dispatch and 2
    of launch (the call's 1 us and 1 more)."""
    scene = Recording().step(0, 0, 1000).kernel("first", 0, 0, 100)
    scene.host("aten::slow", 100, 310).kernel("second", 398, 400, 600)
    finding = scene.findings()["host-bound-dispatch"]
    assert finding.saving_us == 300
    assert shown(finding) == (
        "30 % of the time the device waits for launches: 0.298 ms per step for ops to be dispatched, "
        "0.002 ms per step for launches to arrive"
    )


def held(wait: float, dispatch: float = 0) -> Recording:
    """After 100 of work the host is in an op for so long, then launches what starts so much later; the step
    has 10,000."""
    scene = Recording().step(0, 0, 10_000).kernel("first", 0, 0, 100)
    launch = 100 + dispatch
    if dispatch:
        scene.host("aten::slow", 100, dispatch)
    return scene.kernel("second", launch, launch + wait, 9_900 - dispatch - wait)


def test_a_launch_that_something_holds_is_not_the_pace_of_the_host() -> None:
    """Of 3,000 between launch and start no graph saves any; the 1,000 of the op it may."""
    finding = held(3_000, 1_000).findings()["host-bound-dispatch"]
    assert finding.saving_us == 1_000
    assert shown(finding).startswith("10 % of the time")
    assert finding.evidence[1].text.startswith("not counted: 3 ms per step, 30 %, in waits of over 1 ms")
    only = held(3_000).findings()["host-bound-dispatch"]
    assert (only.saving_us, len(only.evidence)) == (None, 1)
    assert shown(only).startswith("not counted: 3 ms per step")


def test_up_to_a_millisecond_a_launch_is_under_way() -> None:
    assert held(1_000).findings()["host-bound-dispatch"].saving_us == 1_000
    assert held(1_001).findings()["host-bound-dispatch"].saving_us is None
    # Under a hundredth of the step neither is told.
    assert "host-bound-dispatch" not in held(99).findings()


def test_a_host_that_is_ahead_is_not_waited_for() -> None:
    scene = Recording().step(0, 0, 1000).host("aten::slow", 0, 310)
    scene.kernel("first", 1, 4, 500).kernel("second", 300, 504, 496)
    assert "host-bound-dispatch" not in scene.findings()


def test_synchronising_calls() -> None:
    """The device is idle in [100, 300) while the host is inside .item(); both calls are counted."""
    scene = Recording().step(0, 0, 1000).kernel("loss", 0, 0, 100)
    scene.host("aten::item", 50, 250).host("cudaStreamSynchronize", 60, 230, cat="cuda_runtime")
    scene.kernel("next", 300, 301, 699)
    finding = scene.findings()["synchronising-calls"]
    assert finding.saving_us == 200
    assert shown(finding) == (
        "0.2 ms per step, 20 %; aten::item: 1 per step, cudaStreamSynchronize: 1 per step"
    )


def test_a_wait_under_a_kernel_costs_nothing() -> None:
    scene = Recording().step(0, 0, 1000).kernel("long", 0, 0, 1000).host("aten::item", 50, 250)
    assert "synchronising-calls" not in scene.findings()


def copied(name: str) -> Recording:
    """A copy in [0, 200), of which a kernel hides the last 50; then the kernel alone until 1000."""
    scene = Recording().step(0, 0, 1000)
    scene.gpu("gpu_memcpy", name, 0, 0, 200, call="cudaMemcpyAsync", bytes=1 << 20, stream=9)
    return scene.kernel("gemm", 100, 150, 850)


def test_copies_that_no_kernel_hides() -> None:
    found = copied("Memcpy HtoD (Pinned -> Device)").findings()
    assert found["exposed-copies"].saving_us == 150
    assert "pageable-copies" not in found


def test_pageable_copies() -> None:
    found = copied("Memcpy HtoD (Pageable -> Device)").findings()
    assert found["pageable-copies"].saving_us == 150


def test_a_copy_under_a_kernel_is_hidden() -> None:
    scene = Recording().step(0, 0, 1000).kernel("gemm", 0, 0, 1000)
    scene.gpu("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", 1, 2, 200, bytes=1 << 20, stream=9)
    assert not {"exposed-copies", "pageable-copies"} & scene.findings().keys()


def test_exposed_communication() -> None:
    """The all_reduce runs in [600, 1000) and the kernel until 700: 300 are exposed."""
    scene = Recording().step(0, 0, 1000).kernel("gemm", 0, 0, 700)
    scene.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 10, 600, 400, stream=20)
    finding = scene.findings()["exposed-communication"]
    assert finding.saving_us == 300
    kernels = scene.rank().kernels
    assert [kernels[i].family for i in finding.evidence[0].kernels] == ["collective"]


def test_hidden_communication_is_no_finding() -> None:
    scene = Recording().step(0, 0, 1000).kernel("gemm", 0, 0, 1000)
    scene.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 10, 600, 400, stream=20)
    assert "exposed-communication" not in scene.findings()
