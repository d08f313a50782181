"""An order in the words of Kineto: lines of KEY=VALUE."""

from __future__ import annotations

from pathlib import PurePosixPath

from rooflight.captures import Order

#: What is worth recording on a GPU and on a CPU; Python frames only when stacks are asked for.
ACTIVITIES = (
    "cpu_op",
    "user_annotation",
    "gpu_user_annotation",
    "gpu_memcpy",
    "gpu_memset",
    "kernel",
    "cuda_runtime",
    "cuda_driver",
)
#: Seconds under the profiler before a timed recording starts: the first records of CUPTI are slow.
WARMUP_S = 1
#: Iterations of several processes start at a multiple of this where the order names none.
ROUNDUP = 100


def log_file(token: str) -> PurePosixPath:
    """Where a process is told to write; newer Kineto takes no folder but /tmp unless told otherwise."""
    return PurePosixPath(f"/tmp/rooflight-{token}.json")  # noqa: S108 - the token cannot be guessed


def written_file(token: str, pid: int) -> PurePosixPath:
    """Where it then writes: Kineto adds the pid of the process's own namespace."""
    return PurePosixPath(f"/tmp/rooflight-{token}_{pid}.json")  # noqa: S108 - the token cannot be guessed


def config(order: Order, token: str, *, start_ms: int, several: bool) -> str:
    """The text for one process; ``start_ms``: when a timed recording starts, in ms since the epoch, 0 for
    at once.  Every line is ours: nothing that came from outside is copied into it but numbers."""
    lines = {
        "ACTIVITIES_LOG_FILE": str(log_file(token)),
        "ACTIVITY_TYPES": ",".join((*ACTIVITIES, *["python_function"] * order.stack)),
        **_window(order, start_ms, several),
        "PROFILE_REPORT_INPUT_SHAPES": _flag(order.shapes),
        "PROFILE_WITH_STACK": _flag(order.stack),
        "PROFILE_WITH_MODULES": _flag(order.modules),
        "PROFILE_PROFILE_MEMORY": _flag(order.memory),
        "REQUEST_TRACE_ID": token,
    }
    return "".join(f"{key}={value}\n" for key, value in lines.items())


def _window(order: Order, start_ms: int, several: bool) -> dict[str, str]:
    if order.iterations is None:
        return {
            "PROFILE_START_TIME": str(start_ms),
            "ACTIVITIES_WARMUP_PERIOD_SECS": str(WARMUP_S),
            "ACTIVITIES_DURATION_MSECS": str(order.duration_ms),
        }
    return {
        "PROFILE_START_ITERATION": "0",
        "PROFILE_START_ITERATION_ROUNDUP": str(order.roundup or (ROUNDUP if several else 1)),
        "ACTIVITIES_WARMUP_ITERATIONS": str(order.warmup_iterations),
        "ACTIVITIES_ITERATIONS": str(order.iterations),
    }


def _flag(value: bool) -> str:
    return "true" if value else "false"
