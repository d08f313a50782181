"""``Trainer(callbacks=[RooflightCallback(project="llm")])``: a window of the steps of a Lightning Trainer."""

from __future__ import annotations

import atexit
import os
from typing import Any

from lightning.pytorch.callbacks import Callback

from rooflight.launch import VARIABLE, process
from rooflight.recorder import Recorder, record


class RooflightCallback(Callback):  # type: ignore[misc]
    """Takes the arguments of :func:`rooflight.record`.  A step ends with the batch in which an optimizer
    took one.  ``recorder`` is what :func:`rooflight.record` gives, once training has begun."""

    def __init__(self, **arguments: Any) -> None:
        # What the arguments have wrong is raised where they stand.
        record(**arguments)
        self._arguments = arguments
        self._seen = 0
        self.recorder: Recorder | None = None

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """The window begins to count."""
        self.recorder = record(**{"launch": _launched(trainer), **self._arguments})
        self._seen = trainer.global_step
        atexit.register(self.recorder.close)
        self.recorder.start()

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Of the batches whose gradients are gathered only the last ends a step."""
        if self.recorder is not None and trainer.global_step != self._seen:
            self._seen = trainer.global_step
            self.recorder.step()

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """A window that is open is cut short."""
        self._close()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """So is that of a training that is broken off."""
        self._close()

    def _close(self) -> None:
        if self.recorder is not None:
            self.recorder.close()


def _launched(trainer: Any) -> str | None:
    """What ranks share that Lightning itself starts: rank 0 starts the others, and is their parent.

    ``None`` where another launcher started them, which tells more.
    """
    launcher = getattr(trainer.strategy, "launcher", None)
    cluster = getattr(trainer.strategy, "cluster_environment", None)
    if (
        trainer.world_size == 1
        or os.environ.get(VARIABLE)
        or type(cluster).__name__ != "LightningEnvironment"
    ):
        return None
    return process(os.getpid() if getattr(launcher, "procs", None) else os.getppid())
