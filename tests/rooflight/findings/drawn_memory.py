"""Rules about bytes that are moved."""

from __future__ import annotations

from tests.rooflight.findings.scenes import BF16, Drawn, Scene, kernel, memory_us, op

ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>"
FILL = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>"
COPY = "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(float)>"
TURN = "void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true, (cudnnKernelDataType_t)2>"
LOOKUP = "void at::native::(anonymous namespace)::indexSelectLargeIndex<float, long, unsigned int>"
PAGED = "void vllm::paged_attention_v1_kernel<__nv_bfloat16, __nv_bfloat16, 128, 16, 128>"
FLASH = "void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4, false, false, cutlass::bfloat16_t>>"
SOFTMAX = "void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, false, false>"
NORM = "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>"
GEMM = "ampere_bf16_s16816gemm_bf16_128x128"
MIB = 1 << 20

#: A column is 2 us: three kernels of 20.
CHAIN = """
us         0         20        40        60
thread 1   ProfilerStep#1================
thread 1   add==add==add==
thread 1   cuL^1cuL^2cuL^3
stream 7         k^1=======k^2=======k^3=======
"""
APART = """
us         0         20        40        60
thread 1   ProfilerStep#1================
thread 1   add==less=
thread 1   cuL^1cuL^2
stream 7         k^1=======k^2=======
"""
ADDS = {
    "add": op("aten::add", [[MIB], [MIB], []]),
    "less": op("aten::add", [[1024], [1024], []]),
    "k": kernel(ADD),
}

#: A column is 10 us: a kernel of 70 in a step of 100, and in one of 400.
BOUND = """
us         0         50        100       150       200
thread 1   ProfilerStep#1======
thread 1   add===
thread 1   cuL^1
stream 7   k^1===========
"""
SELDOM = """
us         0         100       200       300       400
thread 1   ProfilerStep#1==========================
thread 1   add===
thread 1   cuL^1
stream 7   k^1====
"""
HUGE = {"add": op("aten::add", [[1 << 24], [1 << 24], []]), "k": kernel(ADD)}

#: A column is 20 us: 5 of them are the kernel that is meant, in a step of 50.
FIVE_OF_FIFTY = """
us         0         200       400       600       800       1000
thread 1   ProfilerStep#1====================================
thread 1   around====
thread 1   inner=
thread 1   cuL^1          cuL^2
stream 7        k^1==          other^2=======================
"""
TEN_OF_FIFTY = """
us         0         200       400       600       800       1000
thread 1   ProfilerStep#1====================================
thread 1   around====
thread 1   inner=
thread 1   cuL^1          cuL^2
stream 7        k^1=======     other^2=======================
"""
#: A column is 5 us: 15 us, less than 1 % of the step of 2,930.
LITTLE = (
    """
us         0         50        100       150
thread 1   cuL^1ProfilerStep#1=="""
    + "=" * 570
    + """
thread 1        around====
thread 1        inner=
thread 1        cuL^2
stream 7        k^2
stream 7                  other^1"""
    + "=" * 560
    + """
"""
)


def copying(around: str, types: tuple[str, str]) -> dict[str, tuple[str, dict[str, object]]]:
    args = {"Input Dims": [[4096], [4096]], "Input type": list(types)}
    return {"around": (around, {}), "inner": ("aten::copy_", args), "k": kernel(COPY)}


CAST = copying("aten::to", (BF16, "float"))
ORDERED = copying("aten::contiguous", ("float", "float"))


def looked_up(drawing: str, around: str) -> Scene:
    return Scene(drawing, {"around": (around, {}), "inner": ("aten::index_select", {}), "k": kernel(LOOKUP)})


def attended(drawing: str, queries: int, name: str = FLASH, shapes: bool = True) -> Scene:
    """16 heads of 128 over 8,192 keys: 2 x 16 x 8192 x 128 x 2 B."""
    query, keys = [1, 16, queries, 128], [1, 16, 8192, 128]
    inner = op("aten::_scaled_dot_product_flash_attention", [query, keys, keys] if shapes else [], BF16)
    return Scene(drawing, {"inner": inner, "k": kernel(name)})


#: A column is 10 us: the product takes 5 of 15, and of 17.
FEW = """
us         0         100       200
thread 1   ProfilerStep#1=
thread 1   mm===
thread 1   cuL^1cuL^2
stream 7   g^1==other^2===
"""
SELDOM_FEW = """
us         0         100       200
thread 1   ProfilerStep#1===
thread 1   mm===
thread 1   cuL^1cuL^2
stream 7   g^1==other^2=====
"""


def decoded(drawing: str, rows: int) -> Scene:
    return Scene(drawing, {"mm": op("aten::mm", [[rows, 8192], [8192, 8192]], BF16), "g": kernel(GEMM)})


#: A column is 10 us.
ATTENTION = """
us         0         100       200       300       400       500
thread 1   ProfilerStep#1====================================
thread 1   first=mul==softmax=last==
thread 1   cuL^1 cuL^2cuL^3   cuL^4
stream 7   g^1=======     e^2=s^3==      g^4=======
"""
SCORES = [8, 1024, 1024]


