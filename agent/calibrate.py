"""Measured ceilings of this device: best GEMM per dtype, stream bandwidth, copy, launch."""

from __future__ import annotations

import datetime
import platform
from collections.abc import Callable, Mapping

from agent.device import Device, import_torch
from agent.measure import bandwidth, gemm, launch, load, timing
from agent.measure.rates import Rate
from rooflight.protocol import Calibration
from rooflight.units import GIGA, TERA

#: Seconds for one GEMM dtype, for the streams, the host copy and the launches.
QUICK = (2.0, 1.5, 0.5, 0.3)
FULL = (8.0, 6.0, 2.0, 1.0)


def calibrate(device: Device, *, quick: bool, note: Callable[[str], None]) -> Calibration:
    """Measure the device; ``note`` is told what is measured next.

    ``stream_gbs`` is the triad, ``copy_gbs`` pinned host memory to a GPU (on a CPU: memory to memory,
    read and write counted), ``launch_us`` the distance of two smallest operators.  ``spread_pct`` is
    the interquartile range over the median of each.
    """
    gemm_s, stream_s, copy_s, launch_s = QUICK if quick else FULL
    before = load.now()
    note(f"measuring matrix products on {device.name}")
    products = gemm.ceilings(device, gemm_s)
    note("measuring memory streams")
    streams = bandwidth.streams(device, stream_s)
    copy = bandwidth.host_copy(device, copy_s) or streams["copy"]
    note("measuring launches")
    launched = launch.launch(device, launch_s)
    disturbed = load.others(before, load.now())
    if disturbed is not None and disturbed > timing.QUIET:
        note(f"other programs used {100 * disturbed:.0f} % of the CPUs: calibrate again on an idle machine")
    spreads = {f"gemm_{dtype}": rate.spread for dtype, rate in products.items()}
    spreads |= {"stream": streams["triad"].spread, "copy": copy.spread, "launch": launched.spread}
    return Calibration(
        device=device.name,
        kind=device.kind,
        measured_at=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        gemm_tflops={dtype: _round(rate.per_s / TERA) for dtype, rate in products.items()},
        vector_tflops={d: _round(r.per_s / TERA) for d, r in vector_ceilings(device, products).items()},
        stream_gbs=_round(streams["triad"].per_s / GIGA),
        copy_gbs=_round(copy.per_s / GIGA),
        launch_us=_round(launched.seconds * 1e6),
        uuid=device.uuid,
        host=device.host,
        software=_software(),
        spread_pct={name: round(100 * spread, 2) for name, spread in spreads.items()},
        conditions={
            **_conditions(device, products, streams, copy),
            "launch": launched.estimator,
            "mode": "quick" if quick else "full",
            "others_used": "unknown" if disturbed is None else f"{100 * disturbed:.1f} % of the CPUs",
        },
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


def _conditions(
    device: Device, products: Mapping[str, Rate], streams: Mapping[str, Rate], copy: Rate
) -> dict[str, str]:
    conditions = {f"gemm_{dtype}": rate.what for dtype, rate in products.items()}
    conditions |= {
        f"stream_{name}": f"{rate.per_s / GIGA:.1f} GB/s, {rate.what}" for name, rate in streams.items()
    }
    conditions["copy"] = copy.what
    conditions["vector"] = "from the matrix products that run on the vector units"
    conditions["threads"] = str(device.threads)
    return conditions


def _software() -> dict[str, str]:
    torch = import_torch()
    versions = {"torch": str(torch.__version__), "python": platform.python_version()}
    if torch.version.cuda:
        versions["cuda"] = torch.version.cuda
    return versions


def _round(value: float) -> float:
    """Four significant digits: the spread is larger than the fifth."""
    return float(f"{value:.4g}")
