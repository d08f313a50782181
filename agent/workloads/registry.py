"""The built-in workloads, by name.

A workload is a function that builds its tensors on a place and returns the step: a callable without
arguments that does one step's work.  It imports torch itself, so that the list costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rooflight.errors import Refused

Step = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Place:
    """Where and how large: ``device`` is torch's name of it; ``size`` is small (a test), medium (two CPU
    cores: a step in the order of 0.1 s) or large (a data-centre GPU)."""

    device: str
    size: str = "medium"
    seed: int = 0

    @property
    def on_gpu(self) -> bool:
        return self.device.startswith("cuda")


@dataclass(frozen=True, slots=True)
class Workload:
    """``about`` is the first line of the builder's docstring; ``steps`` the default of counted steps."""

    name: str
    about: str
    steps: int
    build: Callable[[Place], Step]


WORKLOADS: dict[str, Workload] = {}


def workload(name: str, *, steps: int) -> Callable[[Callable[[Place], Step]], Callable[[Place], Step]]:
    """Register the decorated builder under ``name``."""

    def register(build: Callable[[Place], Step]) -> Callable[[Place], Step]:
        if name in WORKLOADS:
            raise ValueError(f"two workloads are called {name!r}")
        about = (build.__doc__ or "").strip().splitlines()
        if not about:
            raise ValueError(f"workload {name!r} has no docstring")
        WORKLOADS[name] = Workload(name, about[0], steps, build)
        return build

    return register


def find(name: str) -> Workload:
    """The workload called ``name``; refused with the list of those that exist."""
    if name not in WORKLOADS:
        raise Refused(f"no workload is called {name!r}", hint=f"there are: {', '.join(sorted(WORKLOADS))}")
    return WORKLOADS[name]
