"""What the reasons of costs mean, and where the missing fact could be had."""

from __future__ import annotations

from typing import NamedTuple


class Reason(NamedTuple):
    """``meaning``, and what to do about it; ``remedy`` is empty where nothing is missing."""

    meaning: str
    remedy: str = ""


_SHAPES = "record with torch.profiler.profile(record_shapes=True)"
_VALUES = "record with a torch that writes Concrete Inputs and Input Strides, and record_shapes=True"
_GRAPH = "add an execution trace of the same run (torch.profiler.ExecutionTraceObserver)"
_COUNTERS = "hardware counters of the kernel (rooflight analyze --counters) tell what its arguments cannot"
_COMM = "the args of the collective's kernel hold its message: record with a torch and NCCL that write them"

REASONS = {
    "unknown_op": Reason("no formula for this op", _COUNTERS),
    "no_shapes": Reason(
        "the recording has no dims (record_shapes was off, or a list was too long for it)",
        f"{_SHAPES}; of lists and results: {_GRAPH}",
    ),
    "no_values": Reason("the size depends on concrete values, which older recordings do not have", _VALUES),
    "no_strides_recorded": Reason(
        "the result's size depends on a convolution's strides, which older recordings do not have",
        f"{_VALUES}, or keep the backward pass in the recording",
    ),
    "dtype_unknown": Reason(
        "the element type is not recorded: lists of tensors, recordings of 2021 and before",
        f"{_GRAPH}; a single op takes --dtype",
    ),
    "composite": Reason(
        "built of ops that are costed themselves; the figure, where there is one, is a lower bound",
        "look at the ops inside it, which the recording has as rows of their own",
    ),
    "data_dependent": Reason("the work depends on values", f"{_GRAPH}: it has the size of the result"),
    "lengths_are_values": Reason(
        "the lengths of packed or paged sequences are values, which no recording holds", _COUNTERS
    ),
    "routing_is_values": Reason("which experts do the work depends on values", _COUNTERS),
    "no_convention": Reason("FLOPs of this op have no agreed count", _COUNTERS),
    "roles_unknown": Reason("a compiler's kernel: the roles of its arguments cannot be seen", _COUNTERS),
    "fused": Reason("a compiler's kernel: its FLOPs cannot be seen", _COUNTERS),
    "mask_unknown": Reason("a mask or window whose rule is not known here", _COUNTERS),
    "bad_shapes": Reason("what is recorded does not fit the op", "look at the row in the recording"),
    "too_many_arguments": Reason(
        "more arguments than any overload has: some recorders wrote the interpreter's whole stack",
        "record with a newer torch",
    ),
    "out_of_range": Reason("larger than any tensor can be", "look at the row in the recording"),
    "overlapping_strides": Reason("the layout overlaps itself in a way that is too large to count"),
    "collective_unknown": Reason("a message that does not say which collective it is", _COMM),
    "direction_unknown": Reason("a copy that does not say from where to where"),
    "no_bytes": Reason("a copy or fill that does not say how much", "newer recorders write the bytes"),
    "aux_kernel": Reason("a helper beside the op's main kernel, which has its FLOPs"),
    "dO of ...": Reason("dims that the row lacks are those of this other row of the same call"),
    "dims of ...": Reason("dims that the row lacks are those of this other row of the same call"),
    "execution trace": Reason(
        "inputs or the size of the result are from the execution trace that was given beside the trace"
    ),
    "no launch in the file": Reason(
        "launched before the recording began, and no part of it that has ops repeats the kernel",
        "record a step more, so that each kernel comes with its op once",
    ),
    "no op encloses the launch": Reason("launched outside of every recorded op", _COUNTERS),
    "graph replay": Reason(
        "one launch starts many kernels, none of which has an op or a grid of its own",
        "add a recording of the same program without graphs (rooflight analyze --eager)",
    ),
    "as ... of the same kernel elsewhere in this recording": Reason(
        "the kernel has no op of its own, and stands among the same kernels as one that has"
    ),
    "from name and grid": Reason(
        "an elementwise kernel without recorded inputs: its name has the number and type of its tensors, its "
        "grid how many elements they have, up to what the last block leaves over"
    ),
    "faster than the datasheet allows": Reason(
        "the achieved rate is above the roof; the likely cause follows: Winograd or FFT, cache, clock, whole "
        "microseconds, or none that the recording shows"
    ),
}
