"""Every shared trace against independent numbers, exact to the nanosecond."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

from rooflight import analyze, read
from rooflight.protocol import PARTS, Rank
from tests.shared import missing_traces, traces_dir

pytestmark = pytest.mark.traces
FIGURES = (
    "span",
    "busy",
    "idle",
    "compute",
    "comm",
    "mem",
    "exposed_comm",
    "exposed_mem",
    "kernel_sum",
    "unlinked",
)


def known(file: str) -> dict[str, Any]:
    return {} if missing_traces() else json.loads((traces_dir() / file).read_text())


TRUTH = {f: t for f, t in known("TRUTH.json").items() if "error" not in t}
PARTS_TRUTH = {f: rows for f, rows in known("PARTS.json").items() if rows}


@cache
def rank(file: str) -> Rank:
    return analyze(read(traces_dir() / file)).document.ranks[0]


def ns(us: float) -> int:
    return round(us * 1000)


@pytest.mark.parametrize("file", TRUTH)
def test_device_figures(file: str) -> None:
    want, got = TRUTH[file], rank(file)
    assert set(got.devices) == set(want["devices"])
    for key, figures in want["devices"].items():
        d = got.devices[key]
        assert {f: ns(getattr(d, f"{f}_us")) for f in FIGURES} == {f: ns(figures[f"{f}_us"]) for f in FIGURES}
        assert (d.n_gpu_events, d.kernels) == (figures["gpu_events"], figures["kernels"])
        assert d.unlinked_kernels == figures["unlinked_kernels"]
        assert d.overlap_pct == figures["overlap_pct"]
        assert ns(d.compute_us + d.exposed_comm_us + d.exposed_mem_us + d.idle_us) == ns(d.span_us)
    assert got.invalid_events == want["invalid"]
    assert [[s.n, ns(s.step_time_us)] for s in got.steps] == [[n, ns(t)] for n, t in want["steps"]]


@pytest.mark.parametrize("file", PARTS_TRUTH)
def test_step_parts(file: str) -> None:
    steps = {s.n: s for s in rank(file).steps}
    for device, n, wall, want in PARTS_TRUTH[file]:
        step = steps[n]
        parts = step.parts_us if step.device == device else step.devices[device]
        assert parts is not None
        got = {p: ns(getattr(parts, p)) for p in PARTS}
        assert sum(got.values()) == ns(step.step_time_us) == ns(wall)
        got["kernel"] = sum(got.pop(p) for p in ("compute", "memory", "latency", "unknown"))
        assert got == {p: ns(t) for p, t in want.items()}


@pytest.mark.parametrize("file", TRUTH)
def test_bounds_nest_and_shares_sum(file: str) -> None:
    r = rank(file)
    for s in r.steps:
        if s.parts_us is not None and s.bound_us is not None and s.attainable_us is not None:
            kernel = sum(getattr(s.parts_us, p) for p in ("compute", "memory", "latency", "unknown"))
            assert 0 <= s.bound_us <= s.attainable_us <= kernel + 0.0005 <= s.step_time_us + 0.001
    table = sum(k.time_us for k in r.kernels if k.kind == "kernel")
    assert ns(table) == sum(ns(d.kernel_sum_us) for d in r.devices.values())
    if r.devices and table:
        c = r.coverage
        assert c.measured + c.modelled + c.inferred + c.unknown == pytest.approx(100, abs=0.03)


# Milliseconds of `input` in steps 6 to 10, from the truth of the parts.
STARVED = [57.041, 60.590, 55.855, 62.036, 48.185]
FED = [0, 0, 0, 1.370, 1.400]


@pytest.mark.parametrize(
    ("file", "want", "starved"),
    [
        ("v100_resnet50_workers0.pt.trace.json.gz", STARVED, True),
        ("v100_resnet50_workers4.pt.trace.json.gz", FED, False),
    ],
)
def test_a_starved_run_is_told_from_a_fed_one(file: str, want: list[float], starved: bool) -> None:
    steps = [s for s in rank(file).steps if 6 <= s.n <= 10]
    assert [s.parts_us.input / 1000 for s in steps if s.parts_us] == pytest.approx(want, abs=0.001)
    assert all((s.regime == "input") is starved for s in steps)
