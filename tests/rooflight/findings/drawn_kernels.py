"""Rules about kernels that use the device badly, and about the recording itself."""

from __future__ import annotations

from tests.recording import V100
from tests.rooflight.findings.scenes import BF16, Drawn, Scene, kernel, memory_us, op

ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>"
SQUARE = [[4096, 4096], [4096, 4096]]
FLOPS = 2 * 4096**3
GEMM = "ampere_bf16_s16816gemm_bf16_128x128"

#: A column is 1 us.
TINY = """
us         0         10        20        30        40
thread 1   ProfilerStep#1==========================
thread 1   add===    add===
thread 1    cuL^1     cuL^2
stream 7       k^1=      k^2=
"""
FIVE = """
us         0         10        20        30        40
thread 1   ProfilerStep#1==========================
thread 1   add===    add===
thread 1    cuL^1     cuL^2
stream 7       k^1==     k^2==
"""
SMALL = {"add": op("aten::add", [[1 << 10], [1 << 10], []]), "k": kernel(ADD)}
#: 12 MiB take 4.17 us: four are their roof.
AT_ROOF = {"add": op("aten::add", [[1 << 20], [1 << 20], []]), "k": kernel(ADD)}

#: A column is 20 us: the kernel takes 45 of them.
LONG = """
us         0         200       400       600       800       1000
thread 1   ProfilerStep#1====================================
thread 1   add======
thread 1    cuL^1
stream 7        k^1==========================================
"""
LARGE = op("aten::add", [[1 << 20], [1 << 20], []])


def shaped(blocks: int, registers: int) -> Scene:
    shape = {"grid": [blocks, 1, 1], "block": [256, 1, 1], "registers per thread": registers}
    return Scene(LONG, {"add": LARGE, "k": kernel(ADD, **shape | {"shared memory": 0})})


#: A column is 100 us.
PRODUCT = """
us         0         1000      2000      3000
thread 1   ProfilerStep#1================
thread 1   mm====
thread 1   cuL^1
stream 7   g^1===========================
"""
#: A column is 20 us: 50 of them, 14, and 1.
FAR = """
us         0         200       400       600       800       1000
thread 1   ProfilerStep#1====================================
thread 1   mm====
thread 1   cuL^1
stream 7   g^1===============================================
"""
NEAR = """
us         0         200       400       600       800       1000
thread 1   ProfilerStep#1====================================
thread 1   mm====
thread 1   cuL^1
stream 7   g^1===========other^2=============================
"""


def product(drawing: str, name: str, dtype: str = "float", device: dict[str, object] | None = None) -> Scene:
    told = {"mm": op("aten::mm", SQUARE, dtype), "g": kernel(name)}
    return Scene(drawing, told, device) if device else Scene(drawing, told)


#: 0.9 x 66.9 TFLOP/s of fp32, 0.8 x 494.7 of TF32, 0.796 x 989.4 of bf16.
FP32_US, TF32_US, BF16_US = (FLOPS / (peak * 1e6) for peak in (0.9 * 66.9, 0.8 * 494.7, 0.796 * 989.4))

NO_STEPS = """
us         0         200       400
thread 1   cuL^1
stream 7   gemm^1===
"""
STEPS_AND_SHAPES = """
us         0         200       400
thread 1   ProfilerStep#1======
thread 1   region
thread 1   mm==
thread 1   cuL^1
stream 7   gemm^1===
"""

#: A column is 10 us.  The second region lies in the first, as after a break.
BROKEN = """
us         0         100       200       300       400
thread 1   ProfilerStep#1==========================
thread 1   region0=================================
thread 1   graph==             region1=====
thread 1                       graph==
thread 1   t0===               t0===
thread 1           aten::mul
thread 1   cuL^1   cuL^2       cuL^3
stream 7      k^1=    k^2=        k^3=
"""
IN_THE_GRAPH = """
us         0         100       200       300       400
thread 1   ProfilerStep#1==========================
thread 1   region0=================================
thread 1   graph============== region1=====
thread 1                       graph==
thread 1   t0===               t0===
thread 1           aten::mul
thread 1   cuL^1   cuL^2       cuL^3
stream 7      k^1=    k^2=        k^3=
"""


def compiled(second: str = "1/0") -> dict[str, tuple[str, dict[str, object]]]:
    return {
        "region0": ("Torch-Compiled Region: 0/0", {}),
        "region1": (f"Torch-Compiled Region: {second}", {}),
        "graph": ("## Call CompiledFxGraph f0123 ##", {}),
        "t0": ("triton_poi_fused_add_0", {}),
    }


DRAWN = {
    "tiny-kernels": Drawn(
        "two adds of 1,024 floats, 12,288 B each, take 4 us each",
        Scene(TINY, SMALL),
        2 * (4 - memory_us(12_288)),
        [Scene(FIVE, SMALL), Scene(TINY, AT_ROOF)],
        "pairs/h100/gaunernst_bert-small-uncased__1016001.json.gz",
    ),
    "underfilled-grid": Drawn(
        "131 blocks on 132 SMs; 3 x 4 MiB are 4.17 of the 900 us",
        shaped(131, 32),
        900 - memory_us(3 * 4 * (1 << 20)),
        [shaped(132, 32)],
        "pairs/h100/Falconsai_nsfw_image_detection__1016002.json.gz",
    ),
    "low-occupancy": Drawn(
        "255 registers x 256 threads: one block of 8 warps of 64 on an SM; as many bytes",
        shaped(4096, 255),
        900 - memory_us(3 * 4 * (1 << 20)),
        [shaped(4096, 64)],
        "hta/a100_control_rank3of8.json.gz",
    ),
    "fp32-matrix": Drawn(
        "30 columns of 100 us, which shrink as the bound does",
        product(PRODUCT, "ampere_sgemm_128x128_nn"),
        3000 * (1 - TF32_US / FP32_US),
        [
            product(PRODUCT, "sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize64x64x32"),
            product(PRODUCT, "gemm"),
            product(PRODUCT, "ampere_sgemm_128x128_nn", device=V100),
        ],
    ),
    "gemm-under-roof": Drawn(
        "1000 us for the work of 174.5",
        product(FAR, GEMM, BF16),
        1000 - BF16_US,
        [product(NEAR, GEMM, BF16)],
        "v100_resnet50_workers0.pt.trace.json.gz",
    ),
    "graph-breaks": Drawn(
        "aten::mul runs in a region and outside of its graph",
        Scene(BROKEN, compiled()),
        None,
        [Scene(IN_THE_GRAPH, compiled()), Scene(BROKEN, compiled("0/0"))],
    ),
    "recording-options": Drawn(
        "no steps, no shapes",
        Scene(NO_STEPS),
        None,
        [
            Scene(
                STEPS_AND_SHAPES,
                {"mm": op("aten::mm", [[64, 64], [64, 64]]), "region": ("Torch-Compiled Region: 0/0", {})},
            )
        ],
        "mi210_gpu_only.json.gz",
    ),
}
