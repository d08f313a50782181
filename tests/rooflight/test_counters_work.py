"""From metrics to FLOPs and bytes, by hand."""

from __future__ import annotations

import pytest

from rooflight.counters.derive import derive
from rooflight.counters.work import Kernel, Values

A100 = "8.0"
FP32 = Kernel(dtype="fp32", matrix_unit=False, compute=A100)


def sass(**counts: int) -> dict[str, float]:
    """The nine instructions that CUPTI counts, 0 but for those that are given."""
    ops = [f"{kind}{op}" for kind in "dfh" for op in ("add", "mul", "fma")]
    return {f"smsp__sass_thread_inst_executed_op_{op}_pred_on.sum": counts.get(op, 0) for op in ops}


def flops(values: Values, kernel: Kernel = FP32) -> tuple[int, str | None, bool] | None:
    found = derive(values, kernel).executed
    return None if found is None else (found.flops, found.dtype, found.matrix)


def moved(values: Values, compute: str | None = None) -> tuple[int, int | None, int | None] | None:
    found = derive(values, Kernel(compute=compute)).moved
    return None if found is None else (found.total, found.read, found.written)


# -- NVIDIA: FLOPs -----------------------------------------------------------------------------------


def test_an_fma_is_two_flops() -> None:
    """AlexNet's first convolution on A100: 2 x 9,119,334,400 + 24,780,800 = 18,263,449,600."""
    assert flops(sass(ffma=9_119_334_400, fmul=24_780_800)) == (18_263_449_600, "fp32", False)


def test_types_add_up_and_the_largest_is_the_type() -> None:
    """10 + 2 x 20 in fp64, 5 in fp32."""
    assert flops(sass(dadd=10, dfma=20, fadd=5)) == (55, "fp64", False)


def test_nothing_counted_is_zero_flops_of_no_type() -> None:
    assert flops(sass()) == (0, None, False)


def test_half_fmas_alone_are_moves_of_constants_in_a_kernel_of_fp32() -> None:
    """The bias kernel of AlexNet on A100: 24,780,800 elements, one fma each, and two half fmas that set
    registers."""
    assert flops(sass(hfma=49_561_600, ffma=24_780_800)) == (49_561_600, "fp32", False)
    assert flops(sass(hfma=100, hadd=1), FP32) == (201, "fp16", False)
    half = Kernel(dtype="fp16", matrix_unit=False, compute=A100)
    assert flops(sass(hfma=100), half) == (200, "fp16", False)


@pytest.mark.parametrize("unit", [None, True])
def test_vector_flops_are_nothing_where_the_matrix_unit_may_have_run(unit: bool | None) -> None:
    kernel = Kernel(dtype="fp32", matrix_unit=unit, compute=A100)
    assert flops(sass(fmul=16_613_376), kernel) is None
    idle = sass(ffma=5) | {"sm__inst_executed_pipe_tensor.sum": 0}
    assert flops(idle, kernel) == (10, "fp32", False)
    assert flops(idle | {"sm__inst_executed_pipe_tensor.sum": 1}, kernel) is None


def test_a_type_that_was_not_counted_leaves_flops_open() -> None:
    single = {metric: n for metric, n in sass(ffma=5).items() if "_op_f" in metric}
    assert flops(single) == (10, "fp32", False)
    assert flops(single, Kernel(dtype="fp16", matrix_unit=False, compute=A100)) is None
    assert flops(single, Kernel(matrix_unit=False, compute=A100)) is None


@pytest.mark.parametrize("compute", ["10.0", "12.0", None])
def test_packed_fp32_has_to_be_counted_where_it_exists(compute: str | None) -> None:
    """Two fmas in one instruction are 4 FLOPs: 2 x 5 + 4 x 3 = 22."""
    kernel = Kernel(dtype="fp32", matrix_unit=False, compute=compute)
    assert flops(sass(ffma=5), kernel) is None
    packed = {f"smsp__sass_thread_inst_executed_op_{op}2_pred_on.sum": 0 for op in ("fadd", "fmul")}
    packed["smsp__sass_thread_inst_executed_op_ffma2_pred_on.sum"] = 3
    assert flops(sass(ffma=5) | packed, kernel) == (22, "fp32", False)


OPS = "sm__ops_path_tensor_src_"


@pytest.mark.parametrize(
    ("metrics", "expected"),
    [
        ({"bf16_dst_fp32": 4096}, (4096, "bf16", True)),
        # The sum of both destinations stands for them, and both sparsities for their destination.
        ({"fp16": 30, "fp16_dst_fp16": 10, "fp16_dst_fp32": 20}, (30, "fp16", True)),
        ({"fp16_dst_fp16": 10, "fp16_dst_fp32": 20}, (30, "fp16", True)),
        ({"fp16_dst_fp32": 20, "fp16_dst_fp32_sparsity_off": 20}, (20, "fp16", True)),
        ({"fp16_dst_fp32_sparsity_off": 20, "fp16_dst_fp32_sparsity_on": 0}, (20, "fp16", True)),
        ({"tf32_dst_fp32": 7, "fp64": 0, "int8": 0}, (7, "tf32", True)),
        # What a sparse op is worth in dense FLOPs is not told.
        ({"fp16_dst_fp32": 20, "fp16_dst_fp32_sparsity_on": 20}, None),
        # Of mixed sources it is not told which.
        ({"fp4_fp6_fp8_dst_fp32": 9}, (9, None, True)),
    ],
)
def test_ops_of_the_matrix_unit(metrics: dict[str, float], expected: object) -> None:
    values = {f"{OPS}{name}.sum": value for name, value in metrics.items()}
    assert flops(values, Kernel(matrix_unit=True)) == expected


