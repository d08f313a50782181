"""Which launches of a recording the counted launches of a file are.

A counted launch is one of a kernel of the same name, grid and block.  The n-th of them is the n-th launch of
the recording where both have equally many; else all launches stand for each other, if what they counted
agrees.  What fits no kernel, or several, is counted and left.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from rooflight.attribution.launches import Links
from rooflight.counters import names
from rooflight.counters.work import NOTHING, Counted
from rooflight.trace.counters import CountedLaunch, CounterFile
from rooflight.trace.tables import GpuKind, values_at
from rooflight.trace.timeline import LaunchShape, Timeline

#: Launches stand for each other when what they counted differs by at most this share of the median.
SPREAD = 0.1
#: What Kineto writes where it lost a kernel's name.
_NAMELESS = "__missing__"
#: A kernel of the recording: name and launch geometry, by index; -1 is no geometry.
Target = tuple[int, int]
Derive = Callable[[CountedLaunch, int], Counted]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Joined:
    """What was counted for rows of the GPU events.  Of the file's ``launches`` so many are ``unknown``: no
    kernel of the recording has their name and geometry; ``ambiguous`` ones may be of several, or differ;
    ``silent`` ones have no metrics that tell FLOPs or bytes."""

    rows: Mapping[int, Counted]
    launches: int = 0
    unknown: int = 0
    ambiguous: int = 0
    silent: int = 0


class Kernels:
    """The kernels of a recording, in the order in which they were launched."""

    def __init__(self, timeline: Timeline, links: Links) -> None:
        gpu, rows = timeline.gpu, timeline.valid_gpu
        rows = rows[gpu.kind[rows] == GpuKind.KERNEL]
        launched = values_at(timeline.host.start, links.launch[rows], -1)
        known = launched.size > 0 and bool((launched >= 0).all())
        self.rows = rows[np.lexsort((gpu.start[rows], launched if known else gpu.start[rows]))]
        self.timeline = timeline
        self._shapes: dict[int, LaunchShape] = {}
        self.targets: defaultdict[Target, list[int]] = defaultdict(list)
        keys = zip(gpu.name[self.rows].tolist(), gpu.shape[self.rows].tolist(), strict=True)
        for row, key in zip(self.rows.tolist(), keys, strict=True):
            self.targets[key].append(row)
        self._of_name: defaultdict[int, list[Target]] = defaultdict(list)
        for target in self.targets:
            self._of_name[target[0]].append(target)
        self._exact = {timeline.names[n]: [n] for n in self._of_name}
        self._canonical = self._by(names.canonical)
        self._base = self._by(names.base)

    def _by(self, form: Callable[[str], str]) -> dict[str, list[int]]:
        found: defaultdict[str, list[int]] = defaultdict(list)
        for n in self._of_name:
            found[form(self.timeline.names[n])].append(n)
        return found

    def named(self, name: str) -> tuple[int, list[int]]:
        """The names that a tool's name may mean, and how loosely (0: it is the same)."""
        if name in self._exact:
            return 0, self._exact[name]
        if found := self._canonical.get(names.canonical(name)):
            return 1, found
        return 2, self._base.get(name, []) if names.is_base(name) else []

    def fitting(self, launch: CountedLaunch) -> tuple[int, list[Target]]:
        """The kernels that a counted launch may be one of, and how loosely they are named alike."""
        level, named = self.named(launch.name)
        found = [t for n in named for t in self._of_name[n] if self._fits(t, launch)]
        return level, found

    def launched(self, name: int) -> list[Target]:
        """The kernels of this name, one by one as they were launched."""
        gpu = self.timeline.gpu
        rows = self.rows[gpu.name[self.rows] == name]
        return [(name, shape) for shape in gpu.shape[rows].tolist()]

    def _fits(self, target: Target, launch: CountedLaunch) -> bool:
        if target[1] < 0:
            return True
        if target[1] not in self._shapes:
            self._shapes[target[1]] = self.timeline.launch_shape(target[1])
        return same_geometry(self._shapes[target[1]], launch)


