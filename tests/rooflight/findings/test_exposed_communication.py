"""What could hide exposed communication, and whether its blocks find room beside those that compute."""

from __future__ import annotations

from typing import Any

import pytest

from rooflight import analyze, read
from rooflight.hardware.limits import Limits
from rooflight.hardware.occupancy import Beside, Block, beside
from rooflight.protocol import Finding
from tests.recording import Recording
from tests.shared import traces_dir

REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"
FLOATS = {"Collective name": "allreduce", "dtype": "Float", "Group size": 8}


def scene(kernel: float, reduce: tuple[float, float], *, wall: float = 1000, **more: Any) -> Recording:
    """A kernel from 0 on and an all_reduce from then till then, in a step of so many µs."""
    begin, end = reduce
    found = Recording().step(0, 0, wall).kernel("gemm", 0, 0, kernel)
    return found.kernel(REDUCE, begin, begin, end - begin, stream=20, **more)


def exposed(recording: Recording) -> Finding | None:
    return recording.findings().get("exposed-communication")


def texts(recording: Recording) -> list[str]:
    found = exposed(recording)
    assert found
    return [e.text for e in found.evidence]


def test_no_more_is_hidden_than_kernels_run_without_communication() -> None:
    """The kernel runs in [0, 300), the all_reduce in [200, 1000): 700 are exposed, and 200 of kernel time are
    left to hide them."""
    found = exposed(scene(300, (200, 1000)))
    assert found is not None
    assert found.saving_us == 200
    assert [e.text for e in found.evidence] == [
        "0.7 ms per step, 70 %, only communication runs",
        (
            "kernels without communication beside them: 0.2 ms per step, of which 0 ms per step after "
            "communication was first exposed"
        ),
    ]


def test_what_is_hidden_is_reckoned_step_by_step() -> None:
    """Step 0 has 900 of kernels and 50 exposed, step 1 100 and 800: 50 + 100, a mean of 75."""
    found = Recording().step(0, 0, 1000).step(1, 2000, 1000)
    for at, kernel in ((0, 900), (2000, 100)):
        found.kernel("gemm", at, at, kernel)
    for at, dur in ((900, 50), (2100, 800)):
        found.kernel(REDUCE, at, at, dur, stream=20)
    finding = exposed(found)
    assert finding is not None
    assert finding.saving_us == 75


def test_kernels_after_it_are_told_apart() -> None:
    """[100, 200) of 100 is exposed; kernels run 100 before and 300 after."""
    found = scene(100, (100, 200)).kernel("gemm", 210, 210, 300)
    assert "0.4 ms per step, of which 0.3 ms per step after" in texts(found)[1]


def test_where_no_kernel_is_left_no_saving_is_told() -> None:
    """The kernel runs all the while beside the all_reduce, whose last 500 are exposed."""
    found = exposed(scene(500, (0, 1000)))
    assert found is not None
    assert found.saving_us is None
    assert found.assumption == "no kernel is left to run beside it: only sending less helps"


@pytest.mark.parametrize("end", [505, 509])
def test_under_a_hundredth_of_the_step_is_no_finding(end: float) -> None:
    assert exposed(scene(500, (0, end))) is None
    assert exposed(scene(500, (500, end))) is None


@pytest.mark.parametrize(
    ("elements", "text"),
    [
        (1 << 18, "the median message of 1 per step has 1,048,576 bytes: enough for a link"),
        ((1 << 18) - 1, "the median message of 1 per step has 1,048,572 bytes: less than fills a link"),
    ],
)
def test_the_median_message(elements: int, text: str) -> None:
    message = {**FLOATS, "In msg nelems": elements, "Out msg nelems": elements}
    assert texts(scene(300, (200, 1000), **message))[2] == text


def shape(blocks: int, threads: int, registers: int, shared: int = 0) -> dict[str, Any]:
    return {
        "grid": [blocks, 1, 1],
        "block": [threads, 1, 1],
        "registers per thread": registers,
        "shared memory": shared,
    }


