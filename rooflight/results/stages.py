"""The stages of the road for one recording, each worked out once, from those before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from rooflight.attribution.idle import HostActivity
from rooflight.attribution.inferred import InferredSteps, infer_steps
from rooflight.attribution.launches import Links, link
from rooflight.attribution.phases import phases
from rooflight.attribution.replays import Replays, named_replays
from rooflight.attribution.steps import StepSpan, find_steps
from rooflight.calibration import Calibration
from rooflight.cost.elsewhere import from_elsewhere
from rooflight.cost.grids import with_grids
from rooflight.cost.launches import LaunchCosts, attach
from rooflight.cost.measured import Measured, measured
from rooflight.cost.siblings import with_siblings
from rooflight.counters.work import Counted
from rooflight.errors import TooLarge
from rooflight.findings import Facts
from rooflight.hardware import cpu_roofs
from rooflight.kernels import KernelName, classify, is_communication
from rooflight.protocol import Flag, Kernel
from rooflight.regimes.kernels import Verdict
from rooflight.regimes.partition import RANK, Partition, partition
from rooflight.regimes.quality import Grade, QualityFacts, grade
from rooflight.regimes.steps import summed, unexplained_idle
from rooflight.results import above, quality
from rooflight.results.attribution import Delays, graph_launches, launch_delays
from rooflight.results.chains import with_chains
from rooflight.results.cpu import CpuRecording, cpu_recording
from rooflight.results.devices import kernel_sum
from rooflight.results.exclusive import Exclusive, exclusive, with_exclusive
from rooflight.results.findings import Advice, advice
from rooflight.results.kernels import kernel_rows, verdicts
from rooflight.results.phases import phase_parts
from rooflight.results.roofs import DeviceRoofs, device_roofs
from rooflight.results.steps import StepFigures, bounds, step_figures
from rooflight.results.stretches import Gaps, Stretches, gaps_within, stretches
from rooflight.results.work import work_done
from rooflight.roofline.groups import Groups, group_launches
from rooflight.trace.counters import CounterFile
from rooflight.trace.tables import I8, I64, GpuKind, HostKind, Mask, distinct
from rooflight.trace.timeline import Timeline

#: Every step has parts on every device; one process has a handful of these and some thousand steps.
MAX_CELLS = 250_000


@dataclass(frozen=True, slots=True)
class Options:
    """``gpu`` overrides the recorded device name; ``calibrations`` give measured ceilings;
    ``begins_at_step``: the recording was begun as an optimizer's step ended."""

    gpu: str | None = None
    calibrations: tuple[Calibration, ...] = ()
    begins_at_step: bool = False


