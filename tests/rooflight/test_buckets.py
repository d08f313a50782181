"""Every GPU event is in one bucket, and no nanosecond of what was recorded is lost (DEFINITIONS §17)."""

from __future__ import annotations

import gzip
import json
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooflight import analyze, read
from rooflight.attribution.launches import link
from rooflight.errors import TooLarge
from rooflight.protocol import Bucket
from rooflight.results.buckets import buckets
from rooflight.trace.timeline import Timeline
from tests.drawing import timeline_from_events, timeline_from_text
from tests.shared import missing_traces, traces_dir


class Sums(NamedTuple):
    """GPU events and their recorded ns; kernels and theirs."""

    events: int
    ns: int
    kernels: int
    kernel_ns: int


def sums(of: dict[str, Bucket]) -> Sums:
    return Sums(
        sum(b.events for b in of.values()),
        sum(ns(b.time_us) for b in of.values()),
        sum(b.kernels for b in of.values()),
        sum(ns(b.kernel_time_us) for b in of.values()),
    )


def ns(us: float) -> int:
    return round(us * 1000)


def of(timeline: Timeline) -> dict[str, Bucket]:
    return buckets(timeline, link(timeline))


# -- an independent count, from the JSON itself -------------------------------------------------------


def recount(document: Any) -> Sums:
    """GPU events by category (DEFINITIONS §3) and their durations, row by row, in decimals."""
    rows = document if isinstance(document, list) else document["traceEvents"]
    gpu = [e for e in rows if isinstance(e, dict) and e.get("ph") == "X" and is_gpu(e)]
    kernels = [e for e in gpu if e["cat"].lower() == "kernel"]
    return Sums(len(gpu), sum(map(recorded_ns, gpu)), len(kernels), sum(map(recorded_ns, kernels)))


#: 95 years: sums of two such times stay within int64 ns.  What claims to be longer is no duration.
MOST_US = Decimal("3e15")


def is_gpu(event: dict[str, Any]) -> bool:
    cat, args = str(event.get("cat", "")).lower(), event.get("args") or {}
    # In 2021 the host's copies had the name that the device's have: those have a stream or a device.
    return cat in ("kernel", "gpu_memcpy", "gpu_memset") or (
        cat in ("memcpy", "memset") and ("stream" in args or "device" in args)
    )


def recorded_ns(event: dict[str, Any]) -> int:
    try:
        us = Decimal(str(event.get("dur")))
    except InvalidOperation:
        return 0
    return int((us * 1000).to_integral_value()) if us.is_finite() and 0 < us <= MOST_US else 0


def document(file: Path) -> Any:
    data = file.read_bytes()
    text = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
    return json.loads(text.decode("utf-8", "backslashreplace"), strict=False, parse_float=Decimal)


TRACES = [] if missing_traces() else sorted(json.loads((traces_dir() / "TRUTH.json").read_text()))


@pytest.mark.traces
@pytest.mark.parametrize("file", TRACES)
def test_the_buckets_of_a_recording_are_all_that_it_holds(file: str) -> None:
    assert sums(of(read(traces_dir() / file))) == recount(document(traces_dir() / file))


# -- single buckets -----------------------------------------------------------------------------------


def test_each_event_goes_where_it_belongs() -> None:
    """gemm inside mm, fill outside of any op, lost without a launch: 10, 5 and 15 us."""
    found = of(
        timeline_from_text("""
        us         0    5    10   15   20   25   30   35   40
        thread 1   aten::mm==
        thread 1     cudaLaunchKernel^1=
        thread 1                  cudaMemsetAsync^2=
        stream 7             gemm^1====     Memset^2 lost=====
        """)
    )
    gpu = {name: (b.events, b.kernels) for name, b in found.items()}
    assert gpu == {"attributed": (1, 1), "unattributed": (1, 0), "unlinked": (1, 1)}
    assert found["unattributed"].kernel_time_us == 0
    assert found["unlinked"].time_us == found["unlinked"].kernel_time_us > 0


def kernel(ts: Any, dur: Any, **more: Any) -> dict[str, Any]:
    row = {
        "ph": "X",
        "cat": "kernel",
        "name": "k",
        "pid": 0,
        "tid": 7,
        "ts": ts,
        "dur": dur,
        "args": {"stream": 7},
    }
    return {**row, **more}


