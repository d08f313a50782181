"""Loops that run beside each other until they are told to stop, and are started again when they fail."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

#: A loop gets a flag and returns soon after it is set.
Body = Callable[[threading.Event], None]
#: Pauses before a failed loop starts again: 1, 2, 4, ... s, at most this.
LONGEST_PAUSE_S = 60.0
#: A loop that ran for so long has recovered: its next failure is its first.
STEADY_S = 300.0
#: What a loop gets to end in after it was told to.
GRACE_S = 10.0


@dataclass
class Loop:
    """``failures`` counts all of them, ``problem`` is the last one's words.  One that is not ``awaited`` may
    sit in a long question to the server: nothing is lost when it ends with the process."""

    name: str
    body: Body
    awaited: bool = True
    failures: int = 0
    problem: str | None = None
    thread: threading.Thread | None = field(default=None, repr=False)

    @property
    def alive(self) -> bool:
        return self.thread is not None and self.thread.is_alive()


@dataclass
class Supervisor:
    """``with Supervisor(loops, note): ...``: the loops run meanwhile."""

    loops: Sequence[Loop]
    note: Callable[[str], None]
    stop: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Supervisor:
        for loop in self.loops:
            loop.thread = threading.Thread(target=self._keep, args=(loop,), name=loop.name, daemon=True)
            loop.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        end = time.monotonic() + GRACE_S
        for loop in self.loops:
            if loop.thread is not None and loop.awaited:
                loop.thread.join(max(0.0, end - time.monotonic()))
                if loop.alive:
                    self.note(f"{loop.name} did not end in {GRACE_S:.0f} s and is left behind")

    def _keep(self, loop: Loop) -> None:
        pause = 1.0
        while not self.stop.is_set():
            began = time.monotonic()
            try:
                loop.body(self.stop)
            except Exception as e:  # one loop's failure is not the others'
                if time.monotonic() - began > STEADY_S:
                    pause = 1.0
                loop.failures, loop.problem = loop.failures + 1, f"{type(e).__name__}: {e}"
                self.note(f"{loop.name} failed and starts again in {pause:.0f} s: {loop.problem}")
                self.stop.wait(pause)
                pause = min(LONGEST_PAUSE_S, 2 * pause)
            else:
                return
