"""Device memory that is asked of the driver within the steps."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import numpy as np

from rooflight.attribution.intervals import intersection, measure, union
from rooflight.findings.evidence import amount
from rooflight.findings.facts import Facts
from rooflight.findings.model import Found, Seen
from rooflight.findings.registry import rule
from rooflight.protocol import IDLE_PARTS
from rooflight.trace.tables import I64, HostKind, among

#: What is ordered on a stream (cudaMallocAsync) waits for nothing.
_CALL = re.compile(
    r"(cuda|hip)(Malloc|Free|MallocManaged|MallocHost|FreeHost|HostAlloc|HostMalloc|HostFree)"
    r"|cuMem(Alloc|Free|AllocManaged|Create|Map|Unmap|Release|SetAccess|HostAlloc|FreeHost)(_v\d)?",
    re.ASCII,
)
_SHOWN = 3


@rule(
    "allocations",
    "Memory is asked of the driver within the steps",
    regime="host",
    why="cudaMalloc takes the driver's lock and some hundred microseconds, cudaFree waits until the "
    "device is done; nothing is launched meanwhile.  torch's allocator keeps what it has: a call in a "
    "later step means that no block of the size was left, or that all were given back to find room.",
    fix="Equal sizes in all steps (pad or bucket the lengths), "
    "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True where sizes differ; no torch.cuda.empty_cache() in "
    "the loop; a smaller batch where memory is full; pinned buffers made once.",
    false_alarms="The first step of a program fills the allocator's cache: record a window after it.",
)
def allocations(facts: Facts) -> Iterator[Found]:
    """Idle time of the device while cudaMalloc, cudaFree or their kin are open within marked steps."""
    rows = _calls(facts)
    if not facts.spans or not rows.size:
        return
    host, names = facts.timeline.host, facts.timeline.names
    when = intersection(union(host.start[rows], host.end[rows]), facts.idle(*IDLE_PARTS))
    counts = Counter(names[i] for i in host.name[rows].tolist())
    listed = ", ".join(f"{name}: {facts.times(n)}" for name, n in counts.most_common(_SHOWN))
    yield Found.over(
        when,
        (Seen(f"{amount(facts, when)}, the device waits meanwhile; {listed}"),),
        float(measure(when)),
        "the allocator has all memory before the first of these steps",
    )


def _calls(facts: Facts) -> I64:
    """The calls that begin in the counted time."""
    host = facts.timeline.host
    wanted = [i for i, name in enumerate(facts.timeline.names) if _CALL.fullmatch(name)]
    rows = np.flatnonzero(among(host.name, np.array(wanted, np.int64)))
    rows = rows[(host.kind[rows] == HostKind.RUNTIME) | (host.kind[rows] == HostKind.DRIVER)]
    found: I64 = rows[facts.counted_instants(host.start[rows])]
    return found
