"""What to do first about each regime, in one sentence that the command line and the pages share."""

from __future__ import annotations

from collections.abc import Mapping

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
        "Record again with shapes (record_shapes=True) and tell which GPU it is (--gpu), so that costs and"
        " roofs are known."
    ),
}


def advice(regime: str | None) -> str:
    """The first thing to do; without a regime, how to get one."""
    return FIRST.get(regime or "unknown", FIRST["unknown"])