def same_geometry(shape: LaunchShape, launch: CountedLaunch) -> bool:
    """Whether the geometries can be one; one that is not told can be any.

    HIP counts the grid in blocks or in threads, by the call that launched it, so either may be meant.
    """
    if shape.grid is None or shape.block is None or launch.block is None:
        return True
    if launch.grid is not None:
        return _three(shape.grid) == _three(launch.grid) and _three(shape.block) == _three(launch.block)
    if launch.threads is None:
        return True
    block, grid = math.prod(shape.block), math.prod(shape.grid)
    return block == math.prod(launch.block) and launch.threads in (grid, grid * block)


def _three(sizes: Sequence[int]) -> tuple[int, ...]:
    return (*sizes, 1, 1, 1)[: max(3, len(sizes))]


def join(kernels: Kernels, files: Sequence[CounterFile], derive: Derive) -> list[Joined]:
    """What each file tells of the kernels.  Passes of one program, in files of their own, are put together
    launch by launch: together they may tell what none tells alone."""
    found = [_Resolved.of(kernels, file.launches) for file in files]
    passes = _together([r.launches for r in found])
    return [_joined(kernels, r, launches, derive) for r, launches in zip(found, passes, strict=True)]


@dataclass(frozen=True, slots=True)
class _Resolved:
    """The counted launches by the kernel that they are of; and those that are of none, or of several."""

    launches: dict[Target, list[CountedLaunch]]
    total: int
    unknown: int
    ambiguous: int

    @classmethod
    def of(cls, kernels: Kernels, launches: Sequence[CountedLaunch]) -> _Resolved:
        if whole := _in_sequence(kernels, launches):
            return cls(whole, len(launches), 0, 0)
        sorted_out = _Sorter(kernels)
        for launch in launches:
            sorted_out.take(launch)
        return sorted_out.resolved(len(launches))


class _Sorter:
    """Puts counted launches to the kernels that they are of."""

    def __init__(self, kernels: Kernels) -> None:
        self._kernels = kernels
        self._fitting: dict[tuple[object, ...], tuple[int, list[Target]]] = {}
        #: By kernel, and by how loosely which name means it.
        self._claims: defaultdict[Target, defaultdict[tuple[int, str], list[CountedLaunch]]]
        self._claims = defaultdict(lambda: defaultdict(list))
        #: Without a geometry, of a kernel that was launched with several.
        self._shapeless: defaultdict[tuple[int, str], list[CountedLaunch]] = defaultdict(list)
        self._unknown = self._ambiguous = 0

    def take(self, launch: CountedLaunch) -> None:
        key = (launch.name, launch.grid, launch.block, launch.threads)
        if key not in self._fitting:
            self._fitting[key] = self._kernels.fitting(launch)
        level, targets = self._fitting[key]
        if len(targets) == 1:
            self._claims[targets[0]][level, launch.name].append(launch)
        elif len({name for name, _ in targets}) == 1 and not (launch.grid or launch.threads):
            self._shapeless[targets[0][0], launch.name].append(launch)
        elif targets:
            self._ambiguous += 1
        else:
            self._unknown += 1

    def resolved(self, total: int) -> _Resolved:
        found: dict[Target, list[CountedLaunch]] = {}
        for target, named in self._claims.items():
            best = min(level for level, _ in named)
            chosen = [name for name in named if name[0] == best]
            if len(chosen) == 1:
                found[target] = named[chosen[0]]
            self._ambiguous += sum(map(len, named.values())) - len(found.get(target, ()))
        for (name, _), launches in self._shapeless.items():
            targets = self._kernels.launched(name)
            if len(targets) == len(launches) and not any(target in found for target in targets):
                for target, launch in zip(targets, launches, strict=True):
                    found.setdefault(target, []).append(launch)
            else:
                self._ambiguous += len(launches)
        return _Resolved(found, total, self._unknown, self._ambiguous)


