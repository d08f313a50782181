"""The family of a kernel: one ordered table, the first rule that holds decides.

A rule looks at the *subject*: the lower-cased qualified name without parameters, with the template
arguments only where the name itself is a wrapper (``cutlass::Kernel2<...>``, ``kentry<...>``).  Fused
operators put many words into a name; the order says which of them is the work.
"""

from __future__ import annotations

#: Families that multiply matrices: their kernels take the FLOPs of the op that launched them.
MATRIX_FAMILIES = frozenset(
    {
        "gemm",
        "gemv",
        "moe_gemm",
        "conv_fwd",
        "conv_dgrad",
        "conv_wgrad",
        "attention_fwd",
        "attention_bwd",
        "attention_decode",
        "triton_template",
    }
)


class Rule:
    """``family`` when the subject has one of the words ``any_of``, all of ``all_of``, none of ``none_of``
    and the name begins with one of ``starts``.  Words are given in one string, with spaces between."""

    __slots__ = ("all_of", "any_of", "family", "none_of", "starts")

    def __init__(
        self,
        family: str,
        *,
        any_of: str = "",
        all_of: str = "",
        none_of: str = "",
        starts: tuple[str, ...] = (),
    ) -> None:
        self.family, self.starts = family, starts
        self.any_of, self.all_of, self.none_of = any_of.split(), all_of.split(), none_of.split()

    def holds(self, subject: str, lower: str) -> bool:
        """Whether the rule decides; ``lower`` is the whole name."""
        if self.starts and not lower.startswith(self.starts):
            return False
        if self.any_of and not any(n in subject for n in self.any_of):
            return False
        return all(n in subject for n in self.all_of) and not any(n in subject for n in self.none_of)


_ATTENTION = "flash fmha sdpa attention attn _mla mla_ mha_"

