"""The cost of starting an operator that does nothing worth mentioning."""

from __future__ import annotations

from dataclasses import replace

from agent.device import Device, import_torch
from agent.measure.timing import Tally, Timing, Watch

BATCH = 200


class Launches:
    """Seconds from one in-place addition on one element to the next, over batches of :data:`BATCH`.

    On a GPU the batch ends with a synchronisation, so it is the slower of host and device, as in a
    stream of small kernels.
    """

    def __init__(self, device: Device, watch: Watch) -> None:
        self._torch = import_torch()
        self._one = self._torch.zeros(1, device=device.place)
        self._watch, self._tally = watch, Tally()

    def measure(self, budget_s: float) -> None:
        """Batches for about ``budget_s`` seconds."""
        with self._torch.no_grad():
            self._watch.turn(self._batch, self._tally, budget_s)

    def timing(self) -> Timing:
        """Seconds of one operator."""
        batch = self._watch.timing(self._tally)
        return replace(batch, seconds=batch.seconds / BATCH)

    def _batch(self) -> None:
        for _ in range(BATCH):
            self._one.add_(1.0)
