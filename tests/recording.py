"""Recordings of one thread and one stream, built event by event in whole microseconds."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from rooflight.analysis import analyze
from rooflight.protocol import Finding, Rank
from rooflight.trace.timeline import Timeline
from tests.drawing import timeline_from_events

Event = dict[str, Any]

#: SM count, compute capability: what the profiler records of a device.
H100 = {"id": 0, "name": "NVIDIA H100 80GB HBM3", "numSms": 132, "computeMajor": 9, "computeMinor": 0}
V100 = {"id": 0, "name": "Tesla V100-SXM2-16GB", "numSms": 80, "computeMajor": 7, "computeMinor": 0}
_BYTES = {"float": 4, "c10::BFloat16": 2, "c10::Half": 2}


class Recording:
    """Host rows are of thread 1; GPU work is of stream 7 of device 0, linked to a launch of 1 us."""

    def __init__(self, device: Event = H100) -> None:
        self._device = device
        self._events: list[Event] = []
        self._calls = 0

    def host(self, name: str, start: float, dur: float, *, cat: str = "cpu_op", **args: Any) -> Recording:
        """A row of the host."""
        return self._add(cat, name, start, dur, 9, 1, args)

    def step(self, n: int, start: float, dur: float) -> Recording:
        return self.host(f"ProfilerStep#{n}", start, dur, cat="user_annotation")

    def op(
        self, name: str, start: float, dims: Sequence[Any] = (), dtype: str = "float", **more: Any
    ) -> Recording:
        """An op of 3 us on contiguous tensors of these dims; [] is a scalar."""
        args = {
            "Input Dims": list(dims),
            "Input type": [dtype if d else "Scalar" for d in dims],
            "Input Strides": [_contiguous(d) for d in dims],
            "Concrete Inputs": ["" if d else "1" for d in dims],
        }
        return self.host(name, start, 3, **args | more)

    def kernel(self, name: str, launch: float, start: float, dur: float, **args: Any) -> Recording:
        """A kernel, and the call that launches it."""
        return self.gpu("kernel", name, launch, start, dur, **args)

    def gpu(
        self,
        cat: str,
        name: str,
        launch: float,
        start: float,
        dur: float,
        *,
        call: str = "cudaLaunchKernel",
        **args: Any,
    ) -> Recording:
        """GPU work of any kind, and the call that launches it."""
        self._calls += 1
        self._add("cuda_runtime", call, launch, 1, 9, 1, {"correlation": self._calls})
        where = {"device": 0, "context": 1, "stream": 7, "correlation": self._calls}
        return self._add(cat, name, start, dur, 0, 7, where | args)

    def _add(self, cat: str, name: str, ts: float, dur: float, pid: int, tid: int, args: Event) -> Recording:
        self._events.append(
            {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}
        )
        return self

    def timeline(self, **meta: Any) -> Timeline:
        """The recording, with further fields beside its events."""
        return timeline_from_events(self._events, deviceProperties=[self._device], **meta)

    def shuffled(self, seed: int) -> Recording:
        """The same events in another order in the file."""
        other = Recording(self._device)
        other._events = random.Random(seed).sample(self._events, len(self._events))
        return other

    def rank(self) -> Rank:
        return analyze(self.timeline()).document.ranks[0]

    def findings(self) -> dict[str, Finding]:
        """The findings by code."""
        return {f.code: f for f in self.rank().findings}


def _contiguous(dims: Sequence[int]) -> list[int]:
    strides, n = [], 1
    for size in reversed(dims):
        strides.append(n)
        n *= size
    return strides[::-1]
