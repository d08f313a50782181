"""What must change nothing changes nothing: the analysis of any recording, however it was written down.

The recordings are drawn on a grid of a few microseconds, so that events often start and end together.
"""

from __future__ import annotations

import gzip
import itertools
import json
import random
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rooflight import analyze
from rooflight.protocol import KERNEL_PARTS, PARTS, Parts, Rank
from rooflight.readers import events as reader
from rooflight.readers import kineto
from rooflight.readers.source import Unpacker

Event = dict[str, Any]
Row = dict[str, Any]

# -- recordings ---------------------------------------------------------------------------------------

ticks = st.integers(0, 60)
lengths = st.integers(0, 25)
OP = {
    "Input Dims": [[64, 32], [32, 16]],
    "Input type": ["float", "float"],
    "Input Strides": [[32, 1], [16, 1]],
    "Concrete Inputs": ["", ""],
}


def spans(**fields: Any) -> st.SearchStrategy[Event]:
    """Events with these fields; a strategy among them is drawn from."""
    drawn = {k: v if isinstance(v, st.SearchStrategy) else st.just(v) for k, v in fields.items()}
    return st.fixed_dictionaries({"ph": st.just("X"), **drawn, "ts": ticks, "dur": lengths})


def args(**fields: Any) -> st.SearchStrategy[dict[str, Any]]:
    drawn = {k: v if isinstance(v, st.SearchStrategy) else st.just(v) for k, v in fields.items()}
    return st.fixed_dictionaries(drawn)


threads = st.integers(1, 2)
streams = st.integers(7, 9)
places = args(device=st.integers(0, 1), context=1, stream=streams, correlation=st.integers(0, 12))
launched = st.tuples(
    places,
    st.sampled_from(
        [
            {},
            {"grid": [8, 1, 1], "block": [128, 1, 1], "registers per thread": 32},
            {"graph node id": 3},
            {"Collective name": "allreduce", "In msg nelems": 1024, "dtype": "Float", "Group size": 2},
        ]
    ),
).map(lambda both: {**both[0], **both[1]})
ops = spans(
    cat="cpu_op",
    name=st.sampled_from(["aten::mm", "aten::add", "autograd::x"]),
    pid=100,
    tid=threads,
    args=st.sampled_from([{}, OP, {"Sequence number": 3}, {"Sequence number": 3, "Fwd thread id": 1}]),
)
calls = spans(
    cat="cuda_runtime",
    name=st.sampled_from(["cudaLaunchKernel", "cudaStreamSynchronize"]),
    pid=100,
    tid=threads,
    args=args(correlation=st.integers(0, 12)),
)
MARKS = ["ProfilerStep#1", "ProfilerStep#2", "enumerate(DataLoader)#next", "Optimizer.step#SGD.step"]
marks = spans(cat="user_annotation", name=st.sampled_from(MARKS), pid=100, tid=1, args=st.just({}))
FRAMES = ["nn.Module: A_0", "f.py(1): f"]
frames = spans(cat="python_function", name=st.sampled_from(FRAMES), pid=100, tid=threads, args=st.just({}))
NAMES = [
    "ampere_sgemm_128x64_tn",
    "void vectorized_elementwise_kernel<4, F>",
    "ncclDevKernel_AllReduce_Sum_f32",
]
kernels = spans(cat="kernel", name=st.sampled_from(NAMES), pid=st.integers(0, 1), tid=streams, args=launched)
copies = spans(
    cat=st.sampled_from(["gpu_memcpy", "gpu_memset"]), name="Memcpy HtoD", pid=0, tid=7, args=places
)
singles = st.one_of(kernels, calls, ops, copies, marks, frames)


@st.composite
def launches(draw: st.DrawFn) -> list[Event]:
    """An op, the call inside it and the kernel that it launches, with a number that only they have."""
    op, call, kernel = draw(ops), draw(calls), draw(kernels)
    op["dur"] += 3
    call = {**call, "tid": op["tid"], "ts": op["ts"] + 1, "name": "cudaLaunchKernel"}
    number = draw(st.integers(100, 10**6))
    call["args"], kernel["args"] = {"correlation": number}, {**kernel["args"], "correlation": number}
    return [op, call, {**kernel, "ts": call["ts"] + kernel["ts"] % 7}]


HOST = ("cpu_op", "cuda_runtime", "user_annotation", "python_function")


def apart(units: list[list[Event]]) -> list[Event]:
    """All events.  Of calls that share start and end only the order in the file tells which is inside: so
    no two rows of the host start at the same nanosecond.  Events of the device may."""
    events = [event for unit in units for event in unit]
    return [
        {**event, "ts": event["ts"] + i / 1000} if event["cat"] in HOST else event
        for i, event in enumerate(events)
    ]


recordings = st.lists(launches() | singles.map(lambda event: [event]), min_size=1, max_size=25).map(apart)
META: dict[str, Any] = {
    "schemaVersion": 1,
    "deviceProperties": [
        {"id": i, "name": "NVIDIA A100-SXM4-80GB", "numSms": 108, "computeMajor": 8, "computeMinor": 0}
        for i in (0, 1)
    ],
    "distributedInfo": {"rank": 0, "world_size": 1, "pg_config": [{"a": 1}, {"b": []}]},
    "displayTimeUnit": "ms",
}


