"""The best matrix product of each dtype: the compute ceiling."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from agent.device import Device, import_torch
from agent.measure.rates import Rate, best
from agent.measure.threads import one_thread
from agent.measure.timing import CPU_SAMPLE_S, LEAST_CALLS, SAMPLE_S, repeat

#: (M, N, K): a shape is left out when it would take longer than what is left of the budget.  The small
#: ones reach a few cores' peak in under a millisecond, which others leave to us even on a busy machine.
CPU_SHAPES = (
    (256, 256, 256),
    (384, 384, 384),
    (512, 512, 512),
    (1024, 1024, 1024),
    (2048, 2048, 2048),
    (512, 2048, 512),
    (3072, 3072, 3072),
)
GPU_SHAPES = (
    (2048, 2048, 2048),
    (4096, 4096, 4096),
    (8192, 8192, 8192),
    (8192, 16384, 4096),
    (16384, 8192, 8192),
)
CPU_DTYPES = ("fp32", "bf16", "fp64")
GPU_DTYPES = ("fp32", "tf32", "fp16", "bf16", "fp64", "fp8")
_TORCH_NAMES = {
    "fp32": "float32",
    "tf32": "float32",
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp64": "float64",
    "fp8": "float8_e4m3fn",
}

LAYOUTS = ("nn", "nt")
#: Work of a call that a busy machine may leave alone.
SHORT_FLOP = 2 * 512**3

Product = Callable[[], object]
#: Shape, layout of the second operand, on one thread only.
Case = tuple[tuple[int, int, int], str, bool]


def flop(m: int, n: int, k: int) -> int:
    """[m, k] @ [k, n]: a multiplication and an addition for each of m n k terms."""
    return 2 * m * n * k


def ceilings(device: Device, budget_s: float) -> dict[str, Rate]:
    """The best rate of every dtype that the device multiplies, by our dtype names, in FLOP/s.

    ``budget_s`` is the time for one dtype.  A dtype that torch refuses on this device is left out.
    """
    dtypes = GPU_DTYPES if device.is_gpu else CPU_DTYPES
    found = {dtype: ceiling(device, dtype, budget_s) for dtype in dtypes}
    return {dtype: rate for dtype, rate in found.items() if rate is not None}


def ceiling(device: Device, dtype: str, budget_s: float) -> Rate | None:
    """The best rate of one dtype over shapes and both layouts of the second operand."""
    torch = import_torch()
    if not _native(torch, device, dtype):
        return None
    try:
        with torch.no_grad(), _precision(torch, dtype):
            return best(_rates(torch, device, dtype, budget_s))
    except (RuntimeError, AttributeError, TypeError):
        # No kernel of this dtype for this device, or an older torch: there is no ceiling to tell.
        return None


def _rates(torch: Any, device: Device, dtype: str, budget_s: float) -> Iterator[Rate]:
    """Rates of the cases.  On a busy machine the short ones come again, on one thread too, while time is
    left: another moment may be quieter."""
    shapes = GPU_SHAPES if device.is_gpu else CPU_SHAPES
    cases = [
        (shape, layout, False) for shape in shapes for layout in (("nt",) if dtype == "fp8" else LAYOUTS)
    ]
    queue, part_s = deque(cases), budget_s / len(cases)
    deadline = time.perf_counter() + budget_s
    top, disturbed = 0.0, False
    while queue:
        shape, layout, alone = queue.popleft()
        # What was reached so far tells how long this one will take.
        call_s = flop(*shape) / top if top else 0.0
        if time.perf_counter() + LEAST_CALLS * call_s > deadline or (disturbed and flop(*shape) > SHORT_FLOP):
            continue
        rate, disturbed = _rate(torch, device, dtype, (shape, layout, alone), part_s)
        top = max(top, rate.per_s)
        if disturbed:
            queue.append((shape, layout, not alone))
        yield rate


def _rate(torch: Any, device: Device, dtype: str, case: Case, budget_s: float) -> tuple[Rate, bool]:
    """The rate of one case, and whether others used the CPUs that it ran on."""
    shape, layout, alone = case
    product = _product(torch, device, dtype, shape, layout)
    sample_s = SAMPLE_S if device.is_gpu else CPU_SAMPLE_S
    with one_thread(torch) if alone else nullcontext():
        timing = repeat(product, _synchronize(torch, device), budget_s, sample_s)
    threads = ", one thread" if alone else ""
    what = f"{' x '.join(map(str, shape))} {layout}{threads}, {timing.estimator}"
    return Rate(flop(*shape) / timing.seconds, timing.spread, what), timing.disturbed and not device.is_gpu


def _product(torch: Any, device: Device, dtype: str, shape: tuple[int, int, int], layout: str) -> Product:
    m, n, k = shape
    kind = getattr(torch, _TORCH_NAMES[dtype])
    a = torch.randn(m, k, device=device.place).to(kind)
    b = torch.randn(*((n, k) if layout == "nt" else (k, n)), device=device.place).to(kind)
    if layout == "nt":
        b = b.t()
    if dtype == "fp8":
        one = torch.ones((), device=device.place)
        multiply = torch._scaled_mm  # noqa: SLF001 - torch has no public fp8 product
        return lambda: multiply(a, b, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)
    out = torch.empty(m, n, device=device.place, dtype=kind)
    return lambda: torch.mm(a, b, out=out)


def _native(torch: Any, device: Device, dtype: str) -> bool:
    """Whether the device multiplies the dtype itself; what a framework emulates is no ceiling of it."""
    if not device.is_gpu:
        return dtype != "bf16" or _cpu_has_bf16(torch)
    if torch.version.hip is not None:
        return dtype != "tf32"
    major, minor = torch.cuda.get_device_capability(0)
    native = {"tf32": major >= 8, "bf16": major >= 8, "fp8": (major, minor) >= (8, 9)}
    return bool(native.get(dtype, True))


def _cpu_has_bf16(torch: Any) -> bool:
    probe = getattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", None)
    return bool(probe is not None and probe())


@contextmanager
def _precision(torch: Any, dtype: str) -> Iterator[None]:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if dtype == "tf32" else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def _synchronize(torch: Any, device: Device) -> Callable[[], object]:
    return torch.cuda.synchronize if device.is_gpu else lambda: None
