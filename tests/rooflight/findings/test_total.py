"""The total over findings: the time that those with a saving speak of, each instant once (§18)."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.recording import Recording

ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>"
ALONE = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def test_two_findings_of_the_same_time_count_it_once() -> None:
    """The device waits 300 of 1000 for input, of which two rules speak: 300 and not 600.  100 of copies that
    nothing hides, 50 of them from pageable memory, are other instants: 400 in all."""
    scene = Recording().step(0, 0, 1000).host(ALONE, 0, 300, cat="user_annotation")
    scene.gpu("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", 300, 300, 50, bytes=64)
    scene.gpu("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 300, 350, 50, bytes=64)
    rank = scene.kernel("gemm", 310, 400, 600).rank()
    savings = {f.code: f.saving_us for f in rank.findings if f.saving_us is not None}
    assert savings == {
        "input-starved": 300,
        "dataloader-workers": 300,
        "exposed-copies": 100,
        "pageable-copies": 50,
    }
    assert rank.findings_total_us == 400


def test_without_a_saving_there_is_no_total() -> None:
    assert Recording().kernel("gemm", 0, 1, 100).rank().findings_total_us is None


@st.composite
def recordings(draw: st.DrawFn) -> Recording:
    """Steps with waits, small and large kernels, copies and calls that wait, at any times."""
    scene, at = Recording(), 0.0
    for n in range(draw(st.integers(0, 6))):
        length = draw(st.integers(50, 400))
        scene.step(n, at, length)
        for _ in range(draw(st.integers(1, 6))):
            start, dur = at + draw(st.integers(0, length - 1)), draw(st.integers(0, 150))
            kind = draw(st.sampled_from(["add", "copy", "wait", "item", "memset", "nccl"]))
            if kind == "add":
                elements = draw(st.sampled_from([64, 1 << 20]))
                scene.op("aten::add", start, [[elements], [elements], []]).kernel(
                    ADD, start + 1, start + 2, dur
                )
            elif kind == "copy":
                name = "Memcpy HtoD (Pageable -> Device)"
                scene.gpu("gpu_memcpy", name, start, start + 1, dur, stream=9, bytes=64)
            elif kind == "memset":
                scene.gpu("gpu_memset", "Memset (Device)", start, start + 1, dur, stream=9, bytes=64)
            elif kind == "nccl":
                scene.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", start, start + 1, dur, stream=20)
            else:
                scene.host({"wait": ALONE, "item": "aten::item"}[kind], start, dur)
        at += length + draw(st.integers(0, 50))
    return scene.kernel("gemm", at, at + 1, draw(st.integers(1, 50)))


@settings(max_examples=40, deadline=None)
@given(recordings())
def test_the_total_lies_between_the_largest_saving_and_the_wall(scene: Recording) -> None:
    rank = scene.rank()
    savings = [f.saving_us for f in rank.findings if f.saving_us is not None]
    total = rank.findings_total_us
    if not savings:
        assert total is None
        return
    assert total is not None
    # Rounded to the nanosecond each.
    assert max(savings) <= total + 0.001
    if rank.steps:
        # Steps do not overlap here.
        assert total <= sum(s.step_time_us for s in rank.steps) / len(rank.steps) + 0.001
