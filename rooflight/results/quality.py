"""Flags and grade of a rank: what its recording cannot tell, counted (DEFINITIONS §17, §21)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rooflight.attribution.inferred import InferredSteps
from rooflight.attribution.launches import Links
from rooflight.protocol import Coverage, Flag, Roofs
from rooflight.regimes import quality
from rooflight.regimes.kernels import Verdict
from rooflight.regimes.quality import QualityFacts
from rooflight.roofline.bounds import compute_ceiling, lacks_roof
from rooflight.roofline.groups import Group
from rooflight.trace.tables import GpuKind, Mask
from rooflight.trace.timeline import Timeline

_ORIGINS = ("measured", "modelled", "inferred", "unknown")


@dataclass(frozen=True, slots=True)
class Seen:
    """What was found on the way to the verdicts; ``n_steps`` counts the steps that they rest on, ``above``
    has the likely cause by place in ``groups`` of those that beat the datasheet."""

    timeline: Timeline
    links: Links
    groups: Sequence[Group]
    regimes: Sequence[Verdict]
    above: Mapping[int, str]
    is_comm: Mask
    roofs: Sequence[Roofs]
    sku_inferred: bool
    n_steps: int
    inferred: InferredSteps | None
    steps_without_gpu: int
    graphs: tuple[int, int]
    negative_delays: int
    unexplained_idle: bool


def kernel_ns_by_origin(seen: Seen) -> dict[str, int]:
    """Kernel time per origin of its cost, in ns."""
    total = dict.fromkeys(_ORIGINS, 0)
    for g in seen.groups:
        if g.kind == GpuKind.KERNEL:
            total[g.origin] += g.total_ns
    return total


def coverage(by_origin: dict[str, int]) -> Coverage:
    """Shares of kernel time in percent; they sum to 100 where there is any."""
    whole = sum(by_origin.values())
    if not whole:
        return Coverage()
    return Coverage(**{origin: round(100 * ns / whole, 2) for origin, ns in by_origin.items()})


def facts(seen: Seen, by_origin: dict[str, int]) -> QualityFacts:
    """The counts that the grade is made from."""
    timeline, gpu, links = seen.timeline, seen.timeline.gpu, seen.links
    rows = timeline.valid_gpu
    kernels = rows[gpu.kind[rows] == GpuKind.KERNEL]
    length = gpu.end[kernels] - gpu.start[kernels]
    unlinked, no_op = links.launch[kernels] < 0, links.op[kernels] < 0
    return QualityFacts(
        gpu_events=int(rows.size),
        invalid_events=len(gpu) - int(rows.size),
        overlong_clipped=timeline.overlong_clipped,
        kernel_ns=int(length.sum()),
        unlinked_kernels=int(np.count_nonzero(unlinked)),
        unlinked_ns=int(length[unlinked].sum()),
        unattributed_ns=int(length[no_op].sum()),
        cost_unknown_ns=by_origin["unknown"],
        peak_known=not _without_peak(seen),
        steps=seen.n_steps,
        steps_without_gpu=seen.steps_without_gpu,
        graph_launches=seen.graphs[0],
        graph_launches_with_kernels=seen.graphs[1],
        unexplained_idle=seen.unexplained_idle,
        salvaged=timeline.salvaged,
    )


def flags(seen: Seen, facts: QualityFacts) -> list[Flag]:
    """Every statement that holds, in a fixed order."""
    return [
        *seen.timeline.flags,
        *_of_recording(seen, facts),
        *_of_links(seen, facts),
        *_of_roofs(seen),
    ]


def _of_recording(seen: Seen, facts: QualityFacts) -> Iterator[Flag]:
    timeline = seen.timeline
    if not facts.gpu_events:
        yield Flag("no_gpu_activity", 0, "the recording holds no GPU work")
    if seen.inferred or not facts.steps:
        yield Flag("no_steps", 0, "no ProfilerStep was recorded: call prof.step() in the training loop")
    if seen.inferred:
        yield Flag("inferred_steps", facts.steps, f"steps were inferred from {seen.inferred.basis}")
    if timeline.meta.rank is None:
        yield Flag("rank_assumed", 1, "the file names no rank; it is taken as rank 0")
    invalid = timeline.invalid_events
    if invalid:
        kinds = ", ".join(f"{kind}: {n}" for kind, n in sorted(invalid.items()))
        yield Flag("invalid_events", sum(invalid.values()), f"GPU events without a usable interval ({kinds})")
    if "zero_ts" in invalid:
        yield Flag("zero_timestamps", invalid["zero_ts"], "GPU events lost their time stamp")
    if timeline.overlong_clipped:
        yield Flag(
            "overlong_clipped",
            timeline.overlong_clipped,
            "kernels ended after the next one of their stream had started; cut there",
        )


def _of_links(seen: Seen, facts: QualityFacts) -> Iterator[Flag]:
    if seen.negative_delays:
        yield Flag("kernel_before_launch", seen.negative_delays, "kernels start before their launch does")
    if facts.unlinked_kernels:
        yield Flag("unlinked_kernels", facts.unlinked_kernels, "kernels whose launch is not in the file")
    if seen.links.ambiguous:
        yield Flag(
            "ambiguous_correlation",
            seen.links.ambiguous,
            "several processes use the same correlation id: a file merged from several ranks",
        )
    if quality.graph_under_recorded(facts):
        yield Flag(
            "graph_under_recorded",
            facts.graph_launches - facts.graph_launches_with_kernels,
            f"only {facts.graph_launches_with_kernels} of {facts.graph_launches} graph launches have kernels",
        )
    if quality.gpu_events_missing_in_steps(facts):
        yield Flag(
            "gpu_events_missing_in_steps",
            facts.steps_without_gpu,
            f"{facts.steps_without_gpu} of {facts.steps} steps have no GPU work: the recording is incomplete",
        )
    if facts.unexplained_idle:
        yield Flag("unexplained_idle", None, "more than 5 % of the time waits for work that is not recorded")


def _of_roofs(seen: Seen) -> Iterator[Flag]:
    kernels = [(g, v) for g, v in zip(seen.groups, seen.regimes, strict=True) if g.kind == GpuKind.KERNEL]
    if kernels and not any(g.dims for g, _ in kernels):
        yield Flag("no_shapes", None, "no input shapes were recorded: use record_shapes=True")
    unknown = sum(g.origin == "unknown" for g, _ in kernels)
    if unknown:
        yield Flag("costs_unknown", unknown, "kernel groups whose FLOPs and bytes are unknown")
    nameless = [r for r in seen.roofs if r.gpu_id is None]
    if nameless:
        names = ", ".join(repr(r.name or "") for r in nameless)
        yield Flag(
            "gpu_model_unknown", len(nameless), f"no such GPU in the catalogue: {names}; --gpu NAME sets it"
        )
    without = _without_peak(seen)
    if without:
        yield Flag("peak_unknown", without, "kernel groups without a roof for their work")
    if seen.sku_inferred:
        grounds = "; ".join(dict.fromkeys(r.ground for r in seen.roofs if r.ground))
        yield Flag("sku_inferred", 1, f"the GPU was not found by its name alone: {grounds}")
    assumed = sum(g.bound.math_type_assumed for g, _ in kernels)
    if assumed:
        yield Flag("math_type_assumed", assumed, "fp32 matrix kernels whose names do not tell TF32 from fp32")
    above = Counter(why for i, why in seen.above.items() if seen.groups[i].kind == GpuKind.KERNEL)
    if above:
        whys = "; ".join(f"{n}: {why}" for why, n in above.most_common())
        yield Flag("above_peak", above.total(), f"kernel groups faster than the datasheet allows ({whys})")
    if any(factor_assumed(seen, device) for device in range(len(seen.roofs))):
        yield Flag("factor_assumed", None, "practical roofs rest on an assumed efficiency: run a calibration")


def factor_assumed(seen: Seen, device: int) -> bool:
    """Whether a roof that kernels of this device were held against was scaled by a default that nobody
    measured on its model or family."""
    roofs = seen.roofs[device]
    mine = [g.work for g in seen.groups if g.kind == GpuKind.KERNEL and g.device == device]
    used = [compute_ceiling(w, roofs) for w in mine if w.flops] + [roofs.memory for w in mine if w.bytes]
    return any(c is not None and c.origin == "assumed" for c in used)


def _without_peak(seen: Seen) -> int:
    """Kernel groups without a roof for their work."""
    return sum(lacks_roof(g.work, g.bound) for g in seen.groups if g.kind == GpuKind.KERNEL)
