"""A recording straight from its JSON, with plain arithmetic in whole ns: what the walk-throughs quote.

Nothing of rooflight is used, so that a number that both find is found twice.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

Span = tuple[int, int]
_GPU = frozenset({"kernel", "gpu_memcpy", "gpu_memset"})
#: What the first profilers called them.
_CATS = {
    "Kernel": "kernel",
    "Memcpy": "gpu_memcpy",
    "Memset": "gpu_memset",
    "Operator": "cpu_op",
    "Runtime": "cuda_runtime",
}
_CALLS = frozenset({"cuda_runtime", "cuda_driver"})
_COMMUNICATION = ("nccl", "rccl")
#: Calls in which the host waits for the device.
_SYNC = frozenset({"hipMemcpyWithStream", "aten::item", "aten::_local_scalar_dense", "cudaDeviceSynchronize",
                   "hipDeviceSynchronize", "cudaStreamSynchronize"})  # fmt: skip
#: A queued kernel follows within this; else something else held it up.
_QUEUED_NS = 5000


@dataclass(frozen=True)
class Row:
    """A row with a duration."""

    name: str
    cat: str
    start: int
    end: int
    thread: Any
    args: dict[str, Any]

    @property
    def dur(self) -> int:
        return self.end - self.start

    @property
    def correlation(self) -> Any:
        return self.args.get("correlation")


@dataclass(frozen=True)
class Raw:
    """The rows of a file, in order of their start."""

    rows: list[Row]

    @property
    def gpu(self) -> list[Row]:
        return [r for r in self.rows if r.cat in _GPU]

    @property
    def kernels(self) -> list[Row]:
        return [r for r in self.rows if r.cat == "kernel"]

    @property
    def collectives(self) -> list[Row]:
        return [k for k in self.kernels if k.name.startswith(_COMMUNICATION)]

    @property
    def steps(self) -> list[Row]:
        marks = ("user_annotation", "cpu_op")
        return [r for r in self.rows if r.cat in marks and r.name.startswith("ProfilerStep#")]

    @property
    def launches(self) -> dict[Any, Row]:
        return {r.correlation: r for r in self.rows if r.cat in _CALLS and r.correlation}

    def named(self, part: str) -> list[Row]:
        """The kernels whose name contains ``part``."""
        return [k for k in self.kernels if part in k.name]


def load(path: Path) -> Raw:
    """The complete rows of a Kineto trace, times as whole nanoseconds."""
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    events = json.loads(text.decode("utf-8", "surrogateescape"), parse_float=Decimal, strict=False)[
        "traceEvents"
    ]
    rows = [_row(e) for e in events if e.get("ph") == "X" and "ts" in e]
    return Raw(sorted(rows, key=lambda r: (r.start, -r.end)))


def _row(e: dict[str, Any]) -> Row:
    start, dur = round(Decimal(e["ts"]) * 1000), round(Decimal(e.get("dur", 0)) * 1000)
    cat = e.get("cat", "")
    return Row(e["name"], _CATS.get(cat, cat), start, start + dur, (e["pid"], e["tid"]), e.get("args", {}))


def spans(rows: Iterable[Row]) -> list[Span]:
    return [(r.start, r.end) for r in rows]


def merged(found: Iterable[Span]) -> list[Span]:
    """The union, as intervals that do not touch."""
    union: list[Span] = []
    for a, b in sorted(s for s in found if s[1] > s[0]):
        if union and a <= union[-1][1]:
            union[-1] = union[-1][0], max(b, union[-1][1])
        else:
            union.append((a, b))
    return union


def measure(found: Iterable[Span]) -> int:
    return sum(b - a for a, b in merged(found))


def within(found: Iterable[Span], around: Span) -> list[Span]:
    """The parts of the intervals that lie in ``around``."""
    cut = ((max(a, around[0]), min(b, around[1])) for a, b in found)
    return [s for s in cut if s[1] > s[0]]


def common(one: Iterable[Span], other: Iterable[Span]) -> int:
    """The measure of what both cover."""
    a, b = merged(one), merged(other)
    return measure(a) + measure(b) - measure([*a, *b])


def busy_in(raw: Raw, step: Row) -> int:
    """How long the device works within a step."""
    return measure(within(spans(raw.gpu), (step.start, step.end)))


def idle_causes(raw: Raw, step: Row) -> Counter[str]:
    """The idle time of a step on one stream by what the host did, up to the launch of what comes next; from
    there on it is ``launch``.  What was launched before the gap and comes late is a ``dependency``."""
    launches, gpu = raw.launches, [g for g in raw.gpu if g.dur]
    host = [
        r for r in raw.rows if r.thread == step.thread and r.cat in {"cpu_op", "user_annotation", *_CALLS}
    ]
    opened = [r for r in host if not r.name.startswith("ProfilerStep#")]
    waiting = merged(spans(r for r in opened if r.name in _SYNC))
    inside = merged(spans(opened))
    found: Counter[str] = Counter()
    for gap, follower in _gaps(gpu):
        cut = within([gap], (step.start, step.end))
        if not cut:
            continue
        launch = launches.get(follower.correlation) if follower else None
        begin, end = cut[0]
        if launch and launch.start < gap[0]:
            found["launch" if gap[1] - gap[0] < _QUEUED_NS else "dependency"] += end - begin
            continue
        turn = max(begin, min(end, launch.start)) if launch else end
        before = [(begin, turn)]
        found["launch"] += end - turn
        found["sync"] += common(before, waiting)
        found["dispatch"] += common(before, inside) - common(before, waiting)
        found["host"] += (turn - begin) - common(before, inside)
    return found


def waited(raw: Raw, step: Row, name: str) -> int:
    """How long, within a step, the one stream of the device waits for a launch that is still to come, while a
    call whose name begins so is open on the host."""
    launches, during = raw.launches, spans(r for r in raw.rows if r.name.startswith(name))
    found = 0
    for (begin, end), follower in _gaps([g for g in raw.gpu if g.dur]):
        launch = launches.get(follower.correlation) if follower else None
        if launch is None or launch.start >= begin:
            turn = min(end, launch.start) if launch else end
            found += common(within([(begin, turn)], (step.start, step.end)), during)
    return found


def _gaps(gpu: list[Row]) -> Iterable[tuple[Span, Row | None]]:
    end = -(1 << 62)
    for row in gpu:
        if row.start > end:
            yield (end, row.start), row
        end = max(end, row.end)
    yield (end, 1 << 62), None


def op_of(raw: Raw, kernel: Row) -> Row | None:
    """The innermost op with recorded dims that encloses the launch of a kernel."""
    launch = raw.launches.get(kernel.correlation)
    if launch is None:
        return None
    around = [
        r for r in raw.rows
        if r.cat == "cpu_op" and r.thread == launch.thread and r.start <= launch.start < r.end
        and r.args.get("Input Dims")
    ]  # fmt: skip
    return max(around, key=lambda r: (r.start, -r.end), default=None)
