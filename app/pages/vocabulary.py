"""Words of regimes, parts, grades and flags, as a page writes them."""

from __future__ import annotations

from rooflight.protocol import IDLE_PARTS

NAMES = {
    "compute": "Compute",
    "memory": "Memory",
    "latency": "Latency",
    "unknown": "Unknown",
    "communication": "Communication",
    "copy": "Copies",
    "input": "Input",
    "sync": "Sync",
    "dispatch": "Dispatch",
    "host": "Host",
    "launch": "Launch",
    "dependency": "Dependency",
    "unknown_idle": "Idle, no cause",
}

#: What a part means, shown on hover; for a device and, where it differs, for the CPU.
MEANING = {
    "compute": "kernels that keep the arithmetic units at 60 % of their practical roof or more",
    "memory": "kernels that keep the memory at 60 % of its practical bandwidth or more",
    "latency": "kernels that keep neither arithmetic nor memory busy",
    "unknown": "kernels whose FLOPs or bytes are not known",
    "communication": "only communication kernels run: nothing hides them",
    "copy": "only copies and memsets run",
    "input": "the device is idle while the host waits for the next batch",
    "sync": "the device is idle while the host waits inside a synchronising call",
    "dispatch": "the device is idle while the host works through framework calls",
    "host": "the device is idle while the host runs other code",
    "launch": "the device is idle between a launch and the start of its kernel",
    "dependency": "the device is idle though the next kernel was queued: it waits for other work",
    "unknown_idle": "the device is idle and the recording holds no launch that tells why",
}

#: Colour class of a part: launch and dispatch share latency's, sync shares host's.
COLOURS = {"unknown_idle": "unknown"}

GRADES = {"complete": "Complete", "usable": "Usable", "unreliable": "Unreliable"}

#: Parts in which nothing useful runs are hatched, so that colour is never alone.
IDLE = frozenset(IDLE_PARTS)

ORIGINS = {
    "measured": "hardware counters",
    "modelled": "from shapes and dtypes",
    "inferred": "from the kernel's name and grid",
    "unknown": "no cost is known",
}

CEILINGS = {
    "measured": "measured on this device",
    "factor": "known factor of this model",
    "family": "usual factor of this family",
    "assumed": "assumed factor",
}


def colour(part: str) -> str:
    """The class ``r-…`` of a part or a regime."""
    return COLOURS.get(part, part if part in NAMES else "unknown")


def name(part: str) -> str:
    """The word for a part or a regime; one that we do not know is shown as it came."""
    return NAMES.get(part, part)
