"""What the recording leaves out and an option would bring."""

from __future__ import annotations

from collections.abc import Iterator

from rooflight.findings.facts import Facts
from rooflight.findings.model import Found, Seen
from rooflight.findings.registry import rule

_LACKING = {
    "no_shapes": "no input shapes: record_shapes=True lets FLOPs and bytes be worked out",
    "no_steps": "no marked steps: call prof.step() once per step",
    "gpu_model_unknown": "the GPU is not known: name it with --gpu",
}


@rule(
    "recording-options",
    "The recording could tell more",
    why="What was not recorded stays unknown, and so does the verdict that rests on it.",
    fix="Record again with the options named: profile(record_shapes=True, with_stack=False, schedule=...), "
    "and "
    "prof.step() at the end of each step.",
    false_alarms="None: nothing is claimed.",
    quiet=True,
)
def recording_options(facts: Facts) -> Iterator[Found]:
    """Flags of the recording that an option of the profiler would have avoided."""
    seen = tuple(Seen(_LACKING[f.code]) for f in facts.flags if f.code in _LACKING)
    if seen:
        yield Found(seen=seen, time_ns=0, saving_ns=None, assumption="")
