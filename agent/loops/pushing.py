"""The spool's way to the server."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

from agent.delivery import Delivery


@dataclass
class PushingLoop:
    """Steps of the delivery, each when the one before said."""

    delivery: Delivery
    #: What arrives meanwhile is sent this soon.
    look_s: float = 1.0

    def __call__(self, stop: threading.Event) -> None:
        while not stop.is_set():
            wait = self.delivery.step(time.monotonic())
            stop.wait(min(wait, self.look_s))