RULES: tuple[Rule, ...] = (
    # The driver's and the runtime's own copies, in the spellings of Kineto, nsys and ROCm.
    Rule(
        "memcpy",
        starts=(
            "memcpy ",
            "[cuda memcpy",
            "[cuda unified memory memcpy",
            "hipmemcpy",
            "copydevicetodevice",
            "copyhosttodevice",
            "copydevicetohost",
        ),
    ),
    Rule(
        "memset",
        starts=(
            "memset",
            "[cuda memset",
            "[cuda unified memory memset",
            "hipmemset",
            "fillbuffer",
        ),
    ),
    # Fused collectives whose names DEFINITIONS §4 does not list: told as what they are, not counted as
    # communication.
    # Inductor: the prefix is the kind, the rest lists the fused ops and is never a matmul.
    Rule(
        "triton_pointwise",
        starts=(
            "triton_poi_",
            "triton_for_fused",
        ),
    ),
    Rule(
        "triton_reduction",
        starts=(
            "triton_red_",
            "triton_spl_",
        ),
    ),
    Rule("triton_persistent_reduction", starts=("triton_per_",)),
    Rule(
        "triton_template",
        starts=(
            "triton_tem_",
            "triton_mm",
            "triton_bmm",
        ),
    ),
    Rule(
        "triton_unknown",
        starts=(
            "triton__",
            "triton_unk_",
            "triton_fused",
        ),
    ),
    # An all-reduce says what it is; "reduce", "gather" and "scatter" alone do not.
    Rule(
        "collective",
        any_of=(
            "allreduce all_reduce quickreduce oneshot_lamport reducescatter reduce_scatter allgather "
            "all_gather alltoall all_to_all userbuffers"
        ),
        none_of="at::native fbgemm",
    ),
    # Mixture of experts: routing before softmax, top-k and scatter; its GEMM before GEMM.
    Rule(
        "moe_routing",
        any_of=(
            "moe_align moe_sum moe_sort moesort topkgating topk_gating topk_softmax grouped_topk "
            "grouped_top_k _topk_forward combined_routing routing_compute bitmatrix "
            "finalize_matmul_scatter expandinputrows expand_input_rows finalizemoe finalize_moe "
            "moe_permute moe_unpermute permute_tokens moe_fused_gate moe::dev::finalize moe::dev::permute "
            "moe::dev::routing _ep_scatter _ep_gather routingmain "
            "routingindices routingkernel sortedexpert buildexpertmaps compute_expert "
            "count_and_sort_expert expert_offsets"
        ),
    ),
    Rule("moe_gemm", any_of="matmul_ogs fused_moe fmoe moe_gemm moegemm moe_wna16 moe_mxgemm moe_stage"),
    Rule("moe_gemm", any_of="gemm matmul flatmm", all_of="moe"),
    Rule(
        "moe_gemm",
        starts=(
            "bmm_bfloat16_",
            "bmm_fp16_",
            "bmm_e4m3_",
            "bmm_mxe",
            "bmm_e2m1_",
            "bmm_fp32_",
        ),
    ),
    Rule("elementwise", any_of="moe::dev::activation"),
    # Attention: what stands around it, then backward, decode, forward.
    Rule(
        "kv_cache",
        any_of="reshape_and_cache concat_and_cache kv_cache kvcache kv_buffer",
        none_of=_ATTENTION + " batchprefill batchdecode",
    ),
    Rule(
        "kv_cache",
        any_of=(
            "reshape_and_cache concat_and_cache append_paged_kv appendpagedkv store_kvcache mla_kv_buffer "
            "copy_blocks_kernel"
        ),
    ),
    Rule(
        "attention_aux",
        any_of=(
            "flash_bwd_dot_do_o flash_bwd_convert flash_bwd_clear flash_fwd_splitkv_combine "
            "flashattnfwdcombine flashattnbwdpreprocess flashattnbwdpostprocess flash_bwd_preprocess "
            "flash_bwd_postprocess attn_bwd_preprocess bwd_preprocess merge_attn_states mergestates "
            "merge_states variablelengthmerge fmhabwddotdoo fmhabwdogradoto fmhabwdogradotok "
            "fmhabwdograddoto fmhabwdconvertqgrad fmha_bwd_convert fmha_bwd_dot_do_o fmha_bwd_odo "
            "fmhafwdsplitkvcombine fmhareduction reduce_segments attn_reduce dot_do_o "
            "prepare_varlen_num_blocks convert_dq softmax_reducev"
        ),
    ),
    Rule("attention_aux", any_of="odo convert", all_of="fmha_bwd"),
    Rule("attention_aux", all_of="paged_attention reduce"),
    Rule("attention_aux", any_of=_ATTENTION, all_of="_reduce_kernel"),
    Rule("attention_aux", all_of="sdpa _reduce"),
    Rule(
        "attention_bwd",
        any_of=(
            "flash_bwd flashattnbwd fmha_cutlassb fmha_bwd fmhabwd attn_bwd bwd_kernel_dk_dv "
            "bwd_kernel_dq attention_bwd attention_backward attentionbackward attention_kernel_backward"
        ),
    ),
    Rule("attention_bwd", starts=("_bwd_kernel",)),  # as _fwd_kernel below
    Rule("attention_bwd", any_of="bprop bwd backward", all_of="sdpa"),
    Rule("attention_bwd", any_of="_dgrad backward _bprop", all_of="fmha"),
    Rule(
        "attention_decode",
        any_of=(
            "paged_attention pagedattention unified_attention_3d batchdecode singledecode "
            "decode_attention decode_att_ decode_grouped_att masked_multihead_attention mmha_kernel "
            "flash_mla flashmla _fwd_kernel_stage1 _fwd_grouped_kernel_stage1 xqa_kernel pa_decode "
            "mla_dec aiter::pa_ aiter::mla_"
        ),
    ),
    Rule("attention_aux", any_of="_fwd_kernel_stage2"),
    Rule(
        "attention_fwd",
        any_of=(
            "flash_fwd flashattnfwd fmha attn_fwd unified_attention batchprefill singleprefill "
            "prefillwith flash_attention flash_attn attentionkernel attention_kernel attention_fwd "
            "attention_forward mha_fwd"
        ),
    ),
    Rule("attention_fwd", any_of="fprop fwd flash", all_of="sdpa"),
    Rule("attention_fwd", all_of="flex_attention"),
    Rule("attention_fwd", starts=("_fwd_kernel",)),  # what Triton attention calls itself by convention
    # Convolution: helpers first, then the three passes.
    Rule(
        "conv_aux",
        any_of=(
            "im2col im2d2col im3d2col col2im vol2col col2vol winogradforward winogradwgrad winogradbackward "
            "generatewinograd winograd_xform winogradtransform computeoffsetskernel computeboffsets "
            "computewgrad computesplitkoffsets flip_filter pointwise_mult_and_sum_complex "
            "reduce_wgrad wgrad_reduce"
        ),
    ),
    Rule("conv_aux", all_of="reducesplitk cudnn"),
    Rule(
        "conv_dgrad",
        any_of=(
            "dgrad bwd_data bwddata backward_data igemm_bwd_gtc conv_bwd_d depthwise2d_backward "
            "depthwise3d_cuda_backward_input causal_conv1d_bwd"
        ),
    ),
    Rule("conv_dgrad", any_of="_bwd_", all_of="naive_conv"),
    Rule(
        "conv_wgrad",
        any_of=(
            "wgrad bwd_weight bwdweight igemm_wrw convwrw bwdwrw _wrw 1wrw 3wrw grad_weight_kernel "
            "backward_weight"
        ),
        none_of="embedding",
    ),
    Rule(
        "conv_fwd",
        any_of=(
            "fprop scudnn hcudnn 884cudnn 1688cudnn 16816cudnn 8816cudnn 16832cudnn convolve_sgemm "
            "implicit_convolve explicit_convolve igemm_fwd_gtc conv_fwd convfwd grouped_conv "
            "implicitgemm implicit_gemm gridwise_convolution miopenconv "
            "sp3asmconv miopengcnasmconv conv1x1 conv2d_grouped_direct conv2d_c1_k1 conv_depthwise "
            "depthwise_conv naive_conv convolve_common causal_conv1d convolutionnchw xmma_deconv direct_conv"
        ),
    ),
    Rule("fft", any_of="fft sprealcomplex dprealcomplex"),
    # GEMM: what stands around it, vector forms, the rest.
    Rule(
        "gemm_aux",
        any_of=(
            "splitkreduce splitk_reduce reducesplitk splitk_clean epilogue:: scal_kernel postgsu "
            "prepare_grouped_gemm "
            "reduce_1block"
        ),
    ),
    # What packs weights anew, quantises for a product or turns its scales carries the product's name.
    Rule("layout", any_of="marlin_repack awq_repack gptq_repack deep_gemm::transpose"),
    Rule("quantize", any_of="quant_deep_gemm"),
    Rule("gemm_aux", starts=("cijk_",), none_of="_alik_ _ailk_ _bljk _bjlk"),
    Rule("gemv", any_of="gemv llgemm1 wvsplitk"),
    Rule("gemv", any_of="dot_kernel", none_of="attn attention at::native"),
    Rule(
        "gemm",
        any_of="gemm nvjet cijk_ matmul marlin collectivemma tensorop_ machete _mm_kernel wmma_ bmm_chunk",
    ),
    # PyTorch's generic loops: the functor says copy or fill, anything else is arithmetic.
    Rule(
        "optimizer",
        any_of="multi_tensor_apply fused_adam fusedadam adamw fused_sgd lamb_ distributed_shampoo",
        none_of="split_embedding lambda_",
    ),
    Rule(
        "rng",
        any_of=(
            "distribution_ philox curand rand_ randperm random_ bernoulli multinomial generate_seed "
            "hiprand rocrand"
        ),
    ),
    Rule("index", any_of="index_elementwise scatter_gather_elementwise index_put"),
    Rule("elementwise", any_of="elementwise_kernel elementwise_with_index"),
    # Normalisation, rotary embedding, softmax.
    Rule(
        "norm_bwd",
        any_of=(
            "bn_bw batchnormbwd batch_norm_backward batch_norm_grad grad_input_kernel_vectorized "
            "layer_norm_grad layernormbackward layernorm_bwd layer_norm_backward layer_norm_bwd "
            "ln_bwd rms_norm_bwd rmsnorm_bwd rms_norm_backward rmsnorm_backward gammabetabackward "
            "gradgammabeta cucomputegradinput groupnormbackward group_norm_backward "
            "computebackwardfusedparams computeinternalgradients computedsdb norm_backward"
        ),
    ),
    Rule(
        "norm",
        any_of=(
            "bn_fw batchnorm batch_norm layernorm layer_norm groupnorm group_norm instancenorm "
            "instance_norm rmsnorm rms_norm rowwisemoments computefusedparams cuapplylayernorm ln_fwd "
            "l2norm welford"
        ),
    ),
    Rule("rope", any_of="rotary rope_ _rope applyrope mrope mlarope normrope ropequantize ropekernel"),
    Rule("softmax_bwd", any_of="backward bwd grad", all_of="softmax"),
    Rule("softmax", any_of="softmax"),
    Rule("dropout", any_of="dropout masked_scale"),
    Rule(
        "quantize",
        any_of=(
            "quant fp8rowwise fp8_qparam cvt_fp16_to_fp4 cast_to_fp8 convert_fp8 cast_mxfp8 cast_nvfp4 "
            "cast_transpose reconstruct_gptq reconstruct_exllama"
        ),
    ),
    # Embeddings before optimiser and scatter: fused backward kernels name those too.
    Rule("layout", any_of="permute_pooled permute102 recat_embedding"),
    Rule("embedding_bwd", any_of="backward bwd grad", all_of="embedding"),
    Rule("embedding_bwd", any_of="compute_grad_weight krn_partial sum_and_scatter accgradparameters"),
    Rule("embedding", any_of="embedding"),
    Rule("optimizer", any_of="adagrad adam_ sgd_ momentum_update"),
    Rule("upsample", any_of="upsample interpolat grid_sampler"),
    Rule(
        "pool",
        any_of=(
            "max_pool maxpool avg_pool avgpool average_pool adaptive_avg adaptive_average adaptiveaverage "
            "pooling pool_fw pool_bw"
        ),
    ),
    # Sorting and indexing, movement, the rest.
    Rule(
        "sort_scan",
        any_of=(
            "devicescan radixsort radix_sort sort_ _sort bitonic segmented_sort topk cumsum scan_ "
            "_scan devicecompact deviceselect devicemerge deviceunique searchsorted rocprim "
            "reducebykey runlengthencode devicehistogram nonzero write_indices"
        ),
    ),
    Rule("reduction", any_of="devicereduce"),
    Rule("sort_scan", any_of="cub:: thrust"),
    Rule(
        "index",
        any_of=(
            "gather scatter indexselect index_select indexfunc indexing_ index_put index_copy "
            "index_add index_fill index_kernel linearize_index indices offsets_range permute_1d "
            "permute_2d take_kernel masked_select get_rows"
        ),
    ),
    Rule(
        "layout",
        any_of=(
            "nchwtonhwc nhwctonchw nchw2nhwc nhwc2nchw transpose tensortransform permute "
            "tensor_reorder swizzle"
        ),
    ),
    Rule(
        "fill",
        any_of="fillfunctor fill_kernel fillbuffer fill_buffer memset zero_ settensor withscalar arange",
    ),
    Rule(
        "copy",
        any_of=(
            "catarray copy_kernel copybuffer copy_buffer _copy copy_ memcpy concat castt cast_kernel "
            "withcast withtransform pack_ slice_kernel split_with_sizes_copy chunk_cat triu_tril _pad1d "
            "_pad2d _pad3d roll_cuda flip_kernel padding_kernel"
        ),
    ),
    Rule(
        "reduction",
        any_of=(
            "reduce reduction argmax argmin sum_kernel mean_kernel nllcriterion_updateoutput "
            "nll_loss_forward lpnorm_cleanup amax_"
        ),
    ),
    Rule("optimizer", any_of="optimizer adam"),
    Rule(
        "elementwise",
        any_of=(
            "elementwise elemwise act_and_mul silu gelu swiglu relu sigmoid tanh op_generic_tensor op_tensor "
            "optensor op2dtensor op1dtensor op4dtensor add_tensor addtensor scalepackedtensor "
            "bias_add add_bias activation gated_act fused_add mul_kernel add_kernel where_kernel pointwise"
        ),
    ),
    Rule("triton_unknown", starts=("triton_",)),
)

#: The closed list (docs/kernel-names.md).
FAMILIES = tuple(sorted({r.family for r in RULES} | {"collective", "other"}))


def family_of(subject: str, lower: str) -> str | None:
    """The family of the first rule that holds, ``None`` when none does."""
    return next((r.family for r in RULES if r.holds(subject, lower)), None)
