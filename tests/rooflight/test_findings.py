"""Every rule: a recording that it sees, one that it nearly sees and must not, its saving by arithmetic.

Roofs used below.  H100 SXM: memory 3.35 TB/s x 0.9 = 3.015 TB/s, bf16 989.4 TFLOP/s x 0.796.
V100 SXM2 16 GB: 900 GB/s x 0.904.  All times are us.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rooflight import analyze, read
from rooflight.findings import Found, Seen, all_rules, find
from rooflight.findings.registry import rule
from rooflight.protocol import Finding
from tests.recording import V100, Recording
from tests.shared import traces_dir

ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>"
MUL = "void at::native::vectorized_elementwise_kernel<4, at::native::MulFunctor<float>>"
FILL = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>"
ALONE = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def shown(finding: Finding) -> str:
    return finding.evidence[0].text


# --- idle: the parts of the wall are the saving -----------------------------------------------------


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


# --- kernels -----------------------------------------------------------------------------------------


def row_of_adds(n: int, elements: int, dur: float) -> Recording:
    """``n`` times c = a + b of so many floats, one kernel of ``dur`` each, without gaps from 0 on."""
    scene = Recording(V100).step(0, 0, n * dur)
    for i in range(n):
        scene.op("aten::add", i * 3, [[elements], [elements], []])
        scene.kernel(ADD, i * 3 + 1, i * dur, dur)
    return scene


def test_elementwise_chain() -> None:
    """Three adds of 1,048,576 floats: each writes 4 MiB and the next reads it.  One kernel would spare
    2 x 2 x 4 MiB: at 900 GB/s x 0.904 (measured on the model) 20.62 us, less than the 40 that two of
    three took."""
    found = row_of_adds(3, 1 << 20, 20).findings()["elementwise-chain"]
    assert found.saving_us == pytest.approx(4 * 4_194_304 / (0.904 * 900e9) * 1e6, abs=0.01)
    assert shown(found) == "aten::add → aten::add → aten::add: up to 0.0206 ms per step"


def test_a_chain_saves_no_more_than_all_its_kernels_but_the_longest() -> None:
    """Two adds of 10 us each: 2 x 4,194,304 B would be 10.36 us, and 10 is all that can go."""
    assert row_of_adds(2, 1 << 20, 10).findings()["elementwise-chain"].saving_us == 10


def test_kernels_that_do_not_feed_each_other_are_no_chain() -> None:
    """The second reads 2 x 4 KiB, less than the 4 MiB that the first wrote."""
    scene = Recording(V100).step(0, 0, 40)
    for i, elements in enumerate((1 << 20, 1 << 10)):
        scene.op("aten::add", i * 3, [[elements], [elements], []]).kernel(ADD, i * 3 + 1, i * 20, 20)
    assert "elementwise-chain" not in scene.findings()


def test_tiny_kernels() -> None:
    """100 adds of 1,024 floats, 4 us each: 12,288 B take 0.0151 us of 813.6 GB/s, the rest is overhead."""
    found = row_of_adds(100, 1 << 10, 4).findings()["tiny-kernels"]
    assert found.saving_us == pytest.approx(100 * (4 - 12_288 / 813.6e9 * 1e6), abs=0.01)
    assert shown(found) == "100 per step under 5 us, together 0.4 ms per step, 100 % of the time"


def test_kernels_of_five_microseconds_are_not_tiny() -> None:
    assert "tiny-kernels" not in row_of_adds(100, 1 << 10, 5).findings()


def test_short_kernels_at_their_roof_are_not_tiny() -> None:
    """262,144 floats: 3,145,728 B are 3.87 us of 813.6 GB/s, 97 % of the 4 that it takes."""
    assert "tiny-kernels" not in row_of_adds(100, 1 << 18, 4).findings()


def product(kernel: str, dur: float, dtype: str = "float", device: dict[str, Any] | None = None) -> Recording:
    """[4096, 4096] x [4096, 4096] and nothing else: 137,438,953,472 FLOPs."""
    scene = Recording(device) if device else Recording()
    square = [4096, 4096]
    return scene.step(0, 0, dur + 2).op("aten::mm", 0, [square, square], dtype).kernel(kernel, 1, 2, dur)


def test_fp32_matrix() -> None:
    """3000 us on an H100.  fp32: 66.9 TFLOP/s x 0.9 = 60.21 give 2282.66 us; tf32 at its practical roof is
    t32; the saving is 3000 x (1 - t_tf32 / 2282.66)."""
    scene = product("ampere_sgemm_128x128_nn", 3000)
    roofs = scene.rank().roofs["0"].compute
    fp32_us = 137_438_953_472 / (roofs.get("fp32") or scene.rank().roofs["0"].vector["fp32"]).practical * 1e6  # type: ignore[operator]
    tf32_us = 137_438_953_472 / roofs["tf32"].practical * 1e6  # type: ignore[operator]
    assert 0 < tf32_us < fp32_us / 4
    found = scene.findings()["fp32-matrix"]
    assert found.saving_us == pytest.approx(3000 * (1 - tf32_us / fp32_us), abs=0.001)


@pytest.mark.parametrize(
    ("kernel", "dtype", "device"),
    [
        ("sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize64x64x32", "float", None),  # TF32 already
        ("gemm", "float", None),  # its name does not tell
        ("ampere_sgemm_128x128_nn", "float", V100),  # no TF32 units
        ("ampere_bf16_s16816gemm_bf16_128x128", "c10::BFloat16", None),
    ],
)
def test_no_fp32_matrix(kernel: str, dtype: str, device: dict[str, Any] | None) -> None:
    assert "fp32-matrix" not in product(kernel, 3000, dtype, device).findings()


def test_gemm_under_roof() -> None:
    """bf16: 137,438,953,472 FLOPs over 989.4 x 0.796 TFLOP/s are the bound; it took 1000 us."""
    scene = product("ampere_bf16_s16816gemm_bf16_128x128", 1000, "c10::BFloat16")
    bound_us = 137_438_953_472 / scene.rank().roofs["0"].compute["bf16"].practical * 1e6  # type: ignore[operator]
    assert 170 < bound_us < 180
    found = scene.findings()["gemm-under-roof"]
    assert found.saving_us == pytest.approx(1000 - bound_us, abs=0.001)
    assert shown(found) == f"aten::mm [[4096, 4096], [4096, 4096]]: {bound_us / 10:.0f} % of its roof"


@pytest.mark.parametrize("dur", [280.0, 19.0])
def test_no_gemm_under_roof(dur: float) -> None:
    """280: over 60 % of the roof.  19: too short for its kernel to be the matter (and impossible)."""
    scene = product("ampere_bf16_s16816gemm_bf16_128x128", dur, "c10::BFloat16")
    assert "gemm-under-roof" not in scene.findings()


def test_memory_bound_has_no_figure() -> None:
    """16,777,216 floats: 201,326,592 B take 247.5 us at 813.6 GB/s: 99 % of the 250 that it takes."""
    found = row_of_adds(1, 1 << 24, 250).findings()["memory-bound"]
    assert found.saving_us is None
    assert shown(found) == "0.25 ms per step, 100 %"


def test_little_time_at_the_memory_roof_is_not_told() -> None:
    """250 of 2500 us: 10 %, half of what is worth a word."""
    scene = Recording(V100).step(0, 0, 2500).op("aten::add", 0, [[1 << 24], [1 << 24], []])
    assert "memory-bound" not in scene.kernel(ADD, 1, 2, 250).findings()


def test_layout_conversions() -> None:
    scene = Recording().step(0, 0, 1000).kernel("gemm", 0, 0, 900)
    name = "void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true, (cudnnKernelDataType_t)2>"
    scene.kernel(name, 10, 900, 100)
    assert scene.findings()["layout-conversions"].saving_us == 100
    # 9 us of 1009 are under one in a hundred.
    scene = Recording().step(0, 0, 1000).kernel("gemm", 0, 0, 991).kernel(name, 10, 991, 9)
    assert "layout-conversions" not in scene.findings()


def test_needless_fills() -> None:
    """A fill of 60 us and a memset of 40 that runs alone; 20 more of it lie under a kernel."""
    scene = Recording().step(0, 0, 1000).op("aten::fill_", 0, [[1 << 20], []]).kernel(FILL, 1, 2, 60)
    scene.gpu("gpu_memset", "Memset (Device)", 5, 62, 60, call="cudaMemsetAsync", bytes=64, stream=9)
    scene.kernel("gemm", 6, 102, 898)
    assert scene.findings()["needless-fills"].saving_us == 60 + 40


def test_casts() -> None:
    """copy_(bf16 target, fp32 source) is a cast, copy_(fp32, fp32) is none."""
    name = "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(float)>"
    scene = Recording().step(0, 0, 1000).op("aten::copy_", 0, [[1 << 20], [1 << 20], []])
    scene.host("aten::copy_", 100, 3, **{"Input Dims": [[9], [9]], "Input type": ["c10::BFloat16", "float"]})
    scene.kernel(name, 1, 4, 90).kernel(name, 101, 104, 70).kernel("gemm", 150, 180, 800)
    assert scene.findings()["casts"].saving_us == 70


def test_low_occupancy() -> None:
    """255 registers and 256 threads: 65,536 // (255 -> 256 registers x 256) = 1 block of 8 warps, 8 of 64."""
    shape = {"grid": [4096, 1, 1], "block": [256, 1, 1], "registers per thread": 255, "shared memory": 0}
    scene = Recording().step(0, 0, 1000).op("aten::add", 0, [[1 << 20], [1 << 20], []])
    scene.kernel(ADD, 1, 2, 900, **shape)
    bound_us = 3 * 4 * (1 << 20) / scene.rank().roofs["0"].memory.practical * 1e6  # type: ignore[union-attr, operator]
    assert scene.findings()["low-occupancy"].saving_us == pytest.approx(900 - bound_us, abs=0.001)
    # 64 registers let 4 blocks of 8 warps stay: 32 of 64.
    scene = Recording().step(0, 0, 1000).op("aten::add", 0, [[1 << 20], [1 << 20], []])
    scene.kernel(ADD, 1, 2, 900, **shape | {"registers per thread": 64})
    assert "low-occupancy" not in scene.findings()


