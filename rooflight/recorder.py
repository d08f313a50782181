"""Recording a window of steps from within a training script; :func:`record` is the way in.

Nothing but the standard library is imported here, torch when the window opens.  What comes after the window
is another process's work: :mod:`rooflight.handover`.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from rooflight import launch as launches
from rooflight.inject.rooflight_window import Plan, Window, rank, world_size

#: What the two processes say to each other in the folder of a recording, the child's output, its analysis.
ORDER, OUTCOME, LOG, ANALYSIS = "handover.json", "outcome.json", "handover.log", "analysis.json"
SERVER, TOKEN, PROJECT, STATE = "ROOFLIGHT_SERVER", "ROOFLIGHT_TOKEN", "ROOFLIGHT_PROJECT", "ROOFLIGHT_STATE"
#: The last launches whose recordings are kept, and for how long one is that nobody has analysed yet.
KEPT, UNFINISHED_S = 10, 86_400.0
#: As :func:`rooflight.inject.rooflight_window.world_size`, which asks torch first.
_WORLD = ("WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")
_NO_STEP = "no step was recorded: the program took fewer steps than wait and warmup"

#: How often this process has recorded into a run: of each launch the first recordings belong together.
_recorded: defaultdict[tuple[str, str | None], Iterator[int]] = defaultdict(itertools.count)


@dataclass(frozen=True)
class Target:
    """Where an analysis goes: ``server`` is ``None`` when it only stays on disk; ``launch`` is a word of the
    user's that the ranks of a launch share, where their launcher gives them none."""

    project: str
    run: str | None = None
    server: str | None = None
    token: str | None = None
    insecure: bool = False
    launch: str | None = None


class Recorder:
    """A window of the steps of the training around it; made by :func:`record`.

    ``folder`` holds the trace and its analysis, from the start on.  ``problem`` is what went wrong, in words,
    ``None`` when nothing did; nothing of it reaches the training.
    """

    def __init__(
        self, plan: Plan, target: Target, units_per_step: Mapping[str, float], out: Path | None
    ) -> None:
        self.target, self.units_per_step = target, dict(units_per_step)
        self.folder: Path | None = None
        self._plan, self._out = plan, out
        self._problem: str | None = None
        self._launch = ""
        self._window: Window | None = None
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def problem(self) -> str | None:
        """What went wrong, ``None`` as long as nothing did."""
        return self._problem or (self._window.problem if self._window else None)

    @property
    def page(self) -> str | None:
        """The address of the run's page, once the analysis was sent."""
        return _text(_outcome(self.folder).get("page"))

    def start(self) -> None:
        """The first step is about to begin; the ``with`` statement calls it."""
        self._try(self._open)

    def step(self) -> None:
        """A step has ended.  After the window it costs a comparison."""
        if self._window is None:
            return
        self._try(self._window.step)
        if self._window is not None and self._window.over:
            self._finish()

    def close(self) -> None:
        """The training ends; what was recorded so far is handed over.  The ``with`` statement calls it."""
        if self._window is not None:
            self._try(self._window.close)
            self._finish()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the analysis, at most ``timeout`` seconds; whether it is done, and sent where it has a
        server.  Why not is in :attr:`problem`."""
        if self._child is None:
            return False
        try:
            self._child.wait(timeout)
        except subprocess.TimeoutExpired:
            return False
        outcome = _outcome(self.folder)
        self._problem = self._problem or _text(outcome.get("problem"))
        if self._child.returncode and self._problem is None:
            self._problem = f"the analysis ended with {self._child.returncode}: see {LOG}"
        return self._child.returncode == 0

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _open(self) -> None:
        self._launch = self._identity(_world_told())
        self.folder = _new_folder(self._out, self._launch)
        self._window = Window(self._plan, self.folder)
        self._window.start()

    def _finish(self) -> None:
        """The window is over: its trace goes to another process."""
        window, self._window = self._window, None
        if window is None:
            return
        self._problem = self._problem or window.problem
        if window.trace is None:
            self._problem = self._problem or _NO_STEP
            self._try(lambda: _remove_empty(self.folder))
            return
        trace = window.trace
        self._try(lambda: self._hand_over(trace))

    def _hand_over(self, trace: Path) -> None:
        folder = trace.parent
        target, world = self.target, world_size()
        order = {
            "trace": trace.name,
            "rank": rank(),
            "world_size": world,
            "server": target.server,
            "insecure": target.insecure,
            "project": target.project,
            "run": target.run,
            "key": self._key(world),
            "units_per_step": self.units_per_step,
        }
        (folder / ORDER).write_text(json.dumps(order), encoding="utf-8")
        self._child = _start(folder, target.token)

    def _key(self, world: int | None) -> str:
        """What makes the run of all ranks of this launch one."""
        target = self.target
        # A program may join its group only after the recorder was made.
        late = _several(world) and not _several(_world_told())
        shared = self._identity(world) if late else self._launch
        number = next(_recorded[target.project, target.run])
        return launches.key(target.server, target.project, target.run, shared, str(number))

    def _identity(self, world: int | None) -> str:
        word = self.target.launch
        environ = os.environ if word is None else {**os.environ, launches.VARIABLE: word}
        return launches.identity(environ, several=_several(world))

    def _try(self, deed: Callable[[], object]) -> None:
        try:
            deed()
        except Exception as e:
            self._problem, self._window = self._problem or f"{type(e).__name__}: {e}", None


def record(
    project: str | None = None,
    run: str | None = None,
    *,
    server: str | None = None,
    token: str | None = None,
    insecure: bool = False,
    wait: int = 10,
    warmup: int = 2,
    active: int = 5,
    shapes: bool = True,
    stack: bool = False,
    memory: bool = False,
    units_per_step: Mapping[str, float] | None = None,
    out: str | os.PathLike[str] | None = None,
    launch: str | None = None,
) -> Recorder:
    """Record a window of a training's steps: ``with record(...) as rec:``, and ``rec.step()`` after each.

    ``wait`` steps pass, ``warmup`` run under torch's profiler unrecorded, ``active`` are recorded, with the
    ``shapes`` of their inputs; ``stack`` (Python frames) and ``memory`` (allocations) cost time in them.  A
    process of its own then analyses the trace and sends the analysis to the ``project`` (made when it is not
    there; $ROOFLIGHT_PROJECT, else "default") of ``server`` ($ROOFLIGHT_SERVER; without one it stays on
    disk) with ``token`` ($ROOFLIGHT_TOKEN).  The ranks of one launch become one run, called ``run``.

    ``units_per_step`` are what one rank's step holds, as ``{"tokens": 8192}``.  ``out`` is where the folder
    of the recording is made, in place of the last few kept in $ROOFLIGHT_STATE.  ``launch``
    ($ROOFLIGHT_LAUNCH) is a word that the ranks of this launch share and no other launch has, for launchers
    that give them none.

    Raises :class:`ValueError` or :class:`~rooflight.errors.Refused` for arguments that cannot be; from then
    on nothing: the training goes on, and :attr:`Recorder.problem` says why nothing was recorded.
    """
    plan = Plan(wait, warmup, active, shapes=shapes, stack=stack, memory=memory)
    environ = os.environ
    target = Target(
        project or environ.get(PROJECT) or "default",
        run,
        server or environ.get(SERVER) or None,
        token or environ.get(TOKEN) or None,
        insecure,
        launch,
    )
    units = _checked(target, units_per_step or {})
    return Recorder(plan, target, units, None if out is None else Path(out))


def _checked(target: Target, units: Mapping[str, float]) -> dict[str, float]:
    """The units; what the server's address, the token or the units have wrong is raised now."""
    if target.server is not None:
        from rooflight.client import Client

        Client(target.server, target.token, insecure=target.insecure)
    if not units:
        return {}
    from rooflight.results.throughput import checked

    return checked(units)


