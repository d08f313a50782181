"""What holds of every analysis, whatever was recorded: sums that are exact and orders that never turn.

``broken`` names each identity that a document breaks; a test asserts that there is none.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import msgspec

from rooflight.protocol import KERNEL_PARTS, PARTS, Cpu, CpuStep, Document, Kernel, Parts, Rank, Step, encode

#: Parts that rows of the kernel table make.
WORK = (*KERNEL_PARTS, "communication", "copy")


def ns(us: float) -> int:
    return round(us * 1000)


def total(parts: Parts) -> int:
    return sum(ns(getattr(parts, p)) for p in PARTS)


def of(parts: Parts, *names: str) -> int:
    return sum(ns(getattr(parts, p)) for p in names)


def broken(document: Document) -> list[str]:
    """Every identity that the document breaks, in words."""
    found = [f"rank {r.rank}: {words}" for r in document.ranks for words in _of_rank(r)]
    return [*found, *_strict(msgspec.json.decode(encode(document)), "")]


def _of_rank(r: Rank) -> Iterator[str]:
    steps = [*r.steps, *r.inferred_steps]
    for s in steps:
        yield from _of_step(s)
    yield from _of_whole(r)
    for device in r.parts_us:
        yield from _of_rows([k for k in r.kernels if k.device == device], r.parts_us[device], steps, device)
    yield from _of_buckets(r)
    yield from _of_findings(r, steps)
    yield from _withheld(r, steps)
    if r.cpu is not None:
        yield from _of_cpu(r.cpu)
    shares = [r.coverage.measured, r.coverage.modelled, r.coverage.inferred, r.coverage.unknown]
    # Four figures with two decimals each; all are 0 where there is no kernel time.
    if any(shares) and abs(sum(shares) - 100) > 0.02:
        yield f"coverage {shares} is not 100"


def _of_step(s: Step | CpuStep) -> Iterator[str]:
    if s.parts_us is None:
        return
    wall = ns(s.step_time_us)
    others = s.devices if isinstance(s, Step) else {}
    for device, parts in {"headline": s.parts_us, **others}.items():
        if total(parts) != wall:
            yield f"step {s.n} {device}: parts are {total(parts)} ns of {wall}"
        if min(getattr(parts, p) for p in PARTS) < 0:
            yield f"step {s.n} {device}: a part below 0"
    kernel = of(s.parts_us, *KERNEL_PARTS)
    if s.bound_us is None or s.attainable_us is None:
        yield f"step {s.n}: parts, and no bound"
    elif not 0 <= ns(s.bound_us) <= ns(s.attainable_us) <= kernel <= wall:
        yield f"step {s.n}: {s.bound_us} <= {s.attainable_us} <= {kernel} <= {wall} does not hold"
    if isinstance(s, Step):
        yield from _split(s)


def _split(s: Step) -> Iterator[str]:
    if s.wait_us is None or s.transfer_us is None or s.parts_us is None:
        return
    if ns(s.wait_us) + ns(s.transfer_us) != of(s.parts_us, "communication"):
        yield f"step {s.n}: wait {s.wait_us} + transfer {s.transfer_us} is not its communication"


def _of_whole(r: Rank) -> Iterator[str]:
    lengths = {total(p) for p in r.parts_us.values()}
    if len(lengths) > 1:
        yield f"devices with recordings of {lengths} ns"
    for key, d in r.devices.items():
        span = ns(d.span_us)
        if ns(d.compute_us) + ns(d.exposed_comm_us) + ns(d.exposed_mem_us) + ns(d.idle_us) != span:
            yield f"device {key}: compute, exposed and idle time are not its span"
        if ns(d.busy_us) + ns(d.idle_us) != span or d.idle_us < 0:
            yield f"device {key}: busy and idle time are not its span"
        parts = r.parts_us[key]
        if of(parts, *KERNEL_PARTS) != ns(d.compute_us):
            yield f"device {key}: kernel parts {of(parts, *KERNEL_PARTS)} are not {d.compute_us}"
        if (of(parts, "communication"), of(parts, "copy")) != (ns(d.exposed_comm_us), ns(d.exposed_mem_us)):
            yield f"device {key}: exposed parts are not those of the device"
        rows = [k for k in r.kernels if k.device == key]
        if sum(k.count for k in rows) != d.n_gpu_events:
            yield f"device {key}: rows count {sum(k.count for k in rows)} of {d.n_gpu_events} events"
        if sum(ns(k.time_us) for k in rows if k.kind == "kernel") != ns(d.kernel_sum_us):
            yield f"device {key}: the rows' time is not its kernel time"


def _of_rows(rows: list[Kernel], whole: Parts, steps: list[Step], device: str) -> Iterator[str]:
    """The rows' own times make the parts, of the recording and of the steps."""
    in_all, in_steps = _by_part(rows)
    if in_all != {p: of(whole, p) for p in WORK}:
        yield f"device {device}: rows {in_all} are not the parts of the recording"
    seen = [p for s in steps if (p := s.parts_us if s.device == device else s.devices.get(device))]
    if seen and in_steps != {p: sum(of(one, p) for one in seen) for p in WORK}:
        yield f"device {device}: rows {in_steps} are not the parts of the steps"