# --- steps and the recording itself -----------------------------------------------------------------


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


# --- what holds for all ------------------------------------------------------------------------------


def test_findings_come_with_the_largest_saving_first() -> None:
    """Input 300 of each step, and what else there is; those without a figure stand last."""
    savings = [f.saving_us for f in fed(300).rank().findings]
    known = [s for s in savings if s is not None]
    assert known == sorted(known, reverse=True)
    assert savings == known + [None] * (len(savings) - len(known))


def test_a_code_is_given_once_and_says_what_it_sees() -> None:
    def silent(facts: Any) -> list[Found]:
        raise NotImplementedError(facts)

    sign_in = {"why": "", "fix": "", "false_alarms": ""}
    with pytest.raises(ValueError, match="two rules have the code 'input-starved'"):
        rule("input-starved", "again", **sign_in)(silent)
    with pytest.raises(ValueError, match="does not say what it sees"):
        rule("silent", "silent", **sign_in)(silent)
    assert "silent" not in {r.code for r in all_rules()}


@pytest.mark.parametrize("entry", all_rules(), ids=lambda r: r.code)
def test_a_rule_says_why_how_and_when_not(entry: Any) -> None:
    assert all((entry.title, entry.sees, entry.why, entry.fix, entry.false_alarms))


class _Recorded:
    """Facts of a wall of 1000 ns."""

    wall_ns = 1000