def written(events: list[Event]) -> bytes:
    return spaced({**META, "traceEvents": events}, lambda: "").encode()


def analysis(*pieces: bytes) -> Row:
    """The JSON of a recording whose bytes come in these pieces."""
    found: Row = msgspec.to_builtins(analyze(kineto.read(pieces, "t.json")).document)
    return found


# -- properties ---------------------------------------------------------------------------------------


@given(recordings, st.randoms())
def test_the_order_of_the_events_changes_nothing(events: list[Event], rng: random.Random) -> None:
    other = rng.sample(events, len(events))
    assert analysis(written(other)) == analysis(written(events))


@given(recordings, st.sampled_from([-50, 1, 10**6, 10**9 + 1, 1_764_500_000_000_000]))
def test_a_shift_in_time_changes_nothing_but_the_time(events: list[Event], by: int) -> None:
    """An event at 0 is one without a time when the rest are not, so that all begin later."""
    before, after = (analysis(written(shifted(events, 100 + d))) for d in (0, by))
    assert timeless(after, by) == timeless(before, 0)


def shifted(events: list[Event], by: int) -> list[Event]:
    """In decimals: near 2e15 us a binary number has no nanoseconds."""
    return [{**e, "ts": Decimal(repr(e["ts"])) + by} for e in events]


def timeless(document: Row, by: int) -> Row:
    """The analysis with its instants set back; those in us are floats, which far out are not exact."""
    for rank in document["ranks"]:
        del rank["clock_base_ns"]  # far out, the recording's clock is taken for the wall's
        if rank["first_kernel_wall_ns"] is not None:
            rank["first_kernel_wall_ns"] = str(int(rank["first_kernel_wall_ns"]) - by * 1000)
        steps = [*rank["steps"], *rank["inferred_steps"], *(rank["cpu"]["steps"] if rank["cpu"] else ())]
        for step in steps:
            start = step.pop("start_us")
            # Within 1 us, since a binary number of 2e15 is good to a quarter.
            assert start is None or 99 <= start - by <= 200
        for gap in rank["idle"]:
            start = gap.pop("longest_start_us")
            assert start is None or 99 <= start - by <= 1000
    return document


@settings(max_examples=50)
@given(recordings, st.integers(1, 3000), st.integers(1, 500))
def test_pieces_and_chunks_of_any_size_change_nothing(events: list[Event], chunk: int, piece: int) -> None:
    text = written(events)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "CHUNK", chunk)
        cut = analysis(*(text[i : i + piece] for i in range(0, len(text), piece)))
    assert cut == analysis(text)


@settings(max_examples=50)
@given(recordings, st.lists(st.integers(0, 10**6), max_size=5), st.integers(1, 400))
def test_members_of_gzip_at_any_place_change_nothing(events: list[Event], at: list[int], fed: int) -> None:
    text = written(events)
    cuts = [0, *sorted(a % len(text) for a in at), len(text)]
    packed = b"".join(gzip.compress(text[a:b]) for a, b in itertools.pairwise(cuts))
    assert analysis(*unpacked(packed, fed)) == analysis(text)


def unpacked(packed: bytes, fed: int) -> Iterator[bytes]:
    unpacker = Unpacker()
    for i in range(0, len(packed), fed):
        yield from unpacker.feed(packed[i : i + fed])
    yield from unpacker.finish()


@given(recordings, st.randoms())
def test_the_order_of_keys_changes_nothing(events: list[Event], rng: random.Random) -> None:
    def mixed(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: mixed(value[k]) for k in rng.sample(sorted(value), len(value))}
        return [mixed(v) for v in value] if isinstance(value, list) else value

    text = json.dumps(mixed({**META, "traceEvents": events})).encode()
    assert analysis(text) == analysis(written(events))


BLANKS = ["", "", "", " ", "\n", "\t \r\n", " " * 100]


@settings(max_examples=50)
@given(recordings, st.randoms(), st.integers(1, 3000))
def test_white_space_anywhere_changes_nothing(events: list[Event], rng: random.Random, chunk: int) -> None:
    text = spaced({**META, "traceEvents": events}, lambda: rng.choice(BLANKS)).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "CHUNK", chunk)
        wide = analysis(text)
    assert wide == analysis(written(events))


def spaced(value: Any, blank: Callable[[], str]) -> str:
    """JSON with blanks wherever the grammar takes them."""
    if isinstance(value, dict):
        pairs = (f"{blank()}{json.dumps(k)}{blank()}:{spaced(v, blank)}" for k, v in value.items())
        body = "{" + (",".join(pairs) or blank()) + "}"
    elif isinstance(value, list):
        body = "[" + (",".join(spaced(v, blank) for v in value) or blank()) + "]"
    else:
        body = str(value) if isinstance(value, Decimal) else json.dumps(value)
    return blank() + body + blank()