def test_what_a_serial_stream_cuts_off_is_a_bucket_of_time_alone() -> None:
    """[0, 100) is cut at 60: 60 + 10 us stay unlinked, 40 are clipped; 2 events and 110 us in all."""
    found = of(timeline_from_events([kernel(0, 100), kernel(60, 10)]))
    assert found == {"unlinked": Bucket(2, 70, 2, 70), "clipped": Bucket(0, 40, 0, 40)}


def test_events_that_are_left_out_keep_their_time_by_reason() -> None:
    """Six kernels beside an epoch clock: 5 us without a time, 3 us at 0; -2 us, none and text are no time."""
    epoch = 1_764_500_000_000_000
    rows = [
        kernel(epoch, 1),
        kernel(epoch + 10, 1),
        kernel(epoch + 20, 1),
        kernel(epoch + 30, 1),
        kernel("soon", 5),
        kernel(0, 3),
        kernel(epoch, -2),
        kernel(epoch, "long"),
    ]
    rows.append({k: v for k, v in kernel(epoch, 0).items() if k != "dur"})
    assert of(timeline_from_events(rows)) == {
        "unlinked": Bucket(4, 4, 4, 4),
        "bad_ts": Bucket(1, 5, 1, 5),
        "zero_ts": Bucket(1, 3, 1, 3),
        "negative_dur": Bucket(1, 0, 1, 0),
        "bad_dur": Bucket(1, 0, 1, 0),
        "missing_dur": Bucket(1, 0, 1, 0),
    }


def test_times_near_the_end_of_what_is_counted_do_not_wrap() -> None:
    """Three of 9e14 us are 2.7e15, which is counted; four pass 95 years."""

    def several(n: int) -> list[dict[str, Any]]:
        return [kernel(0, 9e14, args={"stream": i}) for i in range(n)]

    found = of(timeline_from_events(several(3)))
    assert found["unlinked"].time_us == 2.7e15
    with pytest.raises(TooLarge, match="add up to 114 years"):  # 3.6e18 ns of 3.156e16 a year
        timeline_from_events(several(4))


def test_the_buckets_agree_with_the_figures_of_the_rank() -> None:
    rank = analyze(timeline_from_events([kernel(0, 100), kernel(60, 10), kernel(None, 1)])).document.ranks[0]
    kept = [rank.buckets[name] for name in ("attributed", "unattributed", "unlinked") if name in rank.buckets]
    assert sum(b.events for b in kept) == rank.devices["0"].n_gpu_events
    assert sum(b.kernel_time_us for b in kept) == rank.devices["0"].kernel_sum_us
    assert {n: b.events for n, b in rank.buckets.items() if n in rank.invalid_events} == rank.invalid_events


# -- any events at all --------------------------------------------------------------------------------

numbers = st.one_of(
    st.integers(-5, 10**6),
    st.decimals(0, 10**6, places=3).map(float),
    st.sampled_from([0, None, True, "12.5", " 7 ", "x", "NaN", "1e3", -0.5, 1e16, []]),
)
times = numbers | st.integers(1_764_500_000_000_000, 1_764_500_000_001_000)
args = st.fixed_dictionaries(
    {},
    optional={
        "stream": st.integers(0, 2),
        "device": st.integers(0, 1),
        "correlation": st.integers(0, 5),
        "graph node id": st.integers(0, 1),
    },
)
rows = st.fixed_dictionaries(
    {
        "ph": st.sampled_from(["X", "X", "X", "i"]),
        "cat": st.sampled_from(
            ["kernel", "Kernel", "gpu_memcpy", "gpu_memset", "Memcpy", "memset", "gpu_user_annotation",
             "cuda_runtime", "cpu_op", "Runtime", "cuda_sync", "ac2g"]
        ),
        "name": st.sampled_from(["a", "ncclDevKernel_AllReduce", "cudaLaunchKernel"]),
        "pid": st.integers(0, 1),
        "tid": st.integers(0, 1),
        "ts": times,
        "args": args,
    },
    optional={"dur": numbers},
)  # fmt: skip


@given(st.lists(rows, min_size=1, max_size=30))
def test_whatever_the_events_the_buckets_add_up(events: list[dict[str, Any]]) -> None:
    text = json.dumps({"traceEvents": events})
    assert sums(of(timeline_from_events(events))) == recount(json.loads(text, parse_float=Decimal))
