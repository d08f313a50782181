"""What a screen says first about a rank: step times, mean parts, the verdict in a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rooflight.figures.walls import WATERFALL as WATERFALL
from rooflight.figures.walls import mean, walls
from rooflight.protocol import (
    KERNEL_PARTS,
    PARTS,
    REGIMES,
    CpuStep,
    Document,
    Finding,
    Kernel,
    Parts,
    Rank,
    Step,
)
from rooflight.regimes.advice import WITHHELD, advice, meaning
from rooflight.regimes.steps import GROUPS
from rooflight.units import GIGA, TERA

#: Fewer samples than this have no tail percentiles (DEFINITIONS §16).
MIN_FOR_TAILS = 5
#: Percent of the kernel time.
MOSTLY = 50.0


@dataclass(frozen=True, slots=True)
class StepTimes:
    """Percentiles over the steps, in µs; the tails are ``None`` for fewer than five."""

    n: int
    p50_us: float | None
    p95_us: float | None
    p99_us: float | None


@dataclass(frozen=True, slots=True)
class Summary:
    """One rank at a glance.  Times are µs, means per step (or of the whole recording without steps).

    ``whole`` says that there are no steps, ``inferred`` that nobody marked them; ``on_cpu`` that the host
    CPU is the device (§20).  ``of_device`` names the one of several whose parts these are.  ``mfu_pct`` and
    ``hfu_pct`` are means over the steps in which they are known.
    """

    device: str
    times: StepTimes
    parts: Parts | None
    wall_us: float
    attainable_us: float | None
    regime: str | None
    confidence: str | None
    reason: str
    withheld: bool
    kernels: list[Kernel]
    whole: bool
    inferred: bool
    on_cpu: bool
    steps: Sequence[Step | CpuStep] = ()
    of_device: str = ""
    mfu_pct: float | None = None
    hfu_pct: float | None = None

    @property
    def decimals(self) -> int:
        """Decimals of milliseconds in a column of parts."""
        return 2 if self.wall_us >= 10_000 else 3

    @property
    def unbounded_pct(self) -> float | None:
        """Share of the kernel time whose bound is unknown; ``None`` without kernel time."""
        kernel = sum(getattr(self.parts, p) for p in KERNEL_PARTS) if self.parts else 0.0
        return 100 * self.parts.unknown / kernel if self.parts and kernel else None

    @property
    def attainable_pct(self) -> float | None:
        """Attainable as a share of the wall time; ``None`` where it rests mostly on work of unknown bound,
        which counts in full: such a share would say nothing."""
        if self.attainable_us is None or not self.wall_us or (self.unbounded_pct or 0.0) > MOSTLY:
            return None
        return 100 * self.attainable_us / self.wall_us

    @property
    def unit(self) -> str:
        return "in the recording" if self.whole else f"per {self.step}"

    @property
    def kernel_steps(self) -> int:
        """By how many steps the times of kernel rows are divided to be those of one."""
        # The recording holds more than the steps that were inferred from it.
        return 1 if self.whole or self.inferred else max(1, self.times.n)

    @property
    def step(self) -> str:
        """What a step is called."""
        return "inferred step" if self.inferred else "step"


def summarise(rank: Rank) -> Summary:
    """The summary of a rank; its steps are those of a recording without GPU work where there is none."""
    w = walls(rank)
    on_cpu, on_gpu = w.on_cpu, [x for x in w.steps if isinstance(x, Step)]
    source = rank.cpu if on_cpu and rank.cpu else rank
    kernels = rank.cpu.ops if on_cpu and rank.cpu else rank.kernels
    return Summary(
        device=_device(rank, on_cpu),
        times=step_times([s.step_time_us for s in w.steps]),
        parts=w.parts,
        wall_us=w.wall_us,
        attainable_us=w.attainable_us,
        regime=source.regime,
        confidence=source.regime_confidence,
        reason=rank.verdict_withheld or source.regime_reason or "",
        withheld=rank.verdict_withheld is not None,
        kernels=sorted(kernels, key=lambda k: -k.time_us),
        whole=w.whole,
        inferred=w.inferred,
        on_cpu=on_cpu,
        steps=w.steps,
        of_device=f"device {rank.headline}" if len(rank.devices) > 1 and rank.headline else "",
        mfu_pct=mean([x.mfu for x in on_gpu]),
        hfu_pct=mean([x.hfu for x in on_gpu]),
    )


def step_times(times_us: Sequence[float]) -> StepTimes:
    """Percentiles by linear interpolation."""
    if not times_us:
        return StepTimes(0, None, None, None)
    p50, p95, p99 = (float(v) for v in np.percentile(np.asarray(times_us, dtype=np.float64), (50, 95, 99)))
    tails = (p95, p99) if len(times_us) >= MIN_FOR_TAILS else (None, None)
    return StepTimes(len(times_us), p50, *tails)


def group_us(parts: Parts, regime: str) -> float:
    """Time of the parts that count for a regime."""
    return float(sum(getattr(parts, p) for p in PARTS if GROUPS[p] == regime))


def verdict(summary: Summary) -> str:
    """The sentence that a reader takes away; a withheld verdict gives its reason in the same place."""
    if summary.regime is None:
        return f"No verdict: {summary.reason or 'nothing to judge'}."
    said = f"Bound by {summary.regime}"
    if summary.confidence:
        said += f" ({summary.confidence} confidence)"
    if summary.parts is None or not summary.wall_us or summary.regime not in REGIMES:
        return said + "."
    spent = group_us(summary.parts, summary.regime)
    share = 100 * spent / summary.wall_us
    return (
        f"{said}: {ms(spent)} of {ms(summary.wall_us)} {summary.unit} ({share:.0f} %)"
        f" are {meaning(summary.regime, on_cpu=summary.on_cpu)}."
    )


def first_step(summary: Summary) -> str:
    """What to do first."""
    return WITHHELD if summary.withheld else advice(summary.regime, on_cpu=summary.on_cpu)


def utilisation(summary: Summary) -> str:
    """MFU and HFU in words, as far as they are known."""
    known = (("MFU", summary.mfu_pct), ("HFU", summary.hfu_pct))
    return ", ".join(f"{name} {pct:.1f} %" for name, pct in known if pct is not None)


def share_pct(finding: Finding, summary: Summary) -> float | None:
    """What a finding would save at most, as a share of the wall time; ``None`` where nothing tells."""
    if finding.saving_us is None or not summary.wall_us:
        return None
    return 100 * finding.saving_us / summary.wall_us


def first_sentence(text: str) -> str:
    """As far as the first full stop or semicolon that ends a clause; for a line that has no room for more."""
    ends = [at for at in (text.find(". "), text.find("; ")) if at > 0]
    return f"{text[: min(ends)]}." if ends else text


def missing(document: Document) -> str:
    """Which ranks of the run are not there, in words; "" when all are."""
    if not document.missing_ranks:
        return ""
    ranks = ", ".join(str(r) for r in document.missing_ranks[:16])
    more = len(document.missing_ranks) - 16
    return f"{ranks} and {more} more" if more > 0 else ranks


def rate(tflops: float | None, *, on_cpu: bool, decimals: int = 2) -> str:
    """TFLOP/s as a number in it, or in GFLOP/s for a CPU, whose rates would vanish; a dash when unknown."""
    if tflops is None:
        return "–"
    return f"{tflops * TERA / GIGA:,.1f}" if on_cpu else f"{tflops:,.{decimals}f}"


def title(kernel: Kernel) -> str:
    """The readable name; of an op on the CPU its shapes too, which is all that tells its rows apart."""
    name = kernel.short_name or kernel.name
    return f"{name} {kernel.input_dims}" if kernel.kind == "op" and kernel.input_dims else name


def because(kernel: Kernel) -> str:
    """Why it has its regime, in words, and what kept the launch from filling the device."""
    reason = kernel.reason.replace("_", " ")
    return f"{reason}: {kernel.limiter}" if reason and kernel.limiter else reason


def counted(n: int, thing: str, before: str = "") -> str:
    """``n`` of a thing, in words."""
    return f"{n:,} {before}{thing}{'' if n == 1 else 's'}"


def ms(us: float | None) -> str:
    """µs as milliseconds with sensible precision; a dash when unknown."""
    if us is None:
        return "–"
    value = us / 1000
    return f"{value:,.1f} ms" if value >= 100 else f"{value:.2f} ms" if value >= 1 else f"{value:.3f} ms"


def in_column(us: float, decimals: int) -> str:
    """Milliseconds with the decimals of their column; what would vanish in them is said to be less."""
    least = 10**-decimals
    return f"<{least:.{decimals}f}" if 0 < us / 1000 < least / 2 else f"{us / 1000:,.{decimals}f}"


def _device(rank: Rank, on_cpu: bool) -> str:
    if on_cpu and rank.cpu:
        name = rank.cpu.name or rank.cpu.roof.name or "host CPU"
        return name if "CPU" in name else f"{name} (CPU)"
    names = [d.name or f"unnamed GPU {key}" for key, d in rank.devices.items()]
    distinct = list(dict.fromkeys(names))
    if not distinct:
        return "no device"
    counted = [f"{names.count(n)} × {n}" if names.count(n) > 1 else n for n in distinct]
    return ", ".join(counted)