def test_the_words_of_numbers_change_nothing() -> None:
    """1.5, "1.5", 1.500 and 15e-1 are one time."""
    event = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1.5, "dur": 1.5,
             "args": {"stream": 7}}  # fmt: skip
    plain = written([event])
    for word in (b'"1.5"', b"1.500", b"15e-1", b'" 1.5"'):
        assert analysis(plain.replace(b"1.5", word)) == analysis(plain)


def a_kernel(ts: float, grid: int, correlation: int = -1) -> Event:
    place = {"device": 0, "stream": 7, "grid": [grid, 1, 1], "block": [256, 1, 1]}
    row = {"ph": "X", "cat": "kernel", "name": NAMES[0], "pid": 0, "tid": 7, "ts": ts, "dur": 20.0}
    return {**row, "args": {**place, "correlation": correlation} if correlation >= 0 else place}


def test_the_earliest_launch_speaks_for_its_group_wherever_it_stands_in_the_file() -> None:
    """8e6 FLOPs in 2 x 20 us are 0.2 of 19.5 TFLOP/s: the row is latency.  The launch at 5 us fills the
    108 SMs with 432 blocks, that at 50 does not; the earlier one tells why."""
    op = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 100, "tid": 1, "ts": 0.0, "dur": 90.0,
          "args": {**OP, "Input Dims": [[200, 100], [100, 200]]}}  # fmt: skip
    calls = [
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 100, "tid": 1, "ts": ts,
         "dur": 1.0, "args": {"correlation": n}}
        for n, ts in ((1, 1.0), (2, 2.0))
    ]  # fmt: skip
    early, late = a_kernel(5.0, 432, 1), a_kernel(50.0, 1, 2)
    found = [analysis(written([op, *calls, *both])) for both in ([early, late], [late, early])]
    [row] = found[0]["ranks"][0]["kernels"]
    assert (row["count"], row["regime"], row["reason"]) == (2, "latency", "inefficient")
    assert found[0] == found[1]


def test_of_threads_that_launched_as_much_the_lower_one_counts_whichever_came_first() -> None:
    """Kernels run in [10, 30) and [60, 80); the second is launched at 55 by thread 1, which does nothing
    before.  Without steps the thread of most launches tells why: both have one, and thread 1 is idle where
    thread 2 is not.  So 25 us are the host's, and 5 the launch's."""
    calls = [
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 100, "tid": tid, "ts": ts,
         "dur": 1.0, "args": {"correlation": tid}}
        for tid, ts in ((1, 55.0), (2, 3.0))
    ]  # fmt: skip
    work = [a_kernel(10.0, 8, 2), a_kernel(60.0, 8, 1)]
    busy = {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 100, "tid": 2, "ts": 30.0, "dur": 20.0}
    for events in ([*calls, *work, busy], [busy, *calls[::-1], *work]):
        parts = analysis(written(events))["ranks"][0]["parts_us"]["0"]
        assert (parts["host"], parts["dispatch"], parts["launch"]) == (25, 0, 5)


# -- sums ---------------------------------------------------------------------------------------------


def ns(us: float) -> Decimal:
    return (Decimal(repr(us)) * 1000).to_integral_exact()


def total(parts: Parts) -> Decimal:
    return sum((ns(getattr(parts, p)) for p in PARTS), Decimal(0))


@given(recordings)
def test_parts_sum_to_the_wall_and_what_is_exposed_is_a_part(events: list[Event]) -> None:
    [rank] = analyze(kineto.read([written(events)], "t.json")).document.ranks
    for step in rank.steps:
        for parts in [*step.devices.values(), *([step.parts_us] if step.parts_us else [])]:
            assert total(parts) == ns(step.step_time_us)
    for cpu_step in rank.cpu.steps if rank.cpu else ():
        assert total(cpu_step.parts_us) == ns(cpu_step.step_time_us)
    for d in rank.devices.values():
        assert 0 <= d.exposed_comm_us <= d.comm_us <= d.busy_us <= d.span_us
        assert 0 <= d.exposed_mem_us <= d.mem_us <= d.busy_us
        assert ns(d.compute_us) + ns(d.exposed_comm_us) + ns(d.exposed_mem_us) + ns(d.idle_us) == ns(
            d.span_us
        )
    assert_tables_sum(rank)


def assert_tables_sum(rank: Rank) -> None:
    """Rows, devices, attribution and bounds speak of the same time."""
    rows = [k for k in rank.kernels if k.kind == "kernel"]
    sums = [ns(d.kernel_sum_us) for d in rank.devices.values()]
    assert sum(ns(k.time_us) for k in rows) == sum(sums)
    assert sum(ns(a.time_us) for a in rank.attribution) == sum(ns(k.time_us) for k in rank.kernels)
    for step in rank.steps:
        if step.parts_us is not None and step.bound_us is not None and step.attainable_us is not None:
            kernel_time = sum(getattr(step.parts_us, p) for p in KERNEL_PARTS)
            assert (
                0 <= step.bound_us <= step.attainable_us <= kernel_time + 0.0005 <= step.step_time_us + 0.001
            )
