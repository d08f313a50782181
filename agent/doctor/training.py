"""The training processes of this host: whether each could be recorded while it runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from agent.doctor.rows import Row
from agent.processes import Processes

_LIBRARY = "libtorch"
_ASKS, _FOLDER = "KINETO_USE_DAEMON", "KINETO_IPC_SOCKET_DIR"
_MOST_NAMED = 5


def training(processes: Processes, socket_dir: Path | None) -> Iterator[Row]:
    """Processes with torch of this user, for root of everybody; their environment is that of their start."""
    found = {pid: processes.environ(pid) for pid in processes.pids() if processes.maps(pid, _LIBRARY)}
    silent = [pid for pid, environ in found.items() if _ASKS not in environ]
    asking = [pid for pid in found if pid not in silent]
    elsewhere = [pid for pid in asking if not _reaches(processes, pid, found[pid], socket_dir)]
    if not found:
        yield Row("training", "ok", "no process with torch runs")
    if asking:
        yield Row("training", "ok", f"started with {_ASKS}: {_named(asking)}")
    if silent:
        fix = f"Start it with {_ASKS}=1, or by `rooflight-agent run -- COMMAND`"
        yield Row("training", "warning", f"started without {_ASKS}: {_named(silent)}", fix)
    if elsewhere:
        fix = f"Give the agent's --socket-dir and the training's {_FOLDER} the same folder"
        yield Row("training", "warning", f"asks where this agent does not answer: {_named(elsewhere)}", fix)


def _reaches(processes: Processes, pid: int, environ: dict[str, str], ours: Path | None) -> bool:
    """Whether its questions come to us; a folder as another container sees it cannot be compared."""
    folder = environ.get(_FOLDER)
    if not folder:
        return processes.shares(pid, "net")
    return ours is not None and (not processes.shares(pid, "mnt") or Path(folder) == ours)


def _named(pids: list[int]) -> str:
    more = len(pids) - _MOST_NAMED
    return ", ".join(map(str, pids[:_MOST_NAMED])) + (f" and {more} more" if more > 0 else "")