def resident(gemm: dict[str, Any], reduce: dict[str, Any]) -> str:
    found = Recording().step(0, 0, 1000).kernel("gemm", 0, 0, 300, **gemm)
    return texts(found.kernel(REDUCE, 200, 200, 800, stream=20, **reduce))[-1]


def test_a_block_that_finds_no_room() -> None:
    """168 registers x 32 are 5,376 a warp, of four warps 21,504: three such blocks leave 1,024 of 65,536 to
    16 warps of 96 x 32.  396 blocks are three for each of 132 SMs."""
    assert resident(shape(396, 128, 168), shape(24, 512, 96)) == (
        "its blocks are on 24 of 132 SMs at most, which leaves 108; one of them finds no room (registers) on "
        "an SM with 3 blocks of gemm"
    )


def test_a_block_that_finds_room() -> None:
    """101 KiB of shared memory each: two fit into 228, and leave all else."""
    assert resident(shape(264, 128, 32, 100 << 10), shape(200, 512, 96)) == (
        "its blocks are on 132 of 132 SMs at most, which leaves 0; one of them finds room on an SM with 2 "
        "blocks of gemm"
    )


def test_a_kernel_that_leaves_sms_free_says_nothing_of_room() -> None:
    text = "its blocks are on 24 of 132 SMs at most, which leaves 108"
    assert resident(shape(395, 128, 168), shape(24, 512, 96)) == text


@pytest.mark.parametrize(
    ("many", "one", "expected"),
    [
        # 8 warps: eight blocks are all 64.
        (Block(256, 32, 0), Block(32, 16, 0), Beside(8, "threads")),
        # One warp: 32 blocks are all that an SM takes.
        (Block(32, 16, 0), Block(32, 16, 0), Beside(32, "blocks")),
        # 114 KiB with the system's: two are all 228.
        (Block(32, 16, 113 << 10), Block(32, 16, 1024), Beside(2, "shared memory")),
        (Block(32, 16, 113 << 10), Block(32, 16, 0), Beside(2, "")),
        # No SM holds a block with 228 KiB and the system's, nor one of 1,024 threads with 255 registers.
        (Block(32, 16, 228 << 10), Block(32, 16, 0), None),
        (Block(32, 16, 0), Block(1024, 255, 0), None),
    ],
)
def test_beside(many: Block, one: Block, expected: Beside | None) -> None:
    assert beside("9.0", many, one) == expected


def test_beside_of_unknown_limits() -> None:
    block = Block(32, 16, 0)
    assert beside("1.0", block, block) is None
    assert beside("gfx942", block, block) is None
    assert beside("9.0", block, block, Limits(2048, 32, None, 1 << 16)) is None


@pytest.mark.traces
def test_a_rank_of_dlrm_by_hand() -> None:
    """Rank 0 has one step: its kernels and all-reduces as plain intervals, microsecond by microsecond."""
    import json

    [file] = (traces_dir() / "dlrm_8ranks").glob("worker0_*")
    events = json.loads(file.read_text())["traceEvents"]
    [step] = [
        e for e in events if e.get("cat") == "user_annotation" and e["name"].startswith("ProfilerStep#")
    ]
    kernels, nccl = set[int](), set[int]()
    for e in events:
        if e.get("cat") == "kernel":
            span = range(max(e["ts"], step["ts"]), min(e["ts"] + e["dur"], step["ts"] + step["dur"]))
            (nccl if "nccl" in e["name"] else kernels).update(span)
    [rank] = analyze(read(file)).document.ranks
    [found] = [f for f in rank.findings if f.code == "exposed-communication"]
    assert found.saving_us == min(len(nccl - kernels), len(kernels - nccl))
    assert rank.steps[0].parts_us is not None
    assert rank.steps[0].parts_us.communication == len(nccl - kernels)