def _by_part(rows: list[Kernel]) -> tuple[dict[str, int], dict[str, int]]:
    in_all: dict[str, int] = dict.fromkeys(WORK, 0)
    in_steps: dict[str, int] = dict.fromkeys(WORK, 0)
    for k in rows:
        in_all[k.regime] += ns(k.exclusive_us or 0)
        in_steps[k.regime] += ns(k.steps_exclusive_us or 0)
    return in_all, in_steps


def _of_buckets(r: Rank) -> Iterator[str]:
    kept = [r.buckets[b] for b in ("attributed", "unattributed", "unlinked") if b in r.buckets]
    events = sum(d.n_gpu_events for d in r.devices.values())
    if sum(b.events for b in kept) != events:
        yield f"buckets hold {sum(b.events for b in kept)} of {events} valid events"
    kernel = sum(ns(d.kernel_sum_us) for d in r.devices.values())
    if sum(ns(b.kernel_time_us) for b in kept) != kernel:
        yield f"buckets hold {sum(b.kernel_time_us for b in kept)} us of {kernel} ns of kernels"
    invalid = {b: x.events for b, x in r.buckets.items() if b in r.invalid_events}
    if invalid != {b: n for b, n in r.invalid_events.items() if n}:
        yield f"buckets {invalid} are not the invalid events {r.invalid_events}"


def _of_findings(r: Rank, steps: list[Step]) -> Iterator[str]:
    """No saving is more than what it is a mean of: the counted steps, else the recording."""
    walls = [ns(s.step_time_us) for s in steps] or [max(map(total, r.parts_us.values()), default=0)]
    for f in r.findings:
        if f.saving_us is not None and not 0 <= ns(f.saving_us) <= sum(walls) / len(walls) + 1:
            yield f"{f.code} saves {f.saving_us} us of {walls}"
        rows = [i for e in f.evidence for i in e.kernels]
        if not all(0 <= i < len(r.kernels) for i in rows):
            yield f"{f.code} points at rows that are not there"
    savings = [ns(f.saving_us) for f in r.findings if f.saving_us is not None]
    together = None if r.findings_total_us is None else ns(r.findings_total_us)
    if (together is None) != (not savings):
        yield f"together {together} ns of {savings}"
    elif together is not None and not max(savings) - 1 <= together <= sum(walls) / len(walls) + 1:
        yield f"savings {savings} make {together} ns together, of {walls}"


def _withheld(r: Rank, steps: list[Step]) -> Iterator[str]:
    if (r.verdict_withheld is None) != (r.grade != "unreliable"):
        yield f"grade {r.grade}, withheld {r.verdict_withheld}"
    if r.verdict_withheld is None:
        return
    told = [r.regime, r.regime_confidence, *(s.regime for s in steps)]
    told += [] if r.cpu is None else [r.cpu.regime, *(s.regime for s in r.cpu.steps)]
    if any(t is not None for t in told):
        yield f"a verdict though withheld: {r.verdict_withheld}"


def _of_cpu(cpu: Cpu) -> Iterator[str]:
    for s in cpu.steps:
        yield from _of_step(s)
    if cpu.parts_us is not None and cpu.wall_us is not None:
        if total(cpu.parts_us) != ns(cpu.wall_us):
            yield f"cpu: parts are {total(cpu.parts_us)} of {cpu.wall_us} us"
        own: dict[str, int] = defaultdict(int)
        for k in cpu.ops:
            own[k.regime] += ns(k.exclusive_us or 0)
        parts = {p: of(cpu.parts_us, p) for p in KERNEL_PARTS}
        if {p: own[p] for p in KERNEL_PARTS} != parts:
            yield f"cpu: ops {dict(own)} are not the parts {parts}"


def _strict(value: Any, where: str) -> Iterator[str]:
    """Times have three decimals, and nothing is NaN, infinite or a negative time."""
    if isinstance(value, dict):
        for key, v in value.items():
            yield from _strict(v, f"{where}.{key}")
    elif isinstance(value, list):
        for v in value:
            yield from _strict(v, where)
    elif isinstance(value, float):
        if not math.isfinite(value):
            yield f"{where} is {value}"
        elif where.rpartition(".")[2].endswith("_us") and round(value, 3) != value:
            yield f"{where} has more than three decimals: {value!r}"
