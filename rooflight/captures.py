"""Orders to record processes that already run, and what became of them: agent, server and command line
speak these.

A process answers only if it was started with ``KINETO_USE_DAEMON`` set; nothing else is asked of it.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct, field

from rooflight.errors import Refused

LONGEST_MS = 60_000
MOST_ITERATIONS = 1000
MOST_PIDS = 1024

Pid = Annotated[int, Meta(ge=1, le=2**31 - 1)]
Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$")]


class Order(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Record these processes once, for ``duration_ms`` or for exactly ``iterations`` optimizer steps.

    ``pids`` are as the agent's host sees them; one selects the processes started under it too, so the pid
    of a launcher stands for its ranks.  ``job`` is the number of a Slurm job.  Without either every process
    that asks is meant.  ``roundup``: iterations start at a multiple of it, so that ranks that hear of the
    order at different moments record the same ones.
    """

    id: Name
    pids: Annotated[tuple[Pid, ...], Meta(max_length=MOST_PIDS)] = ()
    job: Annotated[int, Meta(ge=1)] | None = None
    duration_ms: Annotated[int, Meta(ge=1, le=LONGEST_MS)] | None = None
    iterations: Annotated[int, Meta(ge=1, le=MOST_ITERATIONS)] | None = None
    warmup_iterations: Annotated[int, Meta(ge=0, le=100)] = 1
    roundup: Annotated[int, Meta(ge=1, le=100_000)] | None = None
    shapes: bool = True
    stack: bool = False
    modules: bool = False
    memory: bool = False
    project: str | None = None
    run: str | None = None
    keep_trace: bool = False
    timeout_s: Annotated[float, Meta(gt=0, le=3600)] = 120.0

    def __post_init__(self) -> None:
        if (self.duration_ms is None) == (self.iterations is None):
            raise ValueError("an order has either duration_ms or iterations")


class Captured(Struct, kw_only=True):
    """One process of a capture.  ``state``: waiting (has not asked yet), ordered (has the order), written
    (its trace is here), done, failed.  ``problem`` says why it failed, and names the process."""

    pid: int
    state: str = "waiting"
    problem: str | None = None
    rank: int | None = None
    command: str | None = None


class Outcome(Struct, kw_only=True):
    """What became of an order; ``state``: open, analysing, done (at least one process recorded), failed."""

    id: str
    state: str = "open"
    problem: str | None = None
    processes: list[Captured] = field(default_factory=list)
    run_id: str | None = None


def read_order(document: Any) -> Order:
    """An order from plain JSON values; :class:`Refused` names the field that is wrong."""
    import msgspec

    try:
        return msgspec.convert(document, Order, strict=True)
    except msgspec.ValidationError as e:
        raise Refused(f"not an order for a capture: {e}") from e
