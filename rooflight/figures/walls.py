"""The wall times of a rank: the mean of its steps, or the whole recording where there are none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rooflight.protocol import KERNEL_PARTS, PARTS, CpuStep, Document, Parts, Rank, Step

#: From what the device did not do down to its work, as a waterfall falls.
WATERFALL = (
    "input", "host", "sync", "dispatch", "launch", "dependency", "unknown_idle", "communication", "copy",
    "latency", "unknown", "memory", "compute",
)  # fmt: skip
#: Of the kernel time: the attainable time of work of unknown bound is its own time, and says nothing.
_ALL = 0.995


@dataclass(frozen=True, slots=True)
class Walls:
    """``parts`` are µs, means over the steps that have some; ``whole`` says that there are no steps,
    ``inferred`` that nobody marked them, ``on_cpu`` that the host CPU is the device (DEFINITIONS §20)."""

    parts: Parts | None
    attainable_us: float | None
    steps: Sequence[Step | CpuStep]
    whole: bool
    inferred: bool
    on_cpu: bool

    @property
    def wall_us(self) -> float:
        return total(self.parts, PARTS)

    @property
    def told_attainable_us(self) -> float | None:
        """The attainable time; ``None`` where practically no kernel has a known bound."""
        kernel = total(self.parts, KERNEL_PARTS)
        unknown = self.parts.unknown if self.parts else 0.0
        return None if not kernel or unknown > _ALL * kernel else self.attainable_us


def walls(rank: Rank) -> Walls:
    """The walls of a rank; those of the CPU where no GPU worked."""
    on_cpu = rank.cpu is not None and not rank.devices
    marked = rank.steps or rank.inferred_steps
    steps: Sequence[Step | CpuStep] = rank.cpu.steps if on_cpu and rank.cpu else marked
    return Walls(
        parts=mean_parts(s.parts_us for s in steps) or _whole(rank, on_cpu=on_cpu),
        attainable_us=mean([s.attainable_us for s in steps]),
        steps=steps,
        whole=not any(s.parts_us for s in steps),
        inferred=bool(steps) and steps is rank.inferred_steps,
        on_cpu=on_cpu,
    )


def rank_of(document: Document, number: int | None) -> Rank:
    """The rank of this number, the first when ``None``; :class:`KeyError` when there is none."""
    found = next((r for r in document.ranks if number in (None, r.rank)), None)
    if found is None:
        raise KeyError(
            "the document holds no rank" if number is None else f"rank {number} is not in this document"
        )
    return found


def mean_parts(parts: Iterable[Parts | None]) -> Parts | None:
    """Mean of each part over the steps that have parts; ``None`` when none has."""
    known = [p for p in parts if p is not None]
    if not known:
        return None
    return Parts(**{name: sum(getattr(p, name) for p in known) / len(known) for name in PARTS})


def mean(values: Sequence[float | None]) -> float | None:
    """The mean of the known ones; ``None`` when none is."""
    known = [v for v in values if v is not None]
    return sum(known) / len(known) if known else None


def total(parts: Parts | None, names: Iterable[str]) -> float:
    """Time of these parts together, in µs."""
    return float(sum(getattr(parts, p) for p in names)) if parts else 0.0


def _whole(rank: Rank, *, on_cpu: bool) -> Parts | None:
    if on_cpu and rank.cpu:
        return rank.cpu.parts_us
    return rank.parts_us.get(rank.headline or "") or next(iter(rank.parts_us.values()), None)
