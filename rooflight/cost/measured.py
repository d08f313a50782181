"""Costs of launches whose counters were read: what the hardware counted goes before every formula."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rooflight.attribution.launches import Links
from rooflight.cost.counts import with_counts
from rooflight.cost.launches import LaunchCosts
from rooflight.counters.derive import derive
from rooflight.counters.join import Joined, Kernels, by_correlation, join
from rooflight.counters.work import Counted, Kernel
from rooflight.kernels import KernelName
from rooflight.protocol import Flag
from rooflight.trace.counters import CountedLaunch, CounterFile
from rooflight.trace.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Measured:
    """The costs, and what has to be said of counters that tell nothing.  ``counted`` is by row of the GPU
    events."""

    costs: LaunchCosts
    flags: tuple[Flag, ...] = ()
    counted: Mapping[int, Counted] = field(default_factory=dict)


def measured(
    timeline: Timeline,
    links: Links,
    costs: LaunchCosts,
    kernels: Mapping[int, KernelName],
    files: Sequence[CounterFile] = (),
) -> Measured:
    """The costs with what the recording's own counters and ``files`` counted; of several sources for one
    launch the recording itself goes first, then the first file."""
    own = timeline.counters.launches(timeline.names)
    if not own and not files:
        return Measured(costs)
    joiner = _Joiner(timeline, links, costs, kernels)
    found: dict[int, Counted] = {}
    flags = list[Flag]()
    for source, joined in joiner.all(own, files):
        for row, counted in joined.rows.items():
            found[row] = found[row].filled(counted) if row in found else counted
        flags += _unjoined(source, joined)
    flags += _unavailable(timeline, files)
    return Measured(_with(costs, found), tuple(flags), found)


class _Joiner:
    def __init__(
        self, timeline: Timeline, links: Links, costs: LaunchCosts, kernels: Mapping[int, KernelName]
    ) -> None:
        self._timeline, self._costs, self._names = timeline, costs, kernels
        self._kernels = Kernels(timeline, links)

    def all(self, own: Sequence[CountedLaunch], files: Sequence[CounterFile]) -> Iterator[tuple[str, Joined]]:
        """What each source tells; the recording's own counters have no name."""
        if own and all(launch.correlation >= 0 for launch in own):
            yield "", by_correlation(self._kernels, own, self._derived)
        elif own:
            yield "", join(self._kernels, [CounterFile("", tuple(own))], self._derived)[0]
        sources = [file.source for file in files]
        yield from zip(sources, join(self._kernels, files, self._derived), strict=True)

    def _derived(self, launch: CountedLaunch, row: int) -> Counted:
        """What a counted launch tells of a row of the GPU events."""
        gpu = self._timeline.gpu
        name, cost = self._names[int(gpu.name[row])], self._costs.costs[self._costs.index[row]]
        device = self._timeline.meta.device(self._timeline.device_keys[gpu.device[row]])
        kernel = Kernel(
            dtype=name.compute_dtype or name.dtype or cost.dtype,
            matrix_unit=name.tensor_core,
            compute=device.compute if device else None,
        )
        return derive(launch.values, kernel)


def _with(costs: LaunchCosts, found: Mapping[int, Counted]) -> LaunchCosts:
    table = {cost: i for i, cost in enumerate(costs.costs)}
    index = costs.index.copy()
    for row, counted in found.items():
        index[row] = table.setdefault(with_counts(costs.costs[costs.index[row]], counted), len(table))
    return replace(costs, costs=tuple(table), index=index)


def _unjoined(source: str, joined: Joined) -> Iterator[Flag]:
    whose = source or "the recording's own counters"
    of = f"of {joined.launches} launches that {whose} counted"
    how = "have no kernel of that name and geometry in the recording"
    if joined.unknown:
        advice = "" if source or joined.rows else "; give this recording with --counters to one that has them"
        yield Flag("field_unavailable", joined.unknown, f"{joined.unknown} {of} {how}{advice}")
    if joined.ambiguous:
        how = "may be of several kernels, or differ among themselves, and are left out"
        yield Flag("field_unavailable", joined.ambiguous, f"{joined.ambiguous} {of} {how}")
    if joined.silent:
        how = "have no metrics that tell FLOPs or bytes: docs/counters.md lists those that do"
        yield Flag("metric_unavailable", joined.silent, f"{joined.silent} {of} {how}")


def _unavailable(timeline: Timeline, files: Sequence[CounterFile]) -> Iterator[Flag]:
    for file in files:
        if file.unavailable:
            how = f"values in {file.source} that the tool could not tell"
            yield Flag("metric_unavailable", file.unavailable, how)
    if timeline.counters.left_out:
        how = "launches whose counters are beyond the number that is kept"
        yield Flag("metric_unavailable", timeline.counters.left_out, how)
