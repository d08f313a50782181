"""What each regime means and what to do first, in words that the command line and the pages share."""

from __future__ import annotations

from collections.abc import Mapping

#: Regime → what its time is spent on, to follow "58.7 ms of 174.8 ms per step are ...".
MEANING: Mapping[str, str] = {
    "compute": "kernels at the compute roof",
    "memory": "kernels at the memory bandwidth",
    "latency": "launches and kernels that keep neither the compute units nor the memory busy",
    "communication": "communication that no compute hides",
    "input": "waiting for input data",
    "host": "waiting for the host",
    "copy": "copies that no kernel hides",
    "dependency": "queued work waiting for something else",
    "unknown": "kernels of unknown cost and gaps of unknown cause",
}
#: As above where the host CPU is the device (DEFINITIONS §20), where it differs.
MEANING_ON_CPU: Mapping[str, str] = {
    "compute": "ops at the compute roof of this CPU",
    "memory": "ops at the memory bandwidth of this CPU",
    "latency": "ops that keep neither the cores nor the memory busy",
    "host": "code between the ops",
    "unknown": "ops of unknown cost or without a roof",
}
#: Regime of a step or run → the first thing to try.
FIRST: Mapping[str, str] = {
    "compute": (
        "Use fewer or cheaper FLOPs: a lower precision (BF16, FP8) that the matrix units run faster, or a"
        " faster kernel for the largest rows."
    ),
    "memory": (
        "Move fewer bytes: fuse neighbouring elementwise ops and norms (torch.compile), keep activations in"
        " a narrower type, avoid copies and layout changes."
    ),
    "latency": (
        "Launch less and larger: capture the step in CUDA graphs or compile it"
        ' (torch.compile(mode="reduce-overhead")), fuse small ops, raise the batch size.'
    ),
    "communication": (
        "Hide the collectives behind compute: overlap them with the backward pass, tune bucket sizes, send"
        " fewer bytes; see first whether one rank arrives late."
    ),
    "input": (
        "Feed the GPU sooner: more DataLoader workers with prefetching (num_workers, prefetch_factor,"
        " persistent_workers), then cheaper decoding and augmentation."
    ),
    "host": (
        "Stop making the GPU wait for the host: remove .item(), .cpu(), printing and explicit synchronisation"
        " from the step, and move Python work out of it."
    ),
    "copy": (
        "Overlap the copies: pin the host memory and copy with non_blocking=True on a side stream, or leave"
        " the data on the device."
    ),
    "dependency": (
        "Find out what the GPU waits for although its work is queued: another device, an event of another"
        " stream, or work outside the recording; record all ranks and streams."
    ),
    "unknown": (
        "Make costs and roofs known: record with shapes (record_shapes=True), name the GPU (--gpu) where it"
        " is unknown, and record without CUDA graphs once, since what a graph replays belongs to no op."
    ),
}


#: Where the host CPU is the device (DEFINITIONS §20), what differs.
FIRST_ON_CPU: Mapping[str, str] = {
    "compute": (
        "Use fewer or cheaper FLOPs: a lower precision that this CPU has units for (BF16), or all of its"
        " cores (OMP_NUM_THREADS); then a GPU."
    ),
    "latency": "Do more per call: larger batches, fused ops (torch.compile), fewer small tensors.",
    "input": (
        "Feed the model sooner: DataLoader workers that prefetch (num_workers, prefetch_factor) on cores that"
        " the step leaves free, then cheaper decoding and augmentation."
    ),
    "host": (
        "Move Python work out of the step: vectorise loops over elements, do logging and checks less often."
    ),
    "unknown": (
        "Make costs and roofs known: measure this CPU (rooflight-agent calibrate --out roofs.json, then"
        " analyse with --calibration roofs.json, or send it to the server) and record with shapes"
        " (record_shapes=True)."
    ),
}


#: Where the recording allows no verdict at all.
WITHHELD = (
    "Record again, and let the profiler write its file to the end: no verdict can rest on this recording."
    " Its data grade says what is missing."
)


def meaning(regime: str, *, on_cpu: bool = False) -> str:
    """What the time of a regime is spent on; ``KeyError`` for what is no regime."""
    return (MEANING_ON_CPU if on_cpu else MEANING).get(regime, MEANING[regime])


def advice(regime: str | None, *, on_cpu: bool = False) -> str:
    """The first thing to do; without a regime, how to get one."""
    key = regime if regime is not None and regime in FIRST else "unknown"
    return (FIRST_ON_CPU if on_cpu else FIRST).get(key, FIRST[key])