class Stages:
    """One recording on its way; whatever is asked for is computed then, and kept."""

    def __init__(
        self,
        timeline: Timeline,
        options: Options,
        eager: Timeline | None = None,
        counters: Sequence[CounterFile] = (),
    ) -> None:
        """``eager`` is a recording of the same run without graphs, from which their kernels are named;
        ``counters`` were read from the hardware in another run of it."""
        self._recorded, self._eager, self._counters = timeline, eager, counters
        self.options = options

    @cached_property
    def _replays(self) -> Replays:
        links = link(self._recorded)
        if self._eager is None:
            return Replays(self._recorded, links, np.empty(0, np.int64))
        return named_replays(self._recorded, links, self._eager, link(self._eager))

    @property
    def timeline(self) -> Timeline:
        """The recording, with the ops that kernels of graphs were named from."""
        return self._replays.timeline

    @property
    def links(self) -> Links:
        """GPU events tied to launches, ops, modules."""
        return self._replays.links

    @cached_property
    def steps(self) -> list[StepSpan]:
        return find_steps(self.timeline)

    @cached_property
    def inferred(self) -> InferredSteps | None:
        """Steps of a recording in which none were marked; ``None`` where they stay unknown."""
        found = None if self.steps else self._infer()
        return found if found and len(found.spans) * len(self.timeline.device_keys) <= MAX_CELLS else None

    def _infer(self) -> InferredSteps | None:
        return infer_steps(self.timeline, self.links, begins_at_step=self.options.begins_at_step)

    @property
    def spans(self) -> list[StepSpan]:
        """The steps that figures rest on: those that were marked, else those that were inferred."""
        return self.inferred.spans if self.inferred else self.steps

    @cached_property
    def names(self) -> Mapping[int, KernelName]:
        """What the names of the GPU events tell, by their index."""
        return {i: classify(self.timeline.names[i]) for i in distinct(self.timeline.gpu.name).tolist()}

    @cached_property
    def _modelled(self) -> LaunchCosts:
        costs = attach(self.timeline, self.links, self.names)
        costs = with_siblings(self.timeline, self.links, costs)
        costs = with_grids(self.timeline, costs, self.names)
        if self._eager is None:
            return costs
        return from_elsewhere(costs, self._replays.rows, Path(self._eager.source).name)

    @cached_property
    def _measured(self) -> Measured:
        return measured(self.timeline, self.links, self._modelled, self.names, self._counters)

    @property
    def costs(self) -> LaunchCosts:
        return self._measured.costs

    @property
    def counted(self) -> Mapping[int, Counted]:
        """What hardware counters tell, by row of the GPU events."""
        return self._measured.counted

    @cached_property
    def devices(self) -> DeviceRoofs:
        return device_roofs(self.timeline, self.options.gpu, self.options.calibrations)

    @cached_property
    def groups(self) -> Groups:
        return group_launches(self.timeline, self.links, self.costs, self.names, self.devices.roofs)

    @cached_property
    def is_comm(self) -> Mask:
        """Row-aligned with the GPU events: the kernels that communicate (DEFINITIONS §4)."""
        gpu = self.timeline.gpu
        by_name = np.zeros(len(self.timeline.names) + 1, bool)
        for i in self.names:
            by_name[i] = is_communication(self.timeline.names[i])
        mask: Mask = (gpu.kind == GpuKind.KERNEL) & (by_name[gpu.name] | (gpu.comm >= 0))
        return mask

    @cached_property
    def regimes(self) -> list[Verdict]:
        """Row-aligned with the groups."""
        return verdicts(self.timeline, self.groups.rows, self.is_comm, self.devices.roofs)

    @cached_property
    def table(self) -> tuple[list[Kernel], list[int]]:
        """The kernel table, and the place in it of each group."""
        rows, place = kernel_rows(self.timeline, self.links, self.groups.rows, self.regimes, self.above)
        with_exclusive(rows, place, self.exclusive, steps=bool(self.spans))
        with_chains(self.timeline, rows, place, self.groups, self.costs)
        return rows, place

    @cached_property
    def exclusive(self) -> Exclusive:
        """The time that each group has for itself."""
        return exclusive(
            self.timeline, self.groups, self.partitions.values(), self.is_comm, *bounds(self.spans)
        )

    @cached_property
    def above(self) -> dict[int, str]:
        """Why groups were faster than the datasheet allows, by place in the groups."""
        return above.causes(self.timeline, self.links, self.groups.rows, self.devices.roofs)

    @cached_property
    def findings(self) -> Advice:
        """Advice, the largest saving first; none without GPU work."""
        if self.headline is None:
            return Advice([], None)
        facts = Facts(
            timeline=self.timeline,
            links=self.links,
            costs=self.costs,
            groups=self.groups,
            verdicts=self.regimes,
            partition=self.partitions[self.headline],
            spans=self.spans,
            window=self.window,
            roofs=self.devices.roofs[self.headline],
            flags=self.flags,
        )
        return advice(facts, self.table[1], withheld=self.grade.withheld is not None)

    @cached_property
    def window(self) -> tuple[int, int]:
        """From the first start to the last end of GPU work and steps, in ns."""
        gpu, rows = self.timeline.gpu, self.timeline.valid_gpu
        starts = [s.start for s in self.spans] + ([int(gpu.start[rows].min())] if rows.size else [])
        ends = [s.end for s in self.spans] + ([int(gpu.end[rows].max())] if rows.size else [])
        return (min(starts), max(ends)) if starts else (0, 0)

    @cached_property
    def partitions(self) -> dict[int, Partition]:
        """Where the time goes, by device."""
        activity = HostActivity(self.timeline)
        return {
            d: partition(
                self.timeline, self.links, self.spans, d, self._part, self.is_comm, self.window, activity
            )
            for d in range(len(self.timeline.device_keys))
        }

    @cached_property
    def _part(self) -> I64:
        """Row-aligned with the GPU events: the part of every kernel that is not communication."""
        part = np.array([RANK.get(v.regime, RANK["unknown"]) for v in self.regimes] or [0], np.int64)
        return part[self.groups.of_event]

    @cached_property
    def phases(self) -> I8:
        """Row-aligned with the GPU events: the phase of training that launched each."""
        return phases(self.timeline, self.links)

    @cached_property
    def phase_parts(self) -> dict[tuple[str, str], I64]:
        """The work of the headline's device by phase and part, in each step, without steps in all."""
        if self.headline is None:
            return {}
        start, end = bounds(self.spans) if self.spans else (np.array([t], np.int64) for t in self.window)
        p = self.partitions[self.headline]
        return phase_parts(self.timeline, self.phases, p, self._part, self.is_comm, start, end)

    @cached_property
    def gaps(self) -> dict[int, Gaps]:
        """When each device with GPU work stood idle."""
        gpu, rows = self.timeline.gpu, self.timeline.valid_gpu
        present = distinct(gpu.device[rows]).tolist()
        return {d: gaps_within(self.partitions[d].idle, self.window) for d in present}

    @cached_property
    def idle(self) -> dict[int, Stretches]:
        """Idle time by device, each stretch with its cause and what explains it."""
        return {
            d: stretches(self.timeline, self.links, self.partitions[d].idle, gaps)
            for d, gaps in self.gaps.items()
        }

    @cached_property
    def headline(self) -> int | None:
        """The device with most kernel time, the lowest of several; ``None`` without GPU work."""
        keys = self.timeline.device_keys
        present = distinct(self.timeline.gpu.device[self.timeline.valid_gpu]).tolist()
        return min(present, key=lambda d: (-kernel_sum(self.timeline, d), _order(keys[d])), default=None)

    @cached_property
    def figures(self) -> list[StepFigures]:
        """The steps before their verdicts; none without GPU work."""
        if self.headline is None:
            return []
        cells = len(self.spans) * len(self.timeline.device_keys)
        if cells > MAX_CELLS:
            raise TooLarge(
                f"too large: {len(self.spans)} steps on {len(self.timeline.device_keys)} devices",
                where=self.timeline.source,
                hint=f"record fewer steps: {MAX_CELLS} pairs of step and device are the limit",
            )
        return step_figures(
            self.timeline,
            self.links,
            self.phases,
            self.spans,
            self.partitions,
            self.headline,
            self.groups,
            self.regimes,
            self.devices.roofs[self.headline],
            work_done(
                self.timeline,
                self.costs,
                self.groups,
                self.is_comm,
                self.headline,
                *bounds(self.spans),
            ),
        )

    @cached_property
    def whole(self) -> dict[int, dict[str, int]]:
        """Parts of the whole recording in ns, by device."""
        start, end = (np.array([t], np.int64) for t in self.window)
        return {d: p.parts(start, end)[0] for d, p in self.partitions.items()}

    @cached_property
    def delays(self) -> Delays:
        return launch_delays(self.timeline, self.links)

    @cached_property
    def cpu(self) -> CpuRecording | None:
        """The host CPU as the device, when there is no GPU work."""
        if self.headline is not None:
            return None
        mine = [c for c in self.options.calibrations if c.kind == "cpu"]
        newest = max(mine, key=lambda c: c.measured_at, default=None)
        return cpu_recording(self.timeline, cpu_roofs(newest))

    @cached_property
    def seen(self) -> quality.Seen:
        """What the flags and the grade are made from."""
        return quality.Seen(
            timeline=self.timeline,
            links=self.links,
            groups=self.groups.rows,
            regimes=self.regimes,
            above=self.above,
            is_comm=self.is_comm,
            roofs=self.devices.roofs,
            sku_inferred=self.devices.inferred,
            n_steps=len(self.spans),
            inferred=self.inferred,
            steps_without_gpu=sum(not f.touched for f in self.figures),
            graphs=graph_launches(self.timeline),
            negative_delays=self.delays.negative,
            unexplained_idle=self._unexplained(),
        )

    def _unexplained(self) -> bool:
        if self.headline is None:
            return False
        d = self.headline
        return unexplained_idle(summed(f.parts[d] for f in self.figures) if self.figures else self.whole[d])

    @cached_property
    def ns_by_origin(self) -> dict[str, int]:
        """Kernel time (on a CPU: self time of ops) by origin of its cost."""
        return quality.kernel_ns_by_origin(self.seen) if self.cpu is None else self.cpu.ops.ns_by_origin

    @cached_property
    def quality(self) -> QualityFacts:
        """What the grade is made from; which ranks are missing only the run knows."""
        facts = quality.facts(self.seen, self.ns_by_origin)
        if self.cpu is None:
            return facts
        # Work that was launched on a GPU and not recorded is no work of the CPU.
        calls = np.isin(self.timeline.host.kind, (HostKind.RUNTIME, HostKind.DRIVER))
        kernel_ns = sum(self.ns_by_origin.values())
        return replace(facts, kernel_ns=kernel_ns, peak_known=self.cpu.peak_known, gpu_lost=bool(calls.any()))

    @cached_property
    def grade(self) -> Grade:
        """The grade, if no rank of the run is missing."""
        return grade(self.quality)

    @cached_property
    def flags(self) -> list[Flag]:
        flags = [*quality.flags(self.seen, self.quality), *self._measured.flags]
        if self.cpu is not None and not self.cpu.peak_known:
            lacking = "for a part of the work" if self.cpu.roofs.memory else "of this CPU"
            how = f"no measured roof {lacking}: `rooflight-agent calibrate` makes one"
            flags.append(Flag("peak_unknown", None, how))
        return flags

    @property
    def doubt(self) -> float:
        """The share (0 to 1) of kernel time whose cost is unknown or inferred."""
        time = self.ns_by_origin
        whole = sum(time.values())
        return (time["unknown"] + time["inferred"]) / whole if whole else 0.0


def _order(key: str) -> tuple[int, str]:
    return (int(key), key) if key.isascii() and key.isdigit() and len(key) < 10 else (1 << 62, key)
