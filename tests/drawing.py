"""Recordings drawn as text.

    us         0    5    10   15   20
    thread 1   aten::mm==
    thread 1     cudaLaunchKernel^1=
    stream 7             gemm^1=======

The first row is the ruler: a number stands over the column of its time.  A row is a thread of the host or
a stream of the device (``stream 7``, or ``gpu1 stream 7``); a span runs from the first letter of its name
to its last ``=`` (or letter), and after an ``=`` the next may begin at once.  ``^N`` gives a launch and its
GPU work the same correlation.  A name that begins with ``cuda``, ``hip`` or ``cu`` is an API call,
``ProfilerStep#`` and whatever stands in ``«»`` is an annotation, every other one on a thread an op; on a
stream ``Memcpy`` and ``Memset`` are copies.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from rooflight.readers import kineto
from rooflight.trace.timeline import Timeline

#: What a short name stands for: the name in full, and its args.
Told = tuple[str, Mapping[str, Any]]
_SPAN = re.compile(r"(?:«[^»]*»|[^\s=^«]+)(?:\^\d+)?=*")
_LABEL = re.compile(r"\s*(?:gpu(?P<gpu>\d+) )?(?P<kind>thread|stream) (?P<id>\d+)")


def timeline_from_text(text: str, told: Mapping[str, Told] | None = None, **meta: Any) -> Timeline:
    """The drawing, read by the real reader."""
    return timeline_from_events(events_from_text(text, told), **meta)


def timeline_from_events(events: list[dict[str, Any]], **meta: Any) -> Timeline:
    """Chrome events as a recording."""
    return kineto.read([json.dumps({**meta, "traceEvents": events}).encode()], "drawn.json")


def events_from_text(text: str, told: Mapping[str, Told] | None = None) -> list[dict[str, Any]]:
    """The Chrome events of a drawing; ``told`` gives what is drawn under a short name its own, and args."""
    rows = [line for line in text.splitlines() if line.strip()]
    at = _ruler(rows[0])
    events = [event for row in rows[1:] for event in _events(row, at)]
    for event in events:
        name, args = (told or {}).get(event["name"], (event["name"], {}))
        event["name"], event["args"] = name, event["args"] | args
    return events


def _ruler(row: str) -> Any:
    marks = [(m.start(), int(m[0])) for m in re.finditer(r"\d+", row)]
    (c0, t0), (c1, t1) = marks[0], marks[1]
    per_column = (t1 - t0) / (c1 - c0)
    return lambda column: t0 + (column - c0) * per_column


def _events(row: str, at: Any) -> Any:
    label = _LABEL.match(row)
    assert label, row
    for span in _SPAN.finditer(row, label.end()):
        name, _, correlation = span[0].rstrip("=").partition("^")
        args: dict[str, Any] = {"correlation": int(correlation)} if correlation else {}
        if label["kind"] == "stream":
            args |= {"device": int(label["gpu"] or 0), "stream": int(label["id"]), "context": 1}
        yield {
            "ph": "X",
            "cat": _category(label["kind"], name),
            "name": name.strip("«»"),
            "pid": int(label["gpu"] or 0) if label["kind"] == "stream" else 100,
            "tid": int(label["id"]),
            "ts": at(span.start()),
            "dur": at(span.end()) - at(span.start()),
            "args": args,
        }


def _category(kind: str, name: str) -> str:
    if kind == "stream":
        return {"Memcpy": "gpu_memcpy", "Memset": "gpu_memset"}.get(name[:6], "kernel")
    if name.startswith(("«", "ProfilerStep#")):
        return "user_annotation"
    return "cuda_runtime" if re.match(r"cuda|hip|cu[A-Z]", name) else "cpu_op"
