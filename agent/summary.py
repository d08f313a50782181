"""An analysed run on one screen."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rooflight.protocol import Cpu, Document, Kernel, Rank, Roofs, StepEnergy
from rooflight.results.energy import energy_in_words
from rooflight.units import GIGA, TERA

ROWS = 3


@dataclass(frozen=True, slots=True)
class Summary:
    """The figures of rank 0, from the CPU's side when no GPU worked.  ``step_us`` are the counted steps;
    ``rows`` the biggest kernels (on a CPU: ops) with totals over ``n_steps``."""

    device: str
    kind: str
    step_us: tuple[float, ...]
    regime: str | None
    confidence: str | None
    reason: str | None
    grade: str
    roofs: Roofs | None
    rows: tuple[Kernel, ...]
    energy: StepEnergy | None = None

    def as_json(self) -> dict[str, Any]:
        """The same for programs; unknown is ``None``."""
        return {
            "device": self.device,
            "kind": self.kind,
            "n_steps": len(self.step_us),
            "step_time_p50_us": _median(self.step_us),
            "regime": self.regime,
            "regime_confidence": self.confidence,
            "regime_reason": self.reason,
            "grade": self.grade,
            "energy_per_step_j": None if self.energy is None else self.energy.per_step_j,
            "power_w": None if self.energy is None else self.energy.power_w,
            "kernels": [
                {
                    "name": row.short_name or row.name,
                    "op": row.op,
                    "input_dims": row.input_dims,
                    "time_us": row.time_us,
                    "share_pct": row.share_pct,
                    "roof_fraction": row.roof_fraction,
                    "regime": row.regime,
                    "reason": row.reason,
                }
                for row in self.rows
            ],
        }


def summarize(document: Document, device: str) -> Summary:
    """The summary of a document; ``device`` names it where the document does not."""
    rank = document.ranks[0]
    if not rank.devices and rank.cpu is not None:
        return _of_cpu(rank, rank.cpu, device)
    return _of_gpu(rank, device)


def _of_gpu(rank: Rank, device: str) -> Summary:
    roofs = next(iter(rank.roofs.values()), None)
    return Summary(
        device=(roofs.name if roofs else None) or device,
        kind="gpu",
        step_us=tuple(step.step_time_us for step in rank.steps),
        regime=rank.regime,
        confidence=rank.regime_confidence,
        reason=rank.verdict_withheld or rank.regime_reason,
        grade=rank.grade,
        roofs=roofs,
        rows=_biggest(rank.kernels),
        energy=rank.energy,
    )


def _of_cpu(rank: Rank, cpu: Cpu, device: str) -> Summary:
    return Summary(
        device=cpu.name or cpu.roof.name or device,
        kind="cpu",
        step_us=tuple(step.step_time_us for step in cpu.steps),
        regime=cpu.regime,
        confidence=cpu.regime_confidence,
        reason=rank.verdict_withheld or cpu.regime_reason,
        grade=rank.grade,
        roofs=cpu.roof,
        rows=_biggest(cpu.ops),
    )


def _biggest(rows: Sequence[Kernel]) -> tuple[Kernel, ...]:
    return tuple(sorted(rows, key=lambda row: -row.time_us)[:ROWS])


def render(summary: Summary, title: str) -> str:
    """Plain text, at most 100 columns wide."""
    what = "biggest ops" if summary.kind == "cpu" else "biggest kernels"
    lines = [
        f"{title} on {printable(summary.device)}",
        f"  step time  {_steps(summary.step_us)}",
        f"  regime     {_regime(summary)}",
        f"  roof       {_roof(summary.roofs)}",
        *([] if summary.energy is None else [f"  energy     {energy_in_words(summary.energy)}"]),
        f"  grade      {summary.grade}",
        f"  {what:<47}{'share':>7}{'time/step':>11}{'of roof':>9}  regime",
        *(_row(row, len(summary.step_us)) for row in summary.rows),
    ]
    return "\n".join(lines)


def _steps(step_us: Sequence[float]) -> str:
    median = _median(step_us)
    if median is None:
        return "no steps were recorded"
    lowest, highest = min(step_us) / 1000, max(step_us) / 1000
    return f"{median / 1000:.2f} ms median of {len(step_us)} ({lowest:.2f} to {highest:.2f})"


def _regime(summary: Summary) -> str:
    if summary.regime is None:
        return f"none given: {summary.reason or 'no reason was recorded'}"
    confidence = f", confidence {summary.confidence}" if summary.confidence else ""
    return f"{summary.regime}-bound{confidence}" if summary.regime != "unknown" else f"unknown{confidence}"


def _roof(roofs: Roofs | None) -> str:
    if roofs is None:
        return "unknown"
    rates = [
        f"{dtype} {ceiling.practical / TERA:.3g} TFLOP/s"
        for dtype, ceiling in roofs.compute.items()
        if ceiling.practical is not None
    ]
    if roofs.memory is not None and roofs.memory.practical is not None:
        rates.append(f"memory {roofs.memory.practical / GIGA:.3g} GB/s ({roofs.memory.origin})")
    return ", ".join(rates) or "unknown: calibrate this device with `rooflight-agent calibrate`"


def _row(row: Kernel, n_steps: int) -> str:
    name = printable(row.short_name or row.op or row.name)
    if row.input_dims:
        name = f"{name} {printable(row.input_dims)}"
    per_step = f"{row.time_us / n_steps / 1000:.2f} ms" if n_steps else "-"
    share = "-" if row.share_pct is None else f"{row.share_pct:.1f} %"
    roof = "-" if row.roof_fraction is None else _percent(row.roof_fraction)
    why = f" ({row.reason})" if row.reason and row.regime in ("latency", "unknown") else ""
    return f"    {_shorten(name, 44):<45}{share:>7}{per_step:>11}{roof:>9}  {row.regime}{_shorten(why, 30)}"


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.0f} %" if fraction >= 0.01 else "<1 %"


def _median(values: Sequence[float]) -> float | None:
    return round(statistics.median(values), 3) if values else None


def printable(text: str) -> str:
    """Names come from outside: control characters do not reach the terminal."""
    return "".join(c if c.isprintable() else "?" for c in text)


def _shorten(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
