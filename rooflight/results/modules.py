"""The kernel time of a model's modules, each with all that is inside it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from rooflight.protocol import Kernel

#: Between a module and the one inside it, in ``Kernel.module_path``.
SEPARATOR = " > "


@dataclass(slots=True)
class Module:
    """A module by its ``path`` from the outermost one; "" holds what no module launched.

    ``time_us`` is the time of all kernels inside it, ``self_us`` of those in no module further in;
    ``exclusive_us`` is the time that is theirs alone, within the steps where there are any, so that modules
    side by side add up; ``None`` when that is not known.  ``known_us`` of the time is of kernels whose bound
    is known, ``bound_us`` that bound; ``by_regime`` splits the time.
    """

    path: str
    groups: int = 0
    count: int = 0
    time_us: float = 0.0
    self_us: float = 0.0
    exclusive_us: float | None = 0.0
    known_us: float = 0.0
    bound_us: float = 0.0
    by_regime: dict[str, float] = field(default_factory=dict)

    @property
    def depth(self) -> int:
        """How many modules are around it."""
        return self.path.count(SEPARATOR)

    @property
    def name(self) -> str:
        """The module itself, without those around it."""
        return self.path.rpartition(SEPARATOR)[2]

    @property
    def regime(self) -> str:
        """The regime of most of its time, of several the first by name."""
        return min(self.by_regime, key=lambda r: (-self.by_regime[r], r), default="unknown")

    @property
    def roof_fraction(self) -> float | None:
        """Bound over time of the kernels whose bound is known; ``None`` without any."""
        return self.bound_us / self.known_us if self.known_us > 0 else None


def modules(kernels: Iterable[Kernel]) -> list[Module]:
    """Every module with kernels inside it, the outer before the inner, the longest first."""
    found: defaultdict[str, Module] = defaultdict(lambda: Module(""))
    for k in kernels:
        own = k.module_path or k.module or ""
        for path in _around(own):
            module = found[path]
            module.path = path
            _add(module, k, own=path == own)
    return sorted(found.values(), key=lambda m: (-m.time_us, m.depth, m.path))


def outline(rows: Sequence[Module], most: int) -> list[tuple[int, Module]]:
    """The ``most`` modules with most time in the order of the tree, each with how many of those shown are
    around it; left out are those that hold one other and nothing else."""
    holds: defaultdict[str, list[Module]] = defaultdict(list)
    for m in rows:
        holds[m.path.rpartition(SEPARATOR)[0] if m.depth else ""].append(m)
    telling = [m for m in rows if m.path and not _wraps(m, holds[m.path])][:most]
    shown, time_us = {m.path for m in telling}, {m.path: m.time_us for m in rows}
    telling.sort(key=lambda m: [(-time_us[p], p) for p in _around(m.path)])
    return [(sum(p in shown for p in _around(m.path)) - 1, m) for m in telling]


def _around(path: str) -> Iterator[str]:
    """The paths of a module and of those around it, the outermost first."""
    at = path.find(SEPARATOR)
    while at >= 0:
        yield path[:at]
        at = path.find(SEPARATOR, at + 1)
    yield path


def _add(module: Module, k: Kernel, *, own: bool) -> None:
    module.groups += 1
    module.count += k.count
    module.time_us += k.time_us
    module.self_us += k.time_us if own else 0.0
    alone = k.exclusive_us if k.steps_exclusive_us is None else k.steps_exclusive_us
    if module.exclusive_us is not None:
        module.exclusive_us = None if alone is None else module.exclusive_us + alone
    if k.bound_us is not None:
        module.known_us += k.time_us
        module.bound_us += k.bound_us
    module.by_regime[k.regime] = module.by_regime.get(k.regime, 0.0) + k.time_us


def _wraps(module: Module, inside: Sequence[Module]) -> bool:
    return len(inside) == 1 and module.self_us == 0
