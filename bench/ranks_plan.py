"""A run of many ranks on paper: when every rank does what, so that all figures across ranks are known.

A step is a chain of collectives.  Before each one a rank computes, longer or shorter than the others; all
leave it together.  Hosts read clocks that are off by a constant.  Times are integer ns; ``[step, slot,
rank]`` is the order of all axes, a slot being the place of a collective in its step.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]

US = 1_000
#: Of the first step, on the clock of the first host.
ORIGIN = 5_299_406_592_015_631
LOADER = (5 * US, 295 * US)
#: From the step's start to its first kernel.
LEAD = 350 * US
PLAIN_GAP, ARRIVAL_GAP, FREE_GAP, GRAPH_GAP, NEXT_GAP, TAIL = 1_000, 2_000, 3_000, 500, 2_000, 50 * US
#: Durations of the kernels that a rank launches one by one before a collective, and of one graph's.
PLAIN = (61_125, 23_840, 12_007, 88_512, 17_303, 31_999)
GRAPH_KERNEL = (5_120, 6_751, 9_344, 5_003)
#: How long a matrix product runs beside the collective, by its kind.
BESIDE = {"tp": 30 * US, "dp": 60 * US, "world": 0}
TRANSFER = {"tp": (40 * US, 60 * US), "dp": (80 * US, 200 * US), "world": (25 * US, 35 * US)}


@dataclass(frozen=True)
class Shape:
    """How large the run is.  ``graph`` is the number of kernels in the CUDA graph of a layer."""

    ranks: int = 256
    per_host: int = 8
    steps: int = 12
    layers: int = 16
    graph: int = 60
    seed: int = 1

    @property
    def hosts(self) -> int:
        return -(-self.ranks // self.per_host)


@dataclass(frozen=True)
class Group:
    """A process group as the profiler names it."""

    name: str
    description: str
    ranks: tuple[int, ...]

    @property
    def listed(self) -> str:
        """Its ranks as torch writes them: cut behind the thirtieth."""
        shown = [str(r) for r in self.ranks[:30]]
        return f"[{', '.join(shown + ['...'] * (len(self.ranks) > 30))}]"

    @property
    def label(self) -> str:
        return f"{self.name} {self.listed}"


@dataclass(frozen=True)
class Collective:
    """The truth of one collective: ``wait`` by rank, ``straggler`` the rank that came last."""

    group: str
    n: int
    straggler: int
    transfer: int
    wait: dict[int, int]


class Plan:
    """The whole run; deterministic by its shape."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        random = np.random.default_rng(shape.seed)
        size = (shape.steps, len(self.slots), shape.ranks)
        self.stretch: I64 = random.integers(0, 40 * US, size)
        for step in range(shape.steps):
            slot, rank = random.integers(0, (len(self.slots), shape.ranks))
            self.stretch[step, slot, rank] += random.integers(400 * US, 900 * US)
        low, high = np.array([TRANSFER[kind] for kind in self.slots]).T
        # One draw per collective, of which the first host's, the first place's or the only one is a group's.
        self.transfer: I64 = random.integers(low[:, None], high[:, None], size)
        offsets = random.integers(50 * US, 5_000 * US, shape.hosts) * random.choice([-1, 1], shape.hosts)
        offsets[0] = 0
        self.clock_of_host: I64 = offsets
        self._schedule()

    @cached_property
    def slots(self) -> list[str]:
        """The kinds of the collectives of a step: tensor parallel in each layer, data parallel after
        every fourth, all ranks at the end."""
        found = []
        for layer in range(self.shape.layers):
            found += ["tp", "dp"] if layer % 4 == 3 else ["tp"]
        return [*found, "world"]

    @property
    def plain(self) -> list[int]:
        """How many kernels each slot's rank launches one by one before it."""
        return [len(PLAIN) if kind == "tp" else 1 for kind in self.slots]

    def members(self, kind: str) -> I64:
        """The group of each rank among those of a kind: a host's, those of one place on their hosts, one."""
        rank = np.arange(self.shape.ranks)
        return {"tp": rank // self.shape.per_host, "dp": rank % self.shape.per_host, "world": 0 * rank}[kind]

    @cached_property
    def groups(self) -> dict[str, list[Group]]:
        """The groups by kind, named as torch numbers them."""
        found: dict[str, list[Group]] = {}
        names = iter(range(self.shape.ranks + self.shape.hosts + 1))
        for kind, told in (("world", "default_pg"), ("tp", "mesh_tp"), ("dp", "mesh_dp")):
            of = self.members(kind)
            ranks = [tuple(np.flatnonzero(of == g).tolist()) for g in np.unique(of)]
            found[kind] = [Group(str(next(names)), told, r) for r in ranks]
        return found

    def graph_ns(self, kind: str) -> int:
        """How long the graph behind a slot runs."""
        return sum(self.graph_kernels(kind)) + GRAPH_GAP * len(self.graph_kernels(kind))

    def graph_kernels(self, kind: str) -> list[int]:
        n = self.shape.graph if kind == "tp" else 0
        return [GRAPH_KERNEL[i % len(GRAPH_KERNEL)] for i in range(n)]

    def _schedule(self) -> None:
        """``begin`` of the kernels before each slot, ``arrival``, ``last`` arrival of the rank's group,
        ``completion``, ``free``: when the rank goes on; and the bounds of the steps."""
        shape = self.stretch.shape
        self.begin, self.arrival, self.last, self.completion, self.free = np.zeros((5, *shape), np.int64)
        self.step_start = np.zeros(self.shape.steps + 1, np.int64)
        for step in range(self.shape.steps):
            now = np.full(self.shape.ranks, self.step_start[step] + LEAD)
            for slot, kind in enumerate(self.slots):
                now = self._collective(step, slot, kind, now)
            self.step_start[step + 1] = self.completion[step, -1].max() + TAIL

    def _collective(self, step: int, slot: int, kind: str, now: I64) -> I64:
        of = self.members(kind)
        n = self.plain[slot]
        computing = sum(PLAIN[:n]) + PLAIN_GAP * (n - 1) + ARRIVAL_GAP
        arrival = now + computing + self.stretch[step, slot]
        last, transfer = np.zeros_like(now), np.zeros_like(now)
        np.maximum.at(last, of, arrival)
        transfer[of[::-1]] = self.transfer[step, slot][::-1]
        completion = last[of] + transfer[of]
        free = np.maximum(completion, arrival + BESIDE[kind]) + FREE_GAP
        for name, value in zip(
            ("begin", "arrival", "last", "completion", "free"),
            (now, arrival, last[of], completion, free),
            strict=True,
        ):
            getattr(self, name)[step, slot] = value
        return free + self.graph_ns(kind) + NEXT_GAP

    # -- the truth --------------------------------------------------------------------------------

    def offset_us(self) -> dict[str, float]:
        """By rank, as the document has it: of those on other hosts than the first."""
        clock = np.repeat(self.clock_of_host, self.shape.per_host)[: self.shape.ranks]
        return {str(r): ns / US for r, ns in enumerate(clock.tolist()) if ns}

    def exposed(self) -> tuple[I64, I64]:
        """[step, rank]: communication that no kernel runs beside, and what of it is waiting."""
        beside = np.array([BESIDE[kind] for kind in self.slots])[:, None]
        alone = self.arrival + beside
        whole = np.maximum(self.completion - alone, 0).sum(axis=1)
        waiting = np.maximum(self.last - alone, 0).sum(axis=1)
        return whole, waiting

    def collectives(self) -> list[Collective]:
        """All of the run."""
        found: list[Collective] = []
        count: dict[str, int] = {}
        for step in range(self.shape.steps):
            for slot, kind in enumerate(self.slots):
                for group in self.groups[kind]:
                    if len(group.ranks) > 1:
                        n = count[group.name] = count.get(group.name, -1) + 1
                        found.append(self._truth(step, slot, group, n))
        return found

    def _truth(self, step: int, slot: int, group: Group, n: int) -> Collective:
        ranks = np.array(group.ranks)
        arrival, last = self.arrival[step, slot, ranks], self.last[step, slot, ranks]
        return Collective(
            group=group.label,
            n=n,
            straggler=int(ranks[arrival.argmax()]),
            transfer=int(self.completion[step, slot, ranks[0]] - last[0]),
            wait=dict(zip(group.ranks, (last - arrival).tolist(), strict=True)),
        )