def _in_sequence(
    kernels: Kernels, launches: Sequence[CountedLaunch]
) -> dict[Target, list[CountedLaunch]] | None:
    """Launches without geometry that are, one by one, the kernels of the recording: then also those whose
    name was lost."""
    rows = kernels.rows.tolist()
    if len(rows) != len(launches) or any(launch.grid or launch.threads for launch in launches):
        return None
    if not _of_one_place(launches) or not _on_one_device(kernels, rows):
        return None
    gpu, found = kernels.timeline.gpu, defaultdict[Target, list[CountedLaunch]](list)
    for row, launch in zip(rows, launches, strict=True):
        name = int(gpu.name[row])
        if launch.name not in (kernels.timeline.names[name], _NAMELESS):
            return None
        found[name, int(gpu.shape[row])].append(launch)
    return found


def _together(files: Sequence[dict[Target, list[CountedLaunch]]]) -> list[dict[Target, list[CountedLaunch]]]:
    """Each file's launches with the metrics of the other files that counted as many launches of a kernel;
    its own go before theirs."""
    if len(files) == 1:
        return list(files)
    out = []
    for own in files:
        merged: dict[Target, list[CountedLaunch]] = {}
        for target, launches in own.items():
            others = [f[target] for f in files if len(f.get(target, ())) == len(launches) and f is not own]
            merged[target] = [
                replace(first, values={k: v for launch in (*rest, first) for k, v in launch.values.items()})
                for first, *rest in zip(launches, *others, strict=True)
            ]
        out.append(merged)
    return out


def _joined(
    kernels: Kernels, found: _Resolved, launches: Mapping[Target, list[CountedLaunch]], derive: Derive
) -> Joined:
    rows: dict[int, Counted] = {}
    ambiguous, silent = found.ambiguous, 0
    for target, counted in launches.items():
        own = kernels.targets[target]
        each = [derive(launch, own[0]) for launch in counted]
        silent += each.count(NOTHING)
        if len(own) == len(each) and _of_one_place(counted) and _on_one_device(kernels, own):
            rows.update(zip(own, each, strict=True))
        else:
            alike = agreed(each)
            ambiguous += 0 if alike != NOTHING else len(each) - each.count(NOTHING)
            rows.update(dict.fromkeys(own, alike))
    told = {row: counted for row, counted in rows.items() if counted != NOTHING}
    return Joined(told, found.total, found.unknown, ambiguous, silent)


def by_correlation(kernels: Kernels, launches: Sequence[CountedLaunch], derive: Derive) -> Joined:
    """Counters that carry the correlation of their launch: what a launch of several kernels counted is
    none's."""
    rows = defaultdict[int, list[int]](list)
    for row, correlation in zip(
        kernels.rows.tolist(), kernels.timeline.gpu.correlation[kernels.rows].tolist(), strict=True
    ):
        rows[correlation].append(row)
    found = [(launch, rows.get(launch.correlation, [])) for launch in launches]
    derived = {own[0]: derive(launch, own[0]) for launch, own in found if len(own) == 1}
    told = {row: counted for row, counted in derived.items() if counted != NOTHING}
    return Joined(
        told,
        launches=len(launches),
        unknown=sum(not own for _, own in found),
        ambiguous=sum(len(own) > 1 for _, own in found),
        silent=len(derived) - len(told),
    )


def agreed(each: Sequence[Counted]) -> Counted:
    """What stands for all of these: the median launch, for each number; nothing for the one in
    which they differ by more than :data:`SPREAD`."""
    return Counted(
        _median([c.executed for c in each], lambda e: e.flops),
        _median([c.moved for c in each], lambda m: m.total),
        _median([c.l2 for c in each], lambda t: t.bytes),
        _median([c.l1 for c in each], lambda t: t.bytes),
    )


def _median(found: Sequence[T | None], amount: Callable[[T], int]) -> T | None:
    known = sorted((f for f in found if f is not None), key=amount)
    if not known or len(known) < len(found):
        return None
    middle = known[(len(known) - 1) // 2]
    return middle if amount(known[-1]) - amount(known[0]) <= SPREAD * amount(middle) else None


def _of_one_place(launches: Iterable[CountedLaunch]) -> bool:
    return len({(launch.process, launch.device) for launch in launches}) <= 1


def _on_one_device(kernels: Kernels, rows: Sequence[int]) -> bool:
    return np.unique(kernels.timeline.gpu.device[rows]).size <= 1
