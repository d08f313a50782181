"""``Trainer(..., callbacks=[RooflightCallback(project="llm")])``: a window of the steps of a Trainer."""

from __future__ import annotations

import atexit
from typing import Any

from transformers import TrainerCallback

from rooflight.recorder import Recorder, record


class RooflightCallback(TrainerCallback):  # type: ignore[misc]
    """Takes the arguments of :func:`rooflight.record`.  A step is one of the optimizer, with all of the
    batches whose gradients it takes.  ``recorder`` is what :func:`rooflight.record` gives, once training
    has begun."""

    def __init__(self, **arguments: Any) -> None:
        # What the arguments have wrong is raised where they stand.
        record(**arguments)
        self._arguments = arguments
        self.recorder: Recorder | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """The window begins to count."""
        self.recorder = record(**self._arguments)
        # A training that is broken off has no end.
        atexit.register(self.recorder.close)
        self.recorder.start()

    def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """A step of the optimizer has ended."""
        if self.recorder is not None:
            self.recorder.step()

    def on_train_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """A window that is open is cut short."""
        if self.recorder is not None:
            self.recorder.close()