def test_a_saving_is_at_most_the_time_and_at_least_one_in_a_hundred(monkeypatch: pytest.MonkeyPatch) -> None:
    def check(_: Any) -> list[Found]:
        return [Found((Seen("more than it took"),), 100, 500.0, ""), Found((Seen("little"),), 9, 9.9, "")]

    from rooflight.findings import registry

    monkeypatch.setattr(registry, "_RULES", {})
    check.__doc__ = "Nothing."
    rule("one", "one", why="", fix="", false_alarms="")(check)
    assert [f.saving_ns for _, f in find(_Recorded())] == [100.0]  # type: ignore[arg-type]
    assert find(_Recorded(), withheld=True) == []  # type: ignore[arg-type]


# --- shared traces -----------------------------------------------------------------------------------


def of_trace(trace: str) -> Any:
    return analyze(read(Path(traces_dir()) / trace)).document.ranks[0]


@pytest.mark.traces
def test_a_resnet_without_workers_is_starved_and_one_with_four_is_not() -> None:
    """Saving: the sum of the input parts of its steps, over their number."""
    rank = of_trace("v100_resnet50_workers0.pt.trace.json.gz")
    parts = [s.parts_us.input for s in rank.steps]
    assert rank.findings[0].code == "input-starved"
    assert rank.findings[0].saving_us == pytest.approx(sum(parts) / len(parts), abs=0.001)
    fed_well = of_trace("v100_resnet50_workers4.pt.trace.json.gz")
    assert not {"input-starved", "dataloader-workers"} & {f.code for f in fed_well.findings}


@pytest.mark.traces
@pytest.mark.parametrize(
    ("trace", "codes"),
    [
        (
            "hta/a100_control_rank3of8.json.gz",
            {"exposed-communication", "elementwise-chain", "low-occupancy"},
        ),
        ("mi300_resnet_act_checkpoint_rank0of8.json.gz", {"exposed-communication", "layout-conversions"}),
        (
            "pairs/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz",
            {"elementwise-chain", "casts", "memory-bound"},
        ),
        ("v100_resnet50_workers0.pt.trace.json.gz", {"pageable-copies", "gemm-under-roof"}),
        ("v100_resnet50_workers4.pt.trace.json.gz", {"synchronising-calls", "uneven-steps"}),
        ("pairs/h100/gaunernst_bert-small-uncased__1016001.json.gz", {"host-bound-dispatch", "tiny-kernels"}),
    ],
)
def test_rules_that_a_real_trace_shows(trace: str, codes: set[str]) -> None:
    rank = of_trace(trace)
    assert codes <= {f.code for f in rank.findings}
    wall = rank.steps_total_us / len(rank.steps) if rank.steps else None
    for f in rank.findings:
        assert f.saving_us is None or (f.saving_us > 0 and (wall is None or f.saving_us <= wall))
