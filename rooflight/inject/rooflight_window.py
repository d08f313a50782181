"""A window of steps under torch's profiler: some steps pass, some warm it up, some are recorded.

One class for the launcher, which counts the steps of an optimizer, and for ``rooflight.record``, whose user
says where a step ends.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

#: How the files of a process end: its trace, what is to be known of it, and the execution trace.
TRACE, NOTES, EXECUTION = ".pt.trace.json.gz", ".notes.json", ".et.json"
_RANK = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
#: Of SLURM's step: the tasks of its job are also told to a script that starts one process after another.
_WORLD = ("WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")


@dataclass(frozen=True)
class Plan:
    """``wait`` steps pass, ``warmup`` run under the profiler unrecorded, ``active`` are recorded.

    ``stack``, ``modules`` and ``memory`` cost time in the steps that are recorded; ``execution_trace`` writes
    a second file with the outputs of every op.
    """

    wait: int = 10
    warmup: int = 2
    active: int = 5
    shapes: bool = True
    stack: bool = False
    modules: bool = False
    memory: bool = False
    execution_trace: bool = False

    def __post_init__(self) -> None:
        if self.active < 1 or self.wait < 0 or self.warmup < 0:
            raise ValueError("a window records at least one step, after 0 or more of waiting and of warm-up")


class Window:
    """Call :meth:`step` at the end of each step.  The trace, and notes on it, are in ``folder`` when the
    window is over; after that a call costs a comparison.

    While the program profiles itself the window waits.  What goes wrong is kept in :attr:`problem` and in the
    notes, never raised: the training goes on.
    """

    def __init__(self, plan: Plan, folder: str | Path) -> None:
        self.plan, self.folder = plan, Path(folder)
        self.over = False
        self.steps = 0
        self.problem: str | None = None
        self.trace: Path | None = None
        self._profiler: Any = None
        self._ends: list[float] = []

    def start(self) -> None:
        """The first step is about to begin: a window that waits for none opens."""
        if self.plan.wait == 0:
            self._try(self._begin)

    def step(self) -> None:
        """A step has ended."""
        if self.over:
            return
        self.steps += 1
        if self._profiler is not None:
            self._try(self._advance)
        elif self.steps >= self.plan.wait and not _profiling():
            self._try(self._begin)

    def close(self) -> None:
        """The program ends; a window that is open is cut short, and what it has is written."""
        profiler, self._profiler, self.over = self._profiler, None, True
        if profiler is not None:
            self._try(profiler.stop)

    def _begin(self) -> None:
        from torch.profiler import profile, schedule

        self.folder.mkdir(parents=True, exist_ok=True)
        plan = self.plan
        profiler = profile(
            activities=_activities(),
            schedule=schedule(wait=0, warmup=plan.warmup, active=plan.active, repeat=1),
            on_trace_ready=self._written,
            record_shapes=plan.shapes,
            with_stack=plan.stack or plan.modules,
            with_modules=plan.modules,
            profile_memory=plan.memory,
            execution_trace_observer=self._observer() if plan.execution_trace else None,
        )
        profiler.start()
        self._profiler, self._ends = profiler, [time.monotonic()]

    def _advance(self) -> None:
        self._ends.append(time.monotonic())
        self._profiler.step()
        if len(self._ends) > self.plan.warmup + self.plan.active:
            self.close()

    def _observer(self) -> Any:
        from torch.profiler import ExecutionTraceObserver

        return ExecutionTraceObserver().register_callback(str(self._file(EXECUTION)))

    def _written(self, profiler: Any) -> None:
        # The name is there only when the file is whole.
        part = self._file(".part" + TRACE)
        profiler.export_chrome_trace(str(part))
        self.trace = part.replace(self._file(TRACE))
        self._note()

    def _note(self) -> None:
        notes = {
            "pid": os.getpid(),
            "rank": rank(),
            "world_size": world_size(),
            "step_seconds": [b - a for a, b in pairwise(self._ends)],
            "problem": self.problem,
        }
        self._file(NOTES).write_text(json.dumps(notes), encoding="utf-8")

    def _try(self, deed: Any) -> None:
        try:
            deed()
        except Exception as e:
            self.problem, self.over, self._profiler = f"{type(e).__name__}: {e}", True, None
            self._tell()

    def _tell(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._note()
        except OSError:
            return

    def _file(self, ending: str) -> Path:
        number = rank()
        who = f"pid{os.getpid()}" if number is None else f"rank{number}-pid{os.getpid()}"
        return self.folder / f"{who}{ending}"


def rank() -> int | None:
    """This process's rank: torch.distributed's word, else its launcher's, else ``None``."""
    return _group("get_rank", _RANK)


def world_size() -> int | None:
    """How many ranks there are, ``None`` where nobody says."""
    return _group("get_world_size", _WORLD)


def _profiling() -> bool:
    """Whether the program profiles itself: a second profiler would end the first."""
    import torch

    # torch has no other way to ask.
    return bool(getattr(torch.autograd, "_profiler_enabled")())  # noqa: B009


def _group(asked: str, variables: tuple[str, ...]) -> int | None:
    from torch import distributed

    if distributed.is_available() and distributed.is_initialized():
        return int(getattr(distributed, asked)())
    for variable in variables:
        text = os.environ.get(variable, "")
        if text.isascii() and text.isdecimal():
            return int(text)
    return None


def _activities() -> list[Any]:
    import torch
    from torch.profiler import ProfilerActivity

    found = [ProfilerActivity.CPU]
    if torch.cuda.is_available():
        found.append(ProfilerActivity.CUDA)
    if torch.xpu.is_available():
        found.append(ProfilerActivity.XPU)
    return found
