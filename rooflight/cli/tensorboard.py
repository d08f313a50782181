"""The steps as the TensorBoard plugin of torch's profiler would split them, as text or JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rooflight.cli.terminal import safe
from rooflight.protocol import encode
from rooflight.readers import read
from rooflight.results.tensorboard import CLASSES, TensorboardStep, tensorboard_view

FORMATS = ("table", "json")
_NAMES = ("Kernel", "Memcpy", "Memset", "Comm.", "Runtime", "DataLoader", "CPU Exec", "Other")


def render(files: Sequence[Path], fmt: str, *, salvage: bool = False) -> bytes:
    """The steps of each file, in one of :data:`FORMATS`."""
    timelines = (read(path, salvage=salvage) for path in files)
    views = [(t.source, tensorboard_view(t)) for t in timelines]
    if fmt == "json":
        return encode([{"source": source, "steps": steps} for source, steps in views]) + b"\n"
    text = "\n".join(line for source, steps in views for line in _table(source, steps))
    return (text + "\n").encode("utf-8", "backslashreplace")


def _table(source: str, steps: Sequence[TensorboardStep]) -> Iterator[str]:
    yield safe(source)
    if not steps:
        yield "neither steps nor ops were recorded"
        return
    yield f"{'step':>8}{'ms':>11}" + "".join(f"{name:>11}" for name in _NAMES)
    for s in steps:
        name = "all" if s.n is None else f"{s.n}{'' if s.shown else '*'}"
        yield f"{name:>8}{_times([s])}"
    shown = [s for s in steps if s.shown]
    if shown:
        yield f"{'mean':>8}{_times(shown)}"
    if len(shown) < len(steps):
        yield "* left out by the plugin: too little of its work on the device was recorded"


def _times(steps: Sequence[TensorboardStep]) -> str:
    """The mean of each column, in ms."""
    sums = (sum(float(getattr(s, f"{what}_us")) for s in steps) for what in ("step_time", *CLASSES))
    return "".join(f"{total / len(steps) / 1000:>11.3f}" for total in sums)
