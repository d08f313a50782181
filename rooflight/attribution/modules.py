"""The nn.Module that a host row runs in, and the path of modules around it.

A module is the innermost ``nn.Module: Name_k`` frame of the Python stack on the row's own thread; they
are recorded with ``with_stack`` only.  Compiled code calls no modules: its home is the compiled region,
or else the graph that inductor made of it.
"""

from __future__ import annotations

import numpy as np

from rooflight.attribution.nesting import Nest, Spans
from rooflight.trace.tables import HostKind, Mask, values_at
from rooflight.trace.timeline import Timeline

MODULE = "nn.Module: "
REGION = "Torch-Compiled Region: "
GRAPH = "## Call CompiledFxGraph "
#: Modules deeper inside each other than this are not all named.
MAX_DEPTH = 32
MAX_NAME = 256


def module_frames(timeline: Timeline) -> Mask:
    """The host rows that are calls of an nn.Module."""
    frames: Mask = (timeline.host.kind == HostKind.PYTHON) & named(timeline, MODULE)
    return frames


def named(timeline: Timeline, *prefixes: str) -> Mask:
    """The host rows whose name begins with one of ``prefixes``."""
    names = np.array([n.startswith(prefixes) for n in timeline.names], bool)
    mask: Mask = names[timeline.host.name] if names.any() else np.zeros(len(timeline.host), bool)
    return mask


class ModulePaths:
    """The modules around each module, outermost first."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        host, frames = timeline.host, np.flatnonzero(module_frames(timeline))
        inside = Nest(Spans(host.thread[frames], host.start[frames], host.end[frames])).parents()
        self._frames, self._around = frames, values_at(frames, inside, -1)
        self._known: dict[int, tuple[str, ...]] = {-1: ()}

    def of(self, row: int) -> str | None:
        """The path of a host row that is a module, ``"ResNet_0 > Sequential_1 > Linear_0"``, its innermost
        32 at most; ``None`` for any other row."""
        names = self._names(row)
        if len(names) > MAX_DEPTH:
            names = ("…", *names[1:])
        return " > ".join(names) or None

    def _names(self, row: int) -> tuple[str, ...]:
        """One name more than are shown, where there are so many; every module is looked at once."""
        inside: list[int] = []
        while row not in self._known and (at := self._place(row)) >= 0:
            inside.append(row)
            row = int(self._around[at])
        names = self._known.get(row, ())
        for row in reversed(inside):
            name = self._timeline.names[self._timeline.host.name[row]].removeprefix(MODULE)
            names = self._known[row] = (*names, name[:MAX_NAME])[-MAX_DEPTH - 1 :]
        return names

    def _place(self, row: int) -> int:
        """Where a host row is among the frames; -1 when it is none of them."""
        at = int(np.searchsorted(self._frames, row))
        return at if at < self._frames.size and self._frames[at] == row else -1
