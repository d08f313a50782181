"""What of a document can be compared: one device of each rank, its steps and kernel groups, in whole ns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rooflight.errors import Malformed, Refused
from rooflight.protocol import IDLE_PARTS, PARTS, Cpu, CpuStep, Document, Kernel, Parts, Rank, Roofs, Step
from rooflight.units import NS_PER_US

#: 95 years, as readers have it: longer than any recording, and far from where 64 bits turn around.
_MAX_US = 3e15
#: Parts that kernel groups make; the others are idle.
WORK_PARTS = tuple(p for p in PARTS if p not in IDLE_PARTS)


@dataclass(frozen=True, slots=True)
class StepTime:
    """One step: ``key`` is its number and which one of that number it is, ``parts`` its wall time in ns."""

    key: tuple[int, int]
    parts: dict[str, int]
    attainable_ns: int | None

    @property
    def wall_ns(self) -> int:
        return sum(self.parts.values())


@dataclass(frozen=True, slots=True)
class Recording:
    """One rank on its headline device: its steps, the parts of the whole in ns, its kernel rows."""

    rank: Rank
    device: str
    name: str | None
    roofs: Roofs | None
    on_cpu: bool
    inferred: bool
    steps: tuple[StepTime, ...]
    whole: dict[str, int]
    rows: tuple[Kernel, ...]


def recordings(document: Document, which: str) -> list[Recording]:
    """The ranks that did work on a GPU, or where none did those with a CPU; ``which`` names the run in words.

    Raises :class:`~rooflight.errors.Refused` when there is none.
    """
    on_gpu = [_on_gpu(r) for r in document.ranks if r.parts_us]
    found = on_gpu or [_on_cpu(r, r.cpu) for r in document.ranks if r.cpu is not None]
    if not found:
        raise Refused(
            f"{which} says nothing of where its time went",
            where=document.source,
            hint="compare what `rooflight analyze` made of traces",
        )
    return found


def ns(us: float) -> int:
    """The nanoseconds of a time with three decimals, exactly."""
    if not 0 <= us <= _MAX_US:
        raise Malformed(f"not a time: {us} µs", hint="send the JSON of `rooflight analyze`")
    return round(us * NS_PER_US)


def _on_gpu(rank: Rank) -> Recording:
    rows = rank.steps or rank.inferred_steps
    device = next((s.device for s in rows if s.device is not None), None) or _busiest(rank)
    figures = rank.devices.get(device)
    return Recording(
        rank=rank,
        device=device,
        name=figures.name if figures else None,
        roofs=rank.roofs.get(device),
        on_cpu=False,
        inferred=not rank.steps and bool(rank.inferred_steps),
        steps=_steps(rows),
        whole=_parts(rank.parts_us[device]) if device in rank.parts_us else dict.fromkeys(PARTS, 0),
        rows=tuple(k for k in rank.kernels if k.device == device),
    )


def _on_cpu(rank: Rank, cpu: Cpu) -> Recording:
    return Recording(
        rank=rank,
        device="cpu",
        name=cpu.name or cpu.roof.name,
        roofs=cpu.roof,
        on_cpu=True,
        inferred=False,
        steps=_steps(cpu.steps),
        whole=_parts(cpu.parts_us) if cpu.parts_us else dict.fromkeys(PARTS, 0),
        rows=tuple(cpu.ops),
    )


def _busiest(rank: Rank) -> str:
    """The device with most kernel time, the lowest of several: that of the headline."""
    time = {key: rank.devices[key].kernel_sum_us if key in rank.devices else 0.0 for key in rank.parts_us}
    return min(time, key=lambda key: (-time[key], len(key), key))


def _steps(rows: Iterable[Step | CpuStep]) -> tuple[StepTime, ...]:
    seen: Counter[int] = Counter()
    found = []
    for s in rows:
        if s.parts_us is not None:
            attainable = None if s.attainable_us is None else ns(s.attainable_us)
            found.append(StepTime((s.n, seen[s.n]), _parts(s.parts_us), attainable))
            seen[s.n] += 1
    return tuple(found)


def _parts(parts: Parts) -> dict[str, int]:
    return {p: ns(getattr(parts, p)) for p in PARTS}


def part_of(row: Kernel) -> str:
    """The part that a row's own time counts for."""
    if row.kind not in ("kernel", "op"):
        return "copy"
    return row.regime if row.regime in WORK_PARTS else "unknown"


def all_have_steps(several: Sequence[Recording]) -> bool:
    return all(r.steps for r in several)
