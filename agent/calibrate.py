"""Measured ceilings of this device: best GEMM per dtype, stream bandwidth, links, launch."""

from __future__ import annotations

import datetime
import platform
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from agent.device import Device, import_torch
from agent.measure import load
from agent.measure.bandwidth import Streams
from agent.measure.clocks import Clocks
from agent.measure.confidence import Circumstances, confidence
from agent.measure.gemm import CPU_DTYPES, GPU_DTYPES, Products
from agent.measure.launch import Launches
from agent.measure.links import Links, links
from agent.measure.rates import Rate
from agent.measure.timing import GPU_SAMPLE_S, Timing, Watch
from agent.measure.waits import Waits
from rooflight.calibration import Calibration
from rooflight.units import GIGA, TERA


@dataclass(frozen=True, slots=True)
class Budget:
    """Seconds for one GEMM dtype, for the streams, the links and the launches."""

    gemm_s: float
    streams_s: float
    links_s: float
    launches_s: float


QUICK = Budget(2.0, 2.5, 1.0, 0.3)
FULL = Budget(8.0, 10.0, 4.0, 1.0)
#: A CPU's figures are measured over and again, so that a slow moment of a shared host is not one figure's
#: alone, and for up to as many rounds more where others leave too few samples.  A GPU's follow each
#: other: what it sustains is asked, not what it does after a rest.
CPU_ROUNDS = 4


@dataclass(frozen=True, slots=True)
class Found:
    """What was measured; rates in FLOP/s and B/s."""

    products: dict[str, Rate]
    streams: dict[str, Rate]
    launch: Timing
    links: Links = field(default_factory=Links)

    def timings(self) -> dict[str, Timing]:
        """What each figure rests on, by the name it has in ``spread_pct``."""
        rates = {f"gemm_{dtype}": rate for dtype, rate in self.products.items()}
        rates |= {"stream": self.streams["triad"], "copy": self.copy, "read": self.streams["read"]}
        rates |= self.links.host
        rates |= {f"p2p {peer}": rate for peer, rate in self.links.peers.items()}
        return {name: rate.timing for name, rate in rates.items()} | {"launch": self.launch}

    @property
    def starved(self) -> bool:
        """Whether others left a figure too few samples."""
        return any(timing.disturbed for timing in self.timings().values())

    @property
    def copy(self) -> Rate:
        """Pinned host memory to a GPU; on a CPU memory to memory."""
        return self.links.host.get("h2d", self.streams["copy"])


def calibrate(device: Device, *, quick: bool, note: Callable[[str], None]) -> Calibration:
    """Measure the device; ``note`` is told what is measured next.

    ``stream_gbs`` is the triad, ``copy_gbs`` pinned host memory to a GPU (on a CPU: memory to memory,
    read and write counted), ``launch_us`` the distance of two smallest operators.  ``spread_pct`` is
    the interquartile range over the median of each.
    """
    before = load.now()
    with Clocks(device) as clocks:
        found = measure(device, QUICK if quick else FULL, clocks, note)
    others = load.others(before, load.now())
    around = Circumstances(others, clocks.found(), clocks.limits(), clocks.slowdowns())
    result = _result(device, found, around)
    result.conditions["mode"] = "quick" if quick else "full"
    if result.confidence == "low":
        note(f"not sure: {'; '.join(result.confidence_reasons)}")
    return result


def measure(device: Device, budget: Budget, clocks: Clocks, note: Callable[[str], None]) -> Found:
    """All figures, in turns on a CPU."""
    with ExitStack() as stack:
        watch = Watch(waits=stack.enter_context(Waits()))
        if device.is_gpu:
            torch = import_torch()
            stack.enter_context(torch.cuda.device(device.index))
            watch = Watch(torch.cuda.synchronize, GPU_SAMPLE_S, steady=True)
        note(f"measuring matrix products, memory streams and launches on {device.name}")
        dtypes = GPU_DTYPES if device.is_gpu else CPU_DTYPES
        products = {dtype: Products(device, dtype, watch, budget.gemm_s) for dtype in dtypes}
        streams, launches = Streams(device, watch), Launches(device, watch)
        rounds = 1 if device.is_gpu else CPU_ROUNDS
        for n in range(2 * rounds):
            clocks.look()
            for product in products.values():
                product.measure(budget.gemm_s / rounds)
            streams.measure(budget.streams_s / rounds)
            launches.measure(budget.launches_s / rounds)
            found = Found(_reached(products), streams.rates(), launches.timing())
            if n + 1 >= rounds and not found.starved:
                break
        clocks.look()
        return replace(found, links=links(device, budget.links_s))


