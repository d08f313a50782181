"""The best matrix product of each dtype: the compute ceiling."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from agent.device import Device, import_torch
from agent.measure.rates import Rate, best, rate
from agent.measure.threads import one_thread
from agent.measure.timing import FIRST_CALLS, LEAST_SAMPLES, Tally, Watch

#: (M, N, K).  The small ones reach a few cores' peak in under a millisecond, which others leave to us even
#: on a busy machine; many cores need the large ones.
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
#: A shape is left out when its first turn would take more than this share of the budget.
FIRST_SHARE = 0.2
#: A case whose fastest sample is slower than the best one's by this is no ceiling, and gets no more time.
SLOW = 1.25
#: Seconds of a turn; a CPU's are short, so that each case sees every moment of a busy machine.
CPU_TURN_S, GPU_TURN_S = 0.01, 0.05

Product = Callable[[], object]


def flop(m: int, n: int, k: int) -> int:
    """[m, k] @ [k, n]: a multiplication and an addition for each of m n k terms."""
    return 2 * m * n * k


@dataclass(slots=True)
class Case:
    """A product of one shape and layout of the second operand, on one thread only if ``alone``; one that
    is ``out`` gets no more time."""

    shape: tuple[int, int, int]
    layout: str
    alone: bool = False
    tally: Tally = field(default_factory=Tally)
    product: Product | None = None
    out: bool = False

    @property
    def flop(self) -> int:
        return flop(*self.shape)

    @property
    def what(self) -> str:
        return f"{' x '.join(map(str, self.shape))} {self.layout}{', one thread' if self.alone else ''}"

    @property
    def top(self) -> float:
        """FLOP/s of the fastest sample so far, 0 before the first."""
        return self.flop / self.tally.fastest

    def stop(self) -> None:
        """Give no more time, and the operands' memory back."""
        self.out, self.product = True, None


@dataclass(slots=True)
class Products:
    """The cases of one dtype, measured in turns over and again: moments differ, and each case sees all."""

    device: Device
    dtype: str
    watch: Watch
    budget_s: float
    cases: list[Case] = field(default_factory=list)

    def __post_init__(self) -> None:
        shapes = GPU_SHAPES if self.device.is_gpu else CPU_SHAPES
        layouts = ("nt",) if self.dtype == "fp8" else LAYOUTS
        if _native(import_torch(), self.device, self.dtype):
            self.cases = [Case(shape, layout) for shape in shapes for layout in layouts]

    def measure(self, budget_s: float) -> None:
        """Turns for about ``budget_s`` seconds; a case that torch refuses on this device is left out."""
        torch = import_torch()
        deadline = time.perf_counter() + budget_s
        with torch.no_grad(), _precision(torch, self.dtype):
            while self._round(torch, deadline):
                self._sift()

    def rate(self) -> Rate | None:
        """The ceiling in FLOP/s, ``None`` of a dtype that the device does not multiply."""
        measured = [case for case in self.cases if case.tally.fastest < math.inf]
        return best(rate(case.flop, case.what, self.watch.timing(case.tally)) for case in measured)

    def _round(self, torch: Any, deadline: float) -> bool:
        """A turn of each case that there is time for; whether there was any."""
        going = [case for case in self.cases if not case.out]
        turns = [self._turn(torch, case) for case in going if self._may(case, deadline)]
        return any(turns)

    def _may(self, case: Case, deadline: float) -> bool:
        """Whether there is time for it, as far as what was reached so far tells; on a busy machine for the
        short ones alone."""
        if _busy(self.cases) and case.flop > SHORT_FLOP:
            return False
        top = self._top()
        call_s = case.flop / top if top else 0.0
        if not case.tally.calls and FIRST_CALLS * call_s > FIRST_SHARE * self.budget_s:
            return False
        return time.perf_counter() + 2 * call_s < deadline

    def _turn(self, torch: Any, case: Case) -> bool:
        """Whether torch has a kernel of it for this device."""
        try:
            if case.product is None:
                case.product = _product(torch, self.device, self.dtype, case.shape, case.layout)
            with one_thread(torch) if case.alone else nullcontext():
                self.watch.turn(case.product, case.tally, GPU_TURN_S if self.device.is_gpu else CPU_TURN_S)
        except (RuntimeError, AttributeError, TypeError):
            case.stop()
            return False
        if self.device.is_gpu:
            case.product = None  # operands of all cases at once may be more than its memory
        return True

    def _sift(self) -> None:
        """Give the time that is left to those that may be the ceiling.  Where others leave hardly a
        sample alone one thread is tried too, which waits for no other thread."""
        top = self._top()
        for case in self.cases:
            if _known(case) and case.top * SLOW < top:
                case.stop()
        if _busy(self.cases) and not any(case.alone for case in self.cases):
            self.cases += [Case(c.shape, c.layout, alone=True) for c in self.cases if c.flop <= SHORT_FLOP]

    def _top(self) -> float:
        return max((case.top for case in self.cases), default=0.0)


def _busy(cases: Sequence[Case]) -> bool:
    """Whether others disturbed most samples."""
    return sum(len(c.tally.disturbed) for c in cases) > sum(len(c.tally.quiet) for c in cases)


def _known(case: Case) -> bool:
    return len(case.tally.quiet) + len(case.tally.disturbed) >= LEAST_SAMPLES


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
    major, minor = torch.cuda.get_device_capability(device.place)
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
