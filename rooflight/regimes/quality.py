"""How far a recording can be trusted: the grade that comes before any verdict (DEFINITIONS §6, §7, §17)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

COMPLETE, USABLE, UNRELIABLE = "complete", "usable", "unreliable"


@dataclass(frozen=True, slots=True)
class QualityFacts:
    """What was counted in one rank's recording.

    ``gpu_events`` are the valid ones, ``invalid_events`` those left out.  Times are ns of kernel time:
    ``unattributed_ns`` has no op, ``unlinked_ns`` is the part of it that has no launch either (§5).
    ``peak_known`` is false when a kernel's work is known and its roof is not; ``gpu_lost`` says that
    calls of a GPU's runtime were recorded and nothing that the GPU did.
    """

    gpu_events: int = 0
    invalid_events: int = 0
    overlong_clipped: int = 0
    kernel_ns: int = 0
    unlinked_kernels: int = 0
    unlinked_ns: int = 0
    unattributed_ns: int = 0
    cost_unknown_ns: int = 0
    peak_known: bool = True
    steps: int = 0
    steps_without_gpu: int = 0
    graph_launches: int = 0
    graph_launches_with_kernels: int = 0
    missing_ranks: int = 0
    unexplained_idle: bool = False
    salvaged: bool = False
    gpu_lost: bool = False


@dataclass(frozen=True, slots=True)
class Grade:
    """``withheld`` is the reason why no regime may be given, ``None`` when one may."""

    grade: str
    reasons: list[str]
    withheld: str | None


def grade(facts: QualityFacts) -> Grade:
    """Grade of a recording with its counted reasons, the worst first."""
    broken = list(_unreliable(facts))
    reasons = broken + list(_incomplete(facts))
    if broken:
        return Grade(UNRELIABLE, reasons, f"unreliable recording: {broken[0]}")
    return Grade(USABLE if reasons else COMPLETE, reasons, None)


def gpu_events_missing_in_steps(facts: QualityFacts) -> bool:
    """More than half of the steps saw no GPU work, in a recording that has some."""
    has_gpu = facts.gpu_events + facts.invalid_events > 0
    return has_gpu and facts.steps_without_gpu * 2 > facts.steps


def graph_under_recorded(facts: QualityFacts) -> bool:
    """Fewer than nine in ten graph launches have the kernels that they ran."""
    return facts.graph_launches_with_kernels * 10 < facts.graph_launches * 9


def _unreliable(facts: QualityFacts) -> Iterator[str]:
    everything = facts.gpu_events + facts.invalid_events
    if facts.gpu_lost:
        yield "incomplete: calls of the GPU runtime were recorded, the GPU work itself was not"
    if facts.salvaged:
        yield "the trace was cut off and salvaged"
    if graph_under_recorded(facts):
        yield (
            f"incomplete: only {facts.graph_launches_with_kernels} of {facts.graph_launches} graph launches"
            " have their kernels"
        )
    if gpu_events_missing_in_steps(facts):
        yield f"incomplete: {facts.steps_without_gpu} of {facts.steps} steps have no GPU events"
    if facts.invalid_events * 100 > everything:
        yield f"{facts.invalid_events} of {everything} GPU events are invalid (more than 1 %)"
    if facts.unlinked_ns * 2 > facts.kernel_ns:
        yield f"{_share(facts.unlinked_ns, facts)} of kernel time has no launch in the file (more than 50 %)"


def _incomplete(facts: QualityFacts) -> Iterator[str]:
    everything = facts.gpu_events + facts.invalid_events
    if facts.missing_ranks:
        yield f"{facts.missing_ranks} ranks of the run are missing"
    # A kernel without a launch has no op either, so the larger figure holds the other.
    no_op_ns = max(facts.unattributed_ns, facts.unlinked_ns)
    if no_op_ns * 20 > facts.kernel_ns:
        yield f"{_share(no_op_ns, facts)} of kernel time belongs to no op (more than 5 %)"
    if facts.cost_unknown_ns * 10 > facts.kernel_ns:
        yield f"the cost of {_share(facts.cost_unknown_ns, facts)} of kernel time is unknown (more than 10 %)"
    if not facts.peak_known:
        yield "the peak of this device is unknown for a part of the work"
    if 0 < facts.invalid_events * 100 <= everything:
        yield f"{facts.invalid_events} of {everything} GPU events are invalid"
    if facts.overlong_clipped:
        yield f"{facts.overlong_clipped} kernels ran into the next one of their stream and were clipped"
    if facts.unexplained_idle:
        yield "more than 5 % of the time waits for work that is not in the recording"


def _share(part_ns: int, facts: QualityFacts) -> str:
    return f"{100 * part_ns / facts.kernel_ns:.1f} %"