def _reached(products: Mapping[str, Products]) -> dict[str, Rate]:
    rates = {dtype: product.rate() for dtype, product in products.items()}
    return {dtype: rate for dtype, rate in rates.items() if rate is not None}


def _result(device: Device, found: Found, around: Circumstances) -> Calibration:
    timings = found.timings()
    word, reasons = confidence(timings, around)
    return Calibration(
        device=device.name,
        kind=device.kind,
        measured_at=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        gemm_tflops=_rates(found.products, TERA),
        vector_tflops=_rates(vector_ceilings(device, found.products), TERA),
        stream_gbs=_round(found.streams["triad"].per_s / GIGA),
        copy_gbs=_round(found.copy.per_s / GIGA),
        launch_us=_round(found.launch.seconds * 1e6),
        uuid=device.uuid,
        host=device.host,
        software=_software(),
        spread_pct={name: round(100 * timing.spread, 2) for name, timing in timings.items()},
        conditions=_conditions(device, found, around),
        confidence=word,
        confidence_reasons=reasons,
        streams_gbs=_rates(found.streams, GIGA),
        link_gbs=_rates(found.links.host, GIGA),
        p2p_gbs=_rates(found.links.peers, GIGA),
        samples={name: timing.samples for name, timing in timings.items()},
        clocks_mhz=dict(around.clocks),
    )


def vector_ceilings(device: Device, products: Mapping[str, Rate]) -> dict[str, Rate]:
    """The ordinary units' FLOP/s, where a matrix product runs on them.

    A CPU multiplies fp32 and fp64 matrices with the multiply-add units of its vector registers, and an
    NVIDIA GPU fp32 ones on its CUDA cores while TF32 is off: what the product reaches, they reach.
    Elsewhere nothing is claimed.
    """
    if not device.is_gpu:
        return {dtype: products[dtype] for dtype in ("fp32", "fp64") if dtype in products}
    if import_torch().version.hip is None and "fp32" in products:
        return {"fp32": products["fp32"]}
    return {}


def _conditions(device: Device, found: Found, around: Circumstances) -> dict[str, str]:
    conditions = {f"gemm_{dtype}": rate.what for dtype, rate in found.products.items()}
    conditions |= {f"stream_{name}": rate.what for name, rate in found.streams.items()}
    conditions |= {name: rate.what for name, rate in found.links.host.items()}
    conditions |= {f"p2p {peer}": rate.what for peer, rate in found.links.peers.items()}
    conditions |= found.links.absent
    conditions["copy"] = found.copy.what
    conditions["launch"] = found.launch.estimator
    conditions["vector"] = "from the matrix products that run on the vector units"
    conditions["threads"] = str(device.threads)
    if around.limits:
        conditions["clocks_limited_by"] = ", ".join(around.limits)
    others = around.others
    conditions["others_used"] = "unknown" if others is None else f"{100 * others:.1f} % of the CPUs"
    return conditions


def _software() -> dict[str, str]:
    torch = import_torch()
    versions = {"torch": str(torch.__version__), "python": platform.python_version()}
    if torch.version.cuda:
        versions["cuda"] = torch.version.cuda
    return versions


def _rates(rates: Mapping[str, Rate], unit: float) -> dict[str, float]:
    return {name: _round(rate.per_s / unit) for name, rate in rates.items()}


def _round(value: float) -> float:
    """Four significant digits: the spread is larger than the fifth."""
    return float(f"{value:.4g}")
