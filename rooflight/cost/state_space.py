"""State space models: the short convolution before the scan, and the scan.

Not counted: the activation of the convolution, and its bias.

Source: 2 FLOPs per element and tap as of any convolution; the order of arguments as Dao-AILab/causal-conv1d
registers its ops (causal_conv1d/cpp_functions.py @503c8df4, read 2026-12-02).  No count of a scan is agreed.
"""

from __future__ import annotations

from rooflight.cost.arguments import Arguments
from rooflight.cost.registry import cost_model
from rooflight.cost.tensor import Tensor, Unknown
from rooflight.cost.work import Work, pieces


def _taps(x: Tensor, w: Tensor) -> int:
    if len(x.dims) != 3 or len(w.dims) != 2 or x.dims[1] != w.dims[0]:
        raise Unknown("bad_shapes")
    return w.dims[1]


@cost_model(
    "DaoAILab::_causal_conv1d_fwd_cpp",
    family="conv_fwd",
    params="x weight bias seq_idx initial_states result final_states silu",
)
def causal_conv1d(args: Arguments) -> Work:
    """x [batch, channels, length] with a weight [channels, taps]: 2 FLOPs per element and tap, as all of them
    see zeros before the start.  Writes the result and, when given, the last states."""
    x, w = args.tensor(0), args.tensor(1)
    reads = pieces(x, w, args.maybe(2), args.maybe(3), args.maybe(4))
    return Work(2 * x.numel * _taps(x, w), reads, pieces(x.like(), args.maybe(6)), x.dtype)


@cost_model(
    "DaoAILab::_causal_conv1d_bwd_cpp",
    family="other",
    params="x weight bias dO seq_idx initial_states dfinal_states dx dweight dbias dinitial_states silu",
)
def causal_conv1d_backward(args: Arguments) -> Work:
    """The gradients of x and of the weight, each as the forward pass; reads what that read, and dO."""
    x, w = args.tensor(0), args.tensor(1)
    reads = pieces([args.maybe(i) for i in range(7)])
    writes = pieces([args.maybe(i) for i in range(7, 11)])
    return Work(2 * 2 * x.numel * _taps(x, w), reads, writes, x.dtype)


@cost_model(
    "_C::selective_scan_fwd",
    "mamba_ssm::ssm_chunk_scan_combined_fwd",
    "mamba_ssm::ssm_chunk_scan_combined_bwd",
    family="other",
)
def scan(args: Arguments) -> Work:
    """A scan over a state: its FLOPs have no convention, and which states are read and written are values."""
    args.tensor(0)
    raise Unknown("no_convention")