def _start(folder: Path, token: str | None) -> subprocess.Popen[bytes]:
    """The child: with a session of its own, so that no signal for the training's group reaches it."""
    environ = {name: value for name, value in os.environ.items() if name not in (TOKEN, "ROOFLIGHT_WINDOW")}
    if token is not None:
        environ[TOKEN] = token
    # -P: the working directory is the training's, and may hold a rooflight.py of its own.
    command = [sys.executable, "-P", "-m", "rooflight.handover", str(folder)]
    with (folder / LOG).open("ab") as log:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environ, start_new_session=True
        )


def state() -> Path:
    """The folder of what Rooflight keeps on this host, that of the agent."""
    if given := os.environ.get(STATE):
        return Path(given).expanduser()
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local/state") / "rooflight"


def _new_folder(out: Path | None, launched: str) -> Path:
    """A folder for this process's recording; beside it the last few are kept."""
    base = (state() / "records" if out is None else out).absolute()
    base.mkdir(parents=True, exist_ok=True)
    stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
    folder = Path(tempfile.mkdtemp(prefix=f"{stamp}-{launched[:12]}-", dir=base))
    if out is None:
        _forget_old(base)
    return folder


def _forget_old(base: Path) -> None:
    """Remove all but the last launches, and what is still to be analysed."""
    folders = sorted((path for path in base.iterdir() if path.name.count("-") >= 2), reverse=True)
    launches = list(dict.fromkeys(_launch_of(path) for path in folders))
    kept = set(launches[:KEPT])
    for path in folders:
        if _launch_of(path) not in kept and _finished(path):
            shutil.rmtree(path, ignore_errors=True)


def _launch_of(folder: Path) -> str:
    return folder.name.split("-")[1]


def _finished(folder: Path) -> bool:
    with contextlib.suppress(OSError):
        return (folder / OUTCOME).exists() or time.time() - folder.stat().st_mtime > UNFINISHED_S
    return False


def _remove_empty(folder: Path | None) -> None:
    if folder is not None and not any(folder.iterdir()):
        folder.rmdir()


def _outcome(folder: Path | None) -> dict[str, object]:
    """What the child says became of it; nothing before it ends."""
    if folder is None:
        return {}
    try:
        found = json.loads((folder / OUTCOME).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _world_told() -> int | None:
    """How many ranks a launcher speaks of; torch is not asked, which is not imported for it."""
    told = (os.environ.get(name, "") for name in _WORLD)
    return next((int(text) for text in told if text.isascii() and text.isdecimal()), None)


def _several(world: int | None) -> bool:
    return world is not None and world > 1
