"""What the recording leaves out and an option would bring."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from rooflight.cost.reasons import REASONS
from rooflight.findings.facts import Facts
from rooflight.findings.model import Found, Seen
from rooflight.findings.registry import rule
from rooflight.trace.tables import HostKind, among

#: Worth another recording: this share of the kernel time.
_SHARE = 0.1
_LACKING = {
    "no_shapes": "no input shapes: record_shapes=True lets FLOPs and bytes be worked out",
    "no_steps": "no marked steps: call prof.step() once per step",
    "gpu_model_unknown": "the GPU is not known: name it with --gpu",
}
#: Calls that launch one kernel, of every runtime and driver.
_CALLS = ("cuda", "cu", "hip")
_LAUNCHES = ("launchkernel", "launchkernelexc", "launchkernelex", "launchcooperativekernel")
#: What the reasons of unknown costs advise, in the order in which it is told.
_REMEDIES = {
    REASONS["data_dependent"].remedy: "an execution trace beside it (torch.profiler.ExecutionTraceObserver)",
    REASONS["dtype_unknown"].remedy: "an execution trace beside it has the types of lists",
    REASONS["lengths_are_values"].remedy: "hardware counters (--counters FILE) tell what arguments cannot",
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
    """What an option of the profiler, or a file beside the trace, would have told: shapes, steps, the GPU;
    modules, where ops were recorded without any; ops of replayed graphs, sizes of lists and of results that
    depend on values, and work that no argument tells, each from a tenth of the kernel time on; and kernels
    that were launched and not recorded, from a tenth of the launches on."""
    flagged = [_LACKING[f.code] for f in facts.flags if f.code in _LACKING]
    texts = (*flagged, _lost(facts), _modules(facts), _graphs(facts), *_costs(facts))
    if seen := tuple(Seen(text) for text in texts if text):
        yield Found(seen=seen, time_ns=0, saving_ns=None, assumption="")


def _lost(facts: Facts) -> str:
    """Kernels whose launch was recorded in the counted time, and nothing else."""
    host, names = facts.timeline.host, facts.timeline.names
    launching = np.array([i for i, name in enumerate(names) if _launches_kernel(name)], np.int64)
    calls = np.flatnonzero(among(host.name, launching) & (host.correlation >= 0))
    calls = calls[facts.counted_instants(host.start[calls])]
    lost = calls.size - np.count_nonzero(among(host.correlation[calls], facts.timeline.gpu.correlation))
    # What is launched into a graph that is being captured does not run then.
    if lost == 0 or lost < _SHARE * calls.size or any("BeginCapture" in name for name in names):
        return ""
    return (
        f"{lost:,} of {calls.size:,} launches without their kernel, so that what looks idle may not be: the "
        "profiler lost events, or stopped before they ran (torch.cuda.synchronize() first; fewer steps)"
    )


def _launches_kernel(name: str) -> bool:
    return name.startswith(_CALLS) and name.lower().endswith(_LAUNCHES)


def _modules(facts: Facts) -> str:
    """Ops are recorded, and nothing of the program around them."""
    rows = facts.kernel_rows
    named = (facts.links.op[rows] >= 0).any() and (facts.links.module[rows] < 0).all()
    python = (facts.timeline.host.kind == np.int8(HostKind.PYTHON)).any()
    if not named or python:
        return ""
    return "no modules: with_modules=True (TorchScript) or with_stack=True names the layer of each kernel"


def _graphs(facts: Facts) -> str:
    """Kernels of replayed graphs, which have no op of their own."""
    rows = facts.kernel_rows
    nameless = rows[(facts.timeline.gpu.graph_node[rows] > 0) & (facts.links.op[rows] < 0)]
    time = int(facts.own_ns[nameless].sum())
    if not _is_much(facts, time):
        return ""
    return (
        f"kernels of CUDA graphs without their ops, {facts.share(time)} of the time: --eager FILE, a "
        "recording of the same program without graphs, names them"
    )


def _costs(facts: Facts) -> Iterator[str]:
    """What would tell costs that are unknown."""
    time: Counter[str] = Counter()
    for i, g, v in facts.kernels():
        if v.regime == "unknown" and g.op is not None:
            reason = REASONS.get(g.cost.reason)
            time[reason.remedy if reason else ""] += facts.group_ns(i)
    for remedy, words in _REMEDIES.items():
        if _is_much(facts, time[remedy]):
            yield f"unknown FLOPs and bytes of {facts.share(time[remedy])} of the time: {words}"


def _is_much(facts: Facts, ns: int) -> bool:
    return ns >= _SHARE * int(facts.own_ns.sum()) > 0
