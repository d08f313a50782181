"""Recurrent layers: the matrix part.

Not counted: the gates' elementwise arithmetic, dropout between layers, the biases.

Source: a convention of our own: each step is the products that it holds.
"""

from __future__ import annotations

from rooflight.cost.arguments import Arguments
from rooflight.cost.registry import cost_model
from rooflight.cost.tensor import Tensor, Unknown, product
from rooflight.cost.work import Work


def _matrix_flops(x: Tensor, params: list[Tensor]) -> int:
    """Every step of every sequence meets each weight matrix once."""
    if len(x.dims) not in (2, 3):
        raise Unknown("bad_shapes")
    steps = product(x.dims[:-1])
    return 2 * steps * sum(w.numel for w in params if len(w.dims) == 2)


@cost_model("aten::lstm", "aten::gru", "aten::rnn_tanh", "aten::rnn_relu", family="gemm", matrix=True)
def recurrent(args: Arguments) -> Work:
    """2 * steps * batch * weights: for a layer of H units over I inputs that is 4H(I+H) weights (LSTM)
    or 3H(I+H) (GRU).  Gates are not counted.  The weights are a list, so that bytes are unknown."""
    x = args.tensor(0)
    packed = args.maybe(1) is not None and len(x.dims) == 2 and len(args.tensor(1).dims) == 1
    params = args.tensors(3 if packed else 2)
    return Work(_matrix_flops(x, params), None, None, x.dtype, "dtype_unknown")


@cost_model("aten::_cudnn_rnn", "aten::miopen_rnn", family="gemm", matrix=True)
def cudnn_rnn(args: Arguments) -> Work:
    """As lstm; the weights are the second argument."""
    x = args.tensor(0)
    return Work(_matrix_flops(x, args.tensors(1)), None, None, x.dtype, "dtype_unknown")
