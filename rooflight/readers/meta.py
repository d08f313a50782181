"""What a trace says of itself, beside its events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rooflight.readers.texts import shown
from rooflight.trace.timeline import DeviceProperties, Meta
from rooflight.trace.times import MAX_NS

_LIMITS = (
    "maxThreadsPerBlock",
    "maxThreadsPerMultiprocessor",
    "regsPerBlock",
    "regsPerMultiprocessor",
    "sharedMemPerBlock",
    "sharedMemPerBlockOptin",
    "sharedMemPerMultiprocessor",
    "maxSharedMemoryPerMultiProcessor",
    "warpSize",
)
_SOFTWARE = (
    "cuda_runtime_version",
    "cuda_driver_version",
    "cupti_version",
    "hip_runtime_version",
    "hip_driver_version",
    "roctracer_version",
    "trace_id",
)


def read_meta(doc: Mapping[str, Any]) -> Meta:
    """The metadata of a trace; what is absent or of an impossible type is unknown."""
    info = doc.get("distributedInfo")
    info = info if isinstance(info, dict) else {}
    software = {key: _text(doc[key]) for key in _SOFTWARE if isinstance(doc.get(key), int | str)}
    return Meta(
        base_ns=_base_ns(doc.get("baseTimeNanoseconds")),
        rank=whole(info.get("rank")),
        world_size=whole(info.get("world_size")),
        host=_name(doc.get("host_name")) or None,
        devices=_devices(doc.get("deviceProperties")),
        software=software,
        is_hip=any(key.startswith(("hip", "roctracer")) for key in software),
    )


def _base_ns(value: Any) -> int:
    base_ns = whole(value)
    return base_ns if base_ns is not None and base_ns <= MAX_NS else 0


def whole(value: Any) -> int | None:
    """A whole number that is not negative, also a quoted one."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    try:
        n = int(value)
    except ValueError:
        return None
    return n if 0 <= n < 1 << 63 else None


def _devices(rows: Any) -> tuple[DeviceProperties, ...]:
    if not isinstance(rows, list):
        return ()
    return tuple(_device(row) for row in rows if isinstance(row, dict))


def _device(row: Mapping[str, Any]) -> DeviceProperties:
    major, minor = whole(row.get("computeMajor")), whole(row.get("computeMinor"))
    return DeviceProperties(
        id=_text(row.get("id", "")),
        name=_name(row.get("name")),
        memory_bytes=whole(row.get("totalGlobalMem")),
        compute=None if major is None or minor is None else f"{major}.{minor}",
        sm_count=whole(row.get("numSms")),
        limits={key: n for key in _LIMITS if (n := whole(row.get(key))) is not None},
    )


def _name(value: Any) -> str:
    return _text(value) if isinstance(value, str) else ""


def _text(value: Any) -> str:
    return shown(str(value))
