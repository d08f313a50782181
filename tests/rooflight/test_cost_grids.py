"""Bytes of elementwise kernels from name and grid (rooflight/cost/grids.py)."""

from __future__ import annotations

from pathlib import Path

import pytest

from rooflight import analyze, read
from rooflight.attribution.launches import link
from rooflight.cost.grids import from_grid
from rooflight.cost.launches import attach
from rooflight.kernels import classify
from rooflight.trace.tables import distinct
from rooflight.trace.timeline import LaunchShape
from tests.drawing import timeline_from_events
from tests.shared import traces_dir

PREFIX = "void at::native::vectorized_elementwise_kernel<4, at::native::"
UNROLLED = "void at::native::unrolled_elementwise_kernel<at::native::"
ADD = (
    f"{PREFIX}CUDAFunctor_add<float>, at::detail::Array<char*, 3> >(int, at::native::CUDAFunctor_add<float>)"
)
SHAPE = LaunchShape((1024, 1, 1), (128, 1, 1), None, None)
#: 1,024 blocks of 128 threads with 4 elements each.
ELEMENTS = 1024 * 128 * 4


@pytest.mark.parametrize(
    ("name", "read_bytes", "written"),
    [
        (ADD, 2 * 4 * ELEMENTS, 4 * ELEMENTS),
        (ADD.replace("<float>", "<c10::Half>"), 2 * 2 * ELEMENTS, 2 * ELEMENTS),
        (f"{PREFIX}FillFunctor<long>, at::detail::Array<char*, 1> >(int)", 0, 8 * ELEMENTS),
        (
            (
                f"{UNROLLED}MulScalarFunctor<float, float>, at::detail::Array<char*, 2>, "
                "TrivialOffsetCalculator<1, unsigned int>, at::native::memory::LoadWithoutCast, "
                "at::native::memory::StoreWithoutCast>(int)"
            ),
            4 * ELEMENTS,
            4 * ELEMENTS,
        ),
    ],
)
def test_name_and_grid_tell_what_is_moved(name: str, read_bytes: int, written: int) -> None:
    cost = from_grid(classify(name), SHAPE)
    assert cost is not None
    assert (cost.bytes_read, cost.bytes_written) == (read_bytes, written)
    assert (cost.flops, cost.origin, cost.reason) == (None, "inferred", "from name and grid")


@pytest.mark.parametrize(
    "name",
    [
        # Later releases give a thread more elements, and do not say how many.
        ADD.replace("at::detail::Array", "std::array"),
        # A broadcast operand has fewer elements than the grid.
        ADD.replace("vectorized_elementwise_kernel<4, ", "elementwise_kernel<128, 2, "),
        # What is read and what is written differ in type.
        (
            f"{UNROLLED}direct_copy_kernel_cuda(at::TensorIteratorBase&)::{{lambda(float)#1}}, "
            "at::detail::Array<char*, 2>, at::native::memory::LoadWithCast<1>, "
            "at::native::memory::StoreWithCast>(int)"
        ),
        f"{PREFIX}(anonymous namespace)::CompareEqFunctor<float>, at::detail::Array<char*, 3> >(int)",
        (
            f"{PREFIX}bfloat16_copy_kernel_cuda(at::TensorIteratorBase&)::{{lambda(float)#1}}, "
            "at::detail::Array<char*, 2> >(int)"
        ),
        # The length of the sum stands nowhere.
        "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn",
    ],
)
def test_what_they_leave_open_stays_unknown(name: str) -> None:
    assert from_grid(classify(name), SHAPE) is None


def test_a_launch_without_a_grid_tells_nothing() -> None:
    assert from_grid(classify(ADD), LaunchShape(None, (128, 1, 1), None, None)) is None


def events(name: str) -> list[dict[str, object]]:
    where = {"device": 0, "stream": 7, "correlation": 1, "grid": [1024, 1, 1], "block": [128, 1, 1]}
    return [{"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": 10, "dur": 8, "args": where}]


def test_a_kernel_that_is_known_by_its_grid_alone_has_a_regime() -> None:
    """3 x 4 x 524,288 B = 6.29 MB in 8 us are 786 GB/s: 97 % of a V100's 900 x 0.9 = 810 GB/s."""
    v100 = {"deviceProperties": [{"id": 0, "name": "Tesla V100-SXM2-16GB", "numSms": 80,
                                  "computeMajor": 7, "computeMinor": 0}]}  # fmt: skip
    (row,) = analyze(timeline_from_events(events(ADD), **v100)).document.ranks[0].kernels
    assert (row.bytes, row.origin, row.regime) == (3 * 4 * ELEMENTS, "inferred", "memory")


def test_a_hip_grid_tells_nothing() -> None:
    mi210 = {"hip_runtime_version": 1, "deviceProperties": [{"id": 0, "name": "AMD Instinct MI210"}]}
    (row,) = analyze(timeline_from_events(events(ADD), **mi210)).document.ranks[0].kernels
    assert (row.bytes, row.origin) == (None, "unknown")


@pytest.mark.traces
@pytest.mark.parametrize(
    "trace",
    [
        "v100_resnet50_workers0.pt.trace.json.gz",
        "hta/a100_control_rank3of8.json.gz",
        "hta/v100_test_rank1of2.json.gz",
        "hta/sampled_rank0of128.json.gz",
    ],
)
def test_where_inputs_were_recorded_they_tell_the_same(trace: str) -> None:
    """The bytes by name and grid are those by shapes, but for what the last block leaves over and for a
    scalar of up to 16 bytes, which the op lists among its inputs and the kernel takes as an argument."""
    timeline = read(Path(traces_dir()) / trace)
    names = {i: classify(timeline.names[i]) for i in distinct(timeline.gpu.name).tolist()}
    costs = attach(timeline, link(timeline), names)
    seen: dict[tuple[int, int, int], tuple[int, int, int]] = {}
    for row in timeline.valid_gpu.tolist():
        key = int(timeline.gpu.name[row]), int(timeline.gpu.shape[row]), int(costs.index[row])
        shape = timeline.shape(row)
        told = from_grid(names[key[0]], shape) if shape and key not in seen else None
        modelled = costs.costs[key[2]].bytes
        if told is not None and told.bytes is not None and modelled is not None and shape and shape.grid:
            seen[key] = told.bytes, modelled, shape.grid[0]
    assert len(seen) > 50
    for told_bytes, modelled, blocks in seen.values():
        assert told_bytes * (blocks - 1) // blocks <= modelled <= told_bytes + 16
