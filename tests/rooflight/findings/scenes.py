"""Recordings drawn as text for the rules: what triggers one, what nearly does, what a shared trace shows."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rooflight.analysis import analyze
from rooflight.protocol import Finding
from rooflight.trace.timeline import Timeline
from tests.drawing import Told, events_from_text, timeline_from_events
from tests.recording import H100

#: No shared trace shows the rule: held against all of them.
NONE_HAS_IT = "none has it"
BF16 = "c10::BFloat16"


@dataclass(frozen=True)
class Scene:
    """One recording, or one for each rank of a run; ``told`` says what the short names stand for."""

    drawing: str
    told: Mapping[str, Told] = field(default_factory=dict)
    device: Mapping[str, Any] = field(default_factory=lambda: H100)
    others: Sequence[str] = ()

    def findings(self, seed: int | None = None) -> dict[str, Finding]:
        """What is said of the first rank, by code; with a ``seed`` the events stand in another order."""
        drawings = [self.drawing, *self.others]
        ranks = [self._rank(i, text, len(drawings), seed) for i, text in enumerate(drawings)]
        return {f.code: f for f in analyze(ranks).document.ranks[0].findings}

    def _rank(self, i: int, text: str, of: int, seed: int | None) -> Timeline:
        events = events_from_text(text, self.told)
        if seed is not None:
            random.Random(seed).shuffle(events)
        meta = {"distributedInfo": {"rank": i, "world_size": of}} if of > 1 else {}
        return timeline_from_events(events, deviceProperties=[self.device], **meta)


@dataclass(frozen=True)
class Drawn:
    """``saving_us`` is that of ``trigger``, by the arithmetic of ``why``; ``None`` where nothing tells it.
    ``trace`` is a shared trace whose analysis has the finding."""

    why: str
    trigger: Scene
    saving_us: float | None
    near: Sequence[Scene]
    trace: str = NONE_HAS_IT


def op(name: str, dims: Sequence[Any] = (), dtype: str = "float") -> Told:
    """An op on tensors of these dims, [] a scalar; as ``Recording.op``."""
    return name, {
        "Input Dims": list(dims),
        "Input type": [dtype if d else "Scalar" for d in dims],
        "Concrete Inputs": ["" if d else "1" for d in dims],
    }


def kernel(name: str, **args: Any) -> Told:
    return name, args


def memory_us(size: float) -> float:
    """So many bytes at the practical bandwidth of an H100, 3.35 TB/s x 0.9."""
    return size / 3.015e12 * 1e6