def test_where_the_matrix_unit_ran_its_ops_alone_are_the_flops() -> None:
    """As a formula does not count the epilogue either."""
    values = sass(fmul=100) | {f"{OPS}bf16_dst_fp32.sum": 4096}
    assert flops(values, Kernel(dtype="bf16", matrix_unit=True)) == (4096, "bf16", True)


# -- NVIDIA: bytes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metrics", "expected"),
    [
        ({"dram__bytes_read.sum": 100, "dram__bytes_write.sum": 28}, (128, 100, 28)),
        ({"dram__bytes.sum": 130}, (130, None, None)),
        # A sector is 32 bytes.
        ({"dram__sectors_read.sum": 4, "dram__sectors_write.sum": 2}, (192, 128, 64)),
        ({"dram__bytes_read.sum": 100}, None),
        # 3.2e12 bytes a second for 10,000 ns.
        ({"dram__bytes.sum.per_second": 3.2e12, "gpu__time_duration.sum": 10_000}, (32_000_000, None, None)),
        ({"dram__bytes.sum": 1e300}, None),
        ({}, None),
    ],
)
def test_bytes_of_device_memory(metrics: dict[str, float], expected: object) -> None:
    assert moved(metrics) == expected


# -- AMD ---------------------------------------------------------------------------------------------


def valu(**counts: int) -> dict[str, float]:
    names = [f"{op}_{kind}" for op in ("ADD", "MUL", "TRANS", "FMA") for kind in ("F16", "F32", "F64")]
    return {f"SQ_INSTS_VALU_{name}": counts.get(name, 0) for name in names}


def test_a_vector_instruction_is_64_lanes_and_an_fma_two_flops_each() -> None:
    """64 x (3 + 2 x 10) = 1,472."""
    assert flops(valu(ADD_F32=3, FMA_F32=10) | {"SQ_INSTS_MFMA": 0}, Kernel()) == (1472, "fp32", False)


def test_mops_are_units_of_512_flops() -> None:
    """512 x 100; vector instructions beside them are no part of it."""
    values = valu(ADD_F32=3) | {"SQ_INSTS_VALU_MFMA_MOPS_BF16": 100, "SQ_INSTS_VALU_MFMA_MOPS_F64": 0}
    assert flops(values, Kernel()) == (51_200, "bf16", True)


def test_on_amd_too_vector_flops_need_an_idle_matrix_unit() -> None:
    assert flops(valu(ADD_F32=3), Kernel()) is None
    assert flops(valu(ADD_F32=3), Kernel(matrix_unit=False)) == (192, "fp32", False)
    assert flops(valu(ADD_F32=3) | {"SQ_INSTS_MFMA": 9}, Kernel(matrix_unit=False)) is None


def requests(unit: str, **counts: int) -> dict[str, float]:
    return {f"{unit}_{name}_sum": value for name, value in counts.items()}


WRITES = {"WRREQ": 10, "WRREQ_64B": 6}  # 64 x 6 + 32 x 4 = 512 bytes


def test_requests_of_mi300() -> None:
    """128 x 20 + 64 x (50 - 20 - 5) + 32 x 5 = 2560 + 1600 + 160 = 4,320 bytes read."""
    values = requests("TCC_EA0", RDREQ=50, RDREQ_32B=5, **WRITES) | {"TCC_BUBBLE_sum": 20}
    assert moved(values) == (4832, 4320, 512)


def test_requests_of_mi200() -> None:
    """64 x (50 - 5) + 32 x 5 = 3,040 bytes read."""
    assert moved(requests("TCC_EA", RDREQ=50, RDREQ_32B=5, **WRITES)) == (3552, 3040, 512)


def test_requests_of_mi350_are_counted_by_size() -> None:
    """32 x 5 + 64 x 10 + 128 x 20 = 3,360 bytes read."""
    sizes = {"RDREQ_32B": 5, "RDREQ_64B": 10, "RDREQ_128B": 20}
    assert moved(requests("TCC_EA0", RDREQ=35, **sizes, **WRITES)) == (3872, 3360, 512)


def test_large_reads_that_were_not_counted_leave_bytes_open() -> None:
    """On gfx950 the counter of 128-byte reads stays 0 whatever is read."""
    values = requests("TCC_EA0", RDREQ=50, RDREQ_32B=5, **WRITES)
    assert moved(values) is None
    assert moved(values | {"TCC_BUBBLE_sum": 0}, "9.5") is None
    assert moved(values | {"TCC_BUBBLE_sum": 0}) is None
    # 64 x 45 + 32 x 5 = 3,040: on gfx942 it counts, and 0 is 0.
    assert moved(values | {"TCC_BUBBLE_sum": 0}, "9.4") == (3552, 3040, 512)


def test_sizes_in_kib_are_not_taken_where_they_rest_on_that_counter() -> None:
    values = {"FETCH_SIZE": 2.5, "WRITE_SIZE": 1}
    assert moved(values, "9.4") == (3584, 2560, 1024)
    assert moved(values, "9.5") is None
    assert moved(values) is None


def test_counts_that_contradict_each_other_tell_nothing() -> None:
    """More reads of 32 bytes than reads: 64 x (1 - 9) + 32 x 9 is below 0."""
    assert moved(requests("TCC_EA", RDREQ=1, RDREQ_32B=9, **WRITES)) is None