def attention(between: str = ADD, columns: int = 1024) -> Scene:
    last = [[8, 1024, columns], [8, columns, 64]]
    return Scene(
        ATTENTION,
        {
            "first": op("aten::bmm", [[8, 1024, 64], [8, 64, 1024]], BF16),
            "mul": op("aten::mul", [SCORES, []], BF16),
            "softmax": op("aten::_softmax", [SCORES, [], []], BF16),
            "last": op("aten::bmm", last, BF16),
            "g": kernel(GEMM),
            "e": kernel(between),
            "s": kernel(SOFTMAX),
        },
    )


def updated(n: int, annotation: str = "Optimizer.step#Adam.step", last: str = "aten::mul_") -> Scene:
    """``n`` kernels of 4 columns of 3 us in an optimizer, each launched by an op of 5 columns."""
    span = 6 * (n + 1)
    rows = [
        "us         0         30        60",
        f"thread 1   {'ProfilerStep#1'.ljust(span, '=')}",
        f"thread 1   {'«step»'.ljust(span - 4, '=')}",
        f"thread 1   {''.join('mul== ' if i < n - 1 else 'last= ' for i in range(n))}",
        f"thread 1   {''.join(f'cuL^{i + 1}'.ljust(6) for i in range(n))}",
        f"stream 7    {''.join(f'k^{i + 1}'.ljust(4, '=').ljust(6) for i in range(n))}",
    ]
    told = {"step": (annotation, {}), "mul": ("aten::mul_", {}), "last": (last, {}), "k": kernel(ADD)}
    return Scene("\n".join(rows), told)


QWEN = "pairs/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz"

DRAWN = {
    "elementwise-chain": Drawn(
        "of three adds two results of 4 MiB are neither written nor read",
        Scene(CHAIN, ADDS),
        memory_us(2 * 2 * 4 * MIB),
        [Scene(APART, ADDS)],
        QWEN,
    ),
    "memory-bound": Drawn(
        "201,326,592 B are 66.8 us of 70",
        Scene(BOUND, HUGE),
        None,
        [Scene(SELDOM, HUGE)],
        QWEN,
    ),
    "layout-conversions": Drawn(
        "5 columns of 20 us",
        Scene(FIVE_OF_FIFTY, {"k": kernel(TURN)}),
        100,
        [Scene(LITTLE, {"k": kernel(TURN)}), Scene(FIVE_OF_FIFTY, {"k": kernel("gemm")})],
        "mi300_resnet_act_checkpoint_rank0of8.json.gz",
    ),
    "needless-fills": Drawn(
        "5 columns of 20 us",
        Scene(FIVE_OF_FIFTY, {"k": kernel(FILL)}),
        100,
        [Scene(LITTLE, {"k": kernel(FILL)}), Scene(FIVE_OF_FIFTY, {"k": kernel(ADD)})],
        "mi210_gpu_only.json.gz",
    ),
    "casts": Drawn(
        "5 columns of 20 us",
        Scene(FIVE_OF_FIFTY, CAST),
        100,
        [Scene(FIVE_OF_FIFTY, ORDERED), Scene(LITTLE, CAST)],
        QWEN,
    ),
    "contiguous-copies": Drawn(
        "5 columns of 20 us",
        Scene(FIVE_OF_FIFTY, ORDERED),
        100,
        [Scene(FIVE_OF_FIFTY, CAST), Scene(LITTLE, ORDERED)],
        QWEN,
    ),
    "embedding-bound": Drawn(
        "10 of 50 columns",
        looked_up(TEN_OF_FIFTY, "aten::embedding"),
        None,
        [looked_up(FIVE_OF_FIFTY, "aten::embedding"), looked_up(TEN_OF_FIFTY, "aten::gather_rows")],
    ),
    "kv-cache-reads": Drawn(
        "one query over 8,192 keys, 5 of 50 columns",
        attended(FIVE_OF_FIFTY, 1),
        None,
        [
            attended(FIVE_OF_FIFTY, 64),
            attended(LITTLE, 1),
            attended(FIVE_OF_FIFTY, 1, shapes=False),
            attended(FIVE_OF_FIFTY, 64, name=PAGED),
        ],
    ),
    "few-rows": Drawn(
        "134,217,728 B of weights are 44.5 us of 50",
        decoded(FEW, 4),
        None,
        [decoded(FEW, 5), decoded(SELDOM_FEW, 4)],
    ),
    "materialised-attention": Drawn(
        "scale 40 and softmax 50 us go, and 8 x 1024 x 1024 scores of 2 B are not written, not read",
        attention(),
        90 + 2 * memory_us(2 * 8 * MIB),
        [attention(between=NORM), attention(columns=512)],
    ),
    "unfused-optimizer": Drawn(
        "20 kernels by plain ops, of unknown sizes",
        updated(20),
        None,
        [updated(19), updated(20, last="aten::_fused_adam_"), updated(20, "Loss.step#Adam.step")],
        "dlrm_8ranks",
    ),
}
