"""Recurrent layers: the matrix part.

Not counted: the gates' elementwise arithmetic, dropout between layers, the biases.

Source: a convention of our own: each step is the products that it holds.
"""

from __future__ import annotations

from rooflight.cost.arguments import Arguments
from rooflight.cost.registry import cost_model
from rooflight.cost.tensor import Piece, Tensor, Unknown, product
from rooflight.cost.work import Work, pieces


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


@cost_model("aten::_thnn_fused_lstm_cell", family="elementwise")
def lstm_gates(args: Arguments) -> Work:
    """(input gates, hidden gates, c, biases): what an LSTM does after its products.  Reads all, writes h, c
    and the gates for the backward pass; its FLOPs have no convention."""
    gates, cell = args.tensor(0), args.tensor(2)
    biases = [args.maybe(i) for i in (3, 4)]
    writes = pieces(cell.like(), cell.like(), gates.like())
    return Work(None, pieces(gates, args.tensor(1), cell, biases), writes, gates.dtype, "no_convention")


@cost_model("aten::_thnn_fused_gru_cell", family="elementwise")
def gru_gates(args: Arguments) -> Work:
    """As the LSTM's, (input gates, hidden gates, h, biases): writes h and five numbers each for the backward
    pass."""
    gates, hidden = args.tensor(0), args.tensor(2)
    biases = [args.maybe(i) for i in (3, 4)]
    writes = pieces(hidden.like(), Piece(product([5, hidden.numel]), hidden.dtype))
    return Work(None, pieces(gates, args.tensor(1), hidden, biases), writes, gates.dtype, "no_convention")
