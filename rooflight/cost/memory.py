"""Copies and fills by the driver, whose bytes are recorded with them: origin ``measured``.

Not counted: the host's memory: only the device's is.

Source: the bytes that the profiler records with each copy.
"""

from __future__ import annotations

import re

from rooflight.cost.arguments import Arguments, whole_number
from rooflight.cost.registry import cost_model
from rooflight.cost.tensor import Piece, Unknown
from rooflight.cost.work import Work, pieces
from rooflight.dtypes import BY_NAME

_BYTE = BY_NAME["uint8"]
_DIRECTION = re.compile(r"\b(HtoD|DtoH|DtoD|PtoP|HtoH)\b", re.IGNORECASE)
_LONG_DIRECTION = re.compile(r"(Host|Device)To(Host|Device)", re.IGNORECASE)


def direction(name: str) -> str:
    """HtoD, DtoH, DtoD, PtoP or HtoH, from "Memcpy HtoD (Pinned -> Device)" or "CopyHostToDevice"."""
    found = _DIRECTION.search(name)
    if found:
        letters = found.group(1)
        return letters[0].upper() + "to" + letters[-1].upper()
    long = _LONG_DIRECTION.search(name)
    if long:
        return f"{long.group(1)[0].upper()}to{long.group(2)[0].upper()}"
    raise Unknown("direction_unknown")


@cost_model(family="memcpy", prefixes=("Memcpy", "memcpy", "CopyHostTo", "CopyDeviceTo", "hipMemcpy"))
def memcpy(args: Arguments) -> Work:
    """0 FLOPs.  From the host the device memory is only written, to the host only read; a copy on the
    device reads and writes.  HtoD, DtoH and PtoP also cross the link."""
    size = whole_number(args.call.gpu_args, "bytes", "Bytes", "Memory Bytes")
    where = direction(args.name)
    if size is None:
        raise Unknown("no_bytes")
    reads = size if where in ("DtoH", "DtoD", "PtoP") else 0
    writes = size if where in ("HtoD", "DtoD", "PtoP") else 0
    link = size if where in ("HtoD", "DtoH", "PtoP") else 0
    return Work(0, _moved(reads), _moved(writes), None, "", link)


@cost_model(family="memset", prefixes=("Memset", "memset", "hipMemset"))
def memset(args: Arguments) -> Work:
    """0 FLOPs; writes the recorded bytes."""
    size = whole_number(args.call.gpu_args, "bytes", "Bytes", "Memory Bytes")
    if size is None:
        raise Unknown("no_bytes")
    return Work(0, (), _moved(size))


def _moved(size: int) -> tuple[Piece, ...]:
    return pieces(Piece(size, _BYTE)) if size else ()
