"""Ops that are built of others and whose own row does not tell their work.

Not counted: all of it, here: the ops inside are costed.

Source: a convention of our own: work is counted once, at the innermost op with a formula.
"""

from __future__ import annotations

from rooflight.cost.arguments import Arguments
from rooflight.cost.registry import cost_model
from rooflight.cost.tensor import Unknown
from rooflight.cost.work import Work


@cost_model(
    "aten::einsum",
    "aten::linalg_multi_dot",
    "aten::chain_matmul",
    "aten::bilinear",
    "aten::_native_multi_head_attention",
    "aten::_transformer_encoder_layer_fwd",
    "aten::instance_norm",
    "aten::cosine_similarity",
    "aten::pairwise_distance",
    "aten::cdist",
    "aten::linalg_norm",
    "aten::kron",
    "aten::diff",
    "aten::dist",
    "aten::equal",
    "aten::allclose",
    "aten::isclose",
    "aten::isreal",
    "aten::float_power",
    "aten::float_power_",
    "aten::linalg_matrix_norm",
    "aten::sum_to_size",
    "aten::stft",
    "aten::istft",
    "aten::lstm_cell",
    "aten::gru_cell",
    "aten::rnn_tanh_cell",
    "aten::rnn_relu_cell",
    "aten::alpha_dropout",
    "aten::feature_alpha_dropout",
    "aten::grid_sampler",
    "aten::affine_grid_generator",
    "aten::native_multi_head_attention",
    "aten::_embedding_bag_backward",
    "aten::embedding_backward",
    "aten::masked_select_backward",
    "aten::index_select_backward",
    "aten::gather_backward",
    "aten::value_selecting_reduction_backward",
    family="other",
)
def composite(args: Arguments) -> Work:
    """Its children are costed, it is not (einsum: the equation is text, which no recording holds)."""
    del args
    raise Unknown("composite")
