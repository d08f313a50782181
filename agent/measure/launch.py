"""The cost of starting an operator that does nothing worth mentioning."""

from __future__ import annotations

from agent.device import Device, import_torch
from agent.measure.timing import Timing, repeat

BATCH = 200


def launch(device: Device, budget_s: float) -> Timing:
    """Seconds from one in-place addition on one element to the next, over batches of :data:`BATCH`.

    On a GPU the batch ends with a synchronisation, so it is the slower of host and device, as in a
    stream of small kernels.
    """
    torch = import_torch()
    one = torch.zeros(1, device=device.place)

    def batch() -> None:
        for _ in range(BATCH):
            one.add_(1.0)

    with torch.no_grad():
        timing = repeat(batch, torch.cuda.synchronize if device.is_gpu else lambda: None, budget_s)
    return Timing(timing.seconds / BATCH, timing.spread, timing.estimator)
