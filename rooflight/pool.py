"""The files of a run, each analysed in a process of its own, several at a time.

The processes are started anew (no fork of a program that has threads, none that runs the caller's script
again) and give back compact results, so that memory is bounded by the largest file in each of them.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from subprocess import PIPE, Popen

from rooflight import worker
from rooflight.errors import Refused, RooflightError
from rooflight.results.file import Analyst, FileTask
from rooflight.results.result import RankResult

#: Starting a process costs more than analysing files of this size in all.
_WORTH_A_PROCESS_BYTES = 1 << 20
#: -P: a folder called rooflight/ in the working directory must not be taken for ours.
COMMAND = (sys.executable, "-P", "-m", worker.__name__)


def analyse_all(tasks: Sequence[FileTask], jobs: int | None = None) -> list[RankResult]:
    """The results of all files, in order, by ``jobs`` processes; 1 is this one.

    Without a number it takes a process per CPU, and this one alone where there is little to do.
    Raises what the first file in order raises that cannot be analysed.
    """
    count = min(len(tasks), _suitable(tasks) if jobs is None else jobs)
    if count <= 1:
        analyst = Analyst()
        return [analyst.result(t) for t in tasks]
    return _Shared(tasks).by(count)


def _suitable(tasks: Sequence[FileTask]) -> int:
    sizes = (path.stat().st_size for t in tasks if (path := Path(os.fsdecode(t.path))).is_file())
    if not sys.executable or sum(sizes) < _WORTH_A_PROCESS_BYTES:
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Shared:
    """The tasks that are left and what became of the others; a thread each talks to a process."""

    def __init__(self, tasks: Sequence[FileTask]) -> None:
        self._left: Iterator[tuple[int, FileTask]] = enumerate(tasks)
        self._results: dict[int, RankResult] = {}
        self._errors: dict[int, Exception] = {}
        self._lock = threading.Lock()

    def by(self, count: int) -> list[RankResult]:
        """Share them out among ``count`` processes."""
        with ExitStack() as processes:
            mine = [processes.enter_context(_process()) for _ in range(count)]
            with ThreadPoolExecutor(count) as threads:
                try:
                    for done in [threads.submit(self._serve, p) for p in mine]:
                        done.result()
                finally:
                    # Also on an interrupt: the threads read the end of the stream then, and end.
                    for p in mine:
                        p.kill()
        if self._errors:
            raise self._errors[min(self._errors)]
        return [result for _, result in sorted(self._results.items())]

    def _serve(self, process: Popen[bytes]) -> None:
        while (taken := self._next()) is not None:
            place, task = taken
            try:
                self._results[place] = _analyse(process, task)
            except Exception as e:
                self._errors[place] = e

    def _next(self) -> tuple[int, FileTask] | None:
        """The next task, none after an error: tasks are taken in order, so that the first is found."""
        with self._lock:
            return None if self._errors else next(self._left, None)


@contextmanager
def _process() -> Iterator[Popen[bytes]]:
    """A :mod:`rooflight.worker`, ended in the end."""
    with suppress(BrokenPipeError), Popen(COMMAND, stdin=PIPE, stdout=PIPE, env=_environment()) as process:
        try:
            yield process
        finally:
            process.kill()


def _analyse(process: Popen[bytes], task: FileTask) -> RankResult:
    """The result of a file; raises what was raised there, or that the process died over it."""
    reply = _asked(process, task)
    match reply:
        case worker.Done(result=result):
            return result
        case worker.NotTaken():
            raise _error(reply)
        case worker.Broken(text=text):
            raise RuntimeError(f"{task.name}:\n{text}")


def _asked(process: Popen[bytes], task: FileTask) -> worker.Reply:
    to, answers = process.stdin, process.stdout
    assert to is not None and answers is not None  # noqa: S101, PT018
    with suppress(BrokenPipeError):
        worker.send(to, task)
    data = worker.receive(answers)
    if data is None:
        raise _death(process.wait(), task)
    reply: worker.Reply = worker.read_reply(data)
    return reply


def _death(status: int, task: FileTask) -> Refused:
    how = f"was killed ({signal.Signals(-status).name})" if status < 0 else f"ended with status {status}"
    return Refused(
        f"the process that analysed it {how}",
        where=task.name,
        hint="if memory ran out: analyse fewer files at once, or record fewer steps",
    )


def _environment() -> dict[str, str]:
    """That of this process; modules are found where this process finds them, the working directory (the
    empty entry) made explicit.  A BLAS that starts threads of its own would only take memory."""
    path = os.pathsep.join(p or str(Path.cwd()) for p in sys.path)
    return {**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def _error(reply: worker.NotTaken) -> RooflightError:
    kind = _kinds(RooflightError)[reply.kind]
    if issubclass(kind, Refused):
        return kind(reply.title, where=reply.where, hint=reply.hint)
    return kind(reply.title)


def _kinds(kind: type[RooflightError]) -> dict[str, type[RooflightError]]:
    """Every error of the domain by its name."""
    found = {kind.__name__: kind}
    for narrower in kind.__subclasses__():
        found |= _kinds(narrower)
    return found
