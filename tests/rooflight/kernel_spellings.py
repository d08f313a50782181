"""Kernel names as libraries spell them: name, family, number type, tensor cores."""

# ruff: noqa: E501 - names stand as they are recorded

from __future__ import annotations

SPELLINGS = [
    # Tensile writes operand, result and compute type: H = fp16, D = fp64, I8 = int8; no MI = vector units.
    ("Cijk_Alik_Bljk_HSS_BH_Bias_HA_S_SAV_MT128x128x32_MI32x32x1_SN", "gemm", "fp16", True),
    ("Cijk_Ailk_Bljk_DB_MT64x64x8_SE_APM1_AF0EM1_K1", "gemm", "fp64", False),
    ("Cijk_Alik_Bljk_I8II_BH_MT64x64x64_MI16x16x32x1_SN", "gemm", "int8", True),
    ("Cijk_S_BiasSB_PostGSU8_VW4", "gemm_aux", None, False),
    # s884 on Volta is fp16 data with fp32 sums; h884 sums in fp16.
    ("volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_tn", "gemm", "fp16", True),
    ("volta_h884gemm_256x64_ldg8_nn", "gemm", "fp16", True),
    ("volta_fp16_s884cudnn_fp16_256x64_ldg8_relu_f2f_exp_interior_nhwc_tn_v1", "conv_fwd", "fp16", True),
    ("ampere_bf16_s1688gemm_bf16_128x128_ldg8_f2f_stages_32x1_nn", "gemm", "bf16", True),
    ("ampere_s16816gemm_fp16_128x64_ldg8_stages_64x3_tn", "gemm", "fp16", True),
    # On Turing 1688 is fp16, and the bare shape does not say so: no confident type.
    (
        "void cutlass::Kernel<cutlass_75_tensorop_s1688gemm_128x128_32x2_tn_align8>(Params)",
        "gemm",
        None,
        True,
    ),
    ("void cutlass::Kernel<cutlass_80_tensorop_d884gemm_64x64_16x4_nn_align1>(Params)", "gemm", "fp64", True),
    ("void cutlass::Kernel<cutlass_80_simt_dgemm_128x32_8x5_nn_align1>(Params)", "gemm", "fp64", False),
    ("cutlass_80_tensorop_s1688tf32gemm_256x128_16x3_nn_align4", "gemm", "tf32", True),
    ("volta_dgemm_64x64_nn", "gemm", "fp64", False),
    ("volta_hgemm_128x64_tn", "gemm", "fp16", False),
    # Second group = math: fp32 data, TF32 products.
    (
        "sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize64x64x16_stage5_warpsize2x2x1_tensor16x8x8_kernel",
        "gemm",
        "tf32",
        True,
    ),
    (
        "sm90_xmma_gemm_e4m3bf16_e4m3f32_f32_tn_n_tilesize128x128x128_warpgroupsize2x1x1_execute_segment_k_off",
        "gemm",
        "fp8",
        True,
    ),
    ("nvjet_tss_128x64_64x8_2x1_v_bz_TNN", "gemm", "bf16", True),
    ("nvjet_sm100_tst_256x128_64x4_2x1_2cta_v_bz_TNT", "gemm", "bf16", True),
    (
        "cutlass3x_sm90_tensorop_s64x128x16gemm_f16_f16_f32_f16_f16_128x128x64_1x1x1_0_tnt_align8",
        "gemm",
        "fp16",
        True,
    ),
    ("void deep_gemm::fp8_gemm_kernel<4096u, 7168u, 128u>(__nv_bfloat16*)", "gemm", "fp8", True),
    # Attention: forward, backward, decode, and what stands around it.
    (
        "void flash_bwd_dot_do_o_kernel<true, Flash_bwd_kernel_traits<64, cutlass::half_t> >(Flash_bwd_params)",
        "attention_aux",
        "fp16",
        False,
    ),
    (
        "void flash::flash_fwd_splitkv_combine_kernel<Flash_fwd_kernel_traits<128, cutlass::bfloat16_t>, 4, 1, true>(P)",
        "attention_aux",
        "bf16",
        False,
    ),
    ("fmha_cutlassF_f32_aligned_64x64_rf_sm80", "attention_fwd", "fp32", None),
    (
        "cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_f16_knob_3_64x64x128_1x1x1",
        "attention_bwd",
        "fp16",
        True,
    ),
    ("bwd_kernel_dk_dv", "attention_bwd", None, True),
    (
        "void vllm::paged_attention_v2_kernel<__nv_bfloat16, __nv_bfloat16, 128, 16, 128, 512>(float*)",
        "attention_decode",
        "bf16",
        True,
    ),
    (
        "void vllm::paged_attention_v2_reduce_kernel<__nv_bfloat16, 128, 128, 512>(__nv_bfloat16*)",
        "attention_aux",
        "bf16",
        False,
    ),
    (
        "_ZN7ck_tile6kentryILi2ENS_13FmhaFwdKernelINS_23BlockFmhaPipelineQRKSVSINS_1PIDF16_DF16_fEEEEEEEEvDpT1_",
        "attention_fwd",
        "fp16",
        True,
    ),
    # PyTorch's loops.  nan_to_num takes doubles as parameters and works on floats.
    (
        (
            "void at::native::vectorized_elementwise_kernel<4, at::native::nan_to_num_kernel_cuda(at::TensorIteratorBase&,"
            " std::optional<double>)::{lambda()#1}::operator()() const::{lambda(float)#1}, std::array<char*, 2ul> >(int)"
        ),
        "elementwise",
        "fp32",
        False,
    ),
    (
        "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<long>, std::array<char*, 1ul> >(int)",
        "fill",
        "int64",
        False,
    ),
    (
        "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<bool>, std::array<char*, 1ul> >(int)",
        "fill",
        None,
        False,
    ),
    # Reads float, writes bf16: neither is the type of both sides.
    (
        (
            "void at::native::unrolled_elementwise_kernel<at::native::bfloat16_copy_kernel_cuda(at::TensorIteratorBase&)::"
            "{lambda(float)#1}, std::array<char*, 2ul>, 4>(int)"
        ),
        "copy",
        None,
        False,
    ),
    (
        (
            "void at::native::vectorized_elementwise_kernel<4, at::native::bfloat16tofloat32_copy_kernel_cuda("
            "at::TensorIteratorBase&)::{lambda(c10::BFloat16)#1}, std::array<char*, 2ul> >(int)"
        ),
        "copy",
        "bf16->fp32",
        False,
    ),
    (
        (
            "void at::native::(anonymous namespace)::CatArrayBatchedCopy<at::native::(anonymous namespace)::OpaqueType<2u>,"
            " unsigned int, 3, 64, 64>(OpaqueType<2u>*)"
        ),
        "copy",
        "2-byte",
        False,
    ),
    (
        "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<c10::complex<float>, at::native::NormTwoOps<float> > >()",
        "reduction",
        "complex64",
        False,
    ),
    (
        "void at::native::(anonymous namespace)::cunn_SoftMaxForward<8, c10::Half, float, c10::Half>(c10::Half*)",
        "softmax",
        "fp16",
        False,
    ),
    (
        "void at::native::batch_norm_backward_elemt_channels_last_kernel<4, c10::Half, float>(c10::Half const*)",
        "norm_bwd",
        "fp16",
        False,
    ),
    ("void vllm::moe::topkGatingSoftmax<8, 128, 4, 16, 32>(float const*)", "moe_routing", "fp32", False),
    ("fused_moe_kernel", "moe_gemm", None, True),
    (
        "void cublasLt::splitKreduce_kernel<32, 16, int, float, __nv_bfloat16, float, __nv_bfloat16, true>(P<float>)",
        "gemm_aux",
        None,
        False,
    ),
    ("void fbgemm_gpu::permute_2D_lengths_kernel<int>(int, int, int const*)", "index", None, False),
    (
        "void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, __nv_bfloat16, 0>(__nv_bfloat16*)",
        "kv_cache",
        "bf16",
        False,
    ),
    ("void at::native::max_pool_forward_nhwc<c10::Half, int>(c10::Half const*, int)", "pool", "fp16", False),
    # The generator works in float, the numbers drawn are bf16.
    (
        (
            "void at::native::(anonymous namespace)::distribution_elementwise_grid_stride_kernel<float, 4, at::native::"
            "templates::cuda::normal_and_transform<c10::BFloat16, float, at::CUDAGeneratorImpl*> >(long)"
        ),
        "rng",
        "bf16",
        False,
    ),
    ("turing_int8_i8816cudnn_int8_256x64_ldg16_relu_small_t1r1s1", "conv_fwd", "int8", True),
    ("gridwise_convolution_implicit_gemm_v4r4_xdlops_nchw_kcyx_nkhw", "conv_fwd", None, True),
    ("_fwd_kernel", "attention_fwd", None, True),
    ("_fwd_kernel_stage2", "attention_aux", None, False),
    (
        "void vllm::per_token_group_quant_8bit_kernel<c10::BFloat16, c10::Float8_e4m3fn, true>(void const*)",
        "quantize",
        "bf16->fp8",
        False,
    ),
    (
        "void vllm::act_and_mul_kernel<c10::BFloat16, &vllm::silu_kernel<c10::BFloat16>, true>()",
        "elementwise",
        "bf16",
        False,
    ),
    (
        (
            "void cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnFwdSm90<flash::CollectiveMainloopFwdSm90<2, "
            "cute::tuple<cute::C<128> >, 128, cutlass::bfloat16_t, float> > > >(Params)"
        ),
        "attention_fwd",
        "bf16",
        True,
    ),
    (
        (
            "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<int, int, int, int>, cutlass::gemm::"
            "collective::CollectiveMma<cutlass::gemm::MainloopSm90, cutlass::float_e4m3_t, float> > >(Params)"
        ),
        "gemm",
        "fp8",
        True,
    ),
    ("triton_red_fused_native_layer_norm_mm_3", "triton_reduction", None, False),
    ("triton_tem_fused_flex_attention_0", "triton_template", None, True),
    ("[CUDA memcpy HtoD]", "memcpy", None, False),
    ("something_never_seen", "other", None, None),
    # --- CUTLASS 3.x writes operands, accumulator, C and D after "gemm"; the instruction's shape may be left out,
    # and of block-scaled operands scale and element are joined by an x (NVIDIA/cutlass, generator.py).
    ("cutlass3x_sm90_tensorop_gemm_f16_f16_f32_f16_f16_128x128x64_1x2x1_0_nnn_align8", "gemm", "fp16", True),
    (
        "cutlass3x_sm90_tensorop_gemm_e4m3_e4m3_f32_bf16_bf16_128x128x64_2x1x1_0_tnn_align16",
        "gemm",
        "fp8",
        True,
    ),
    ("cutlass3x_sm90_tensorop_gemm_s8_s8_s32_s32_s8_128x128x128_2x1x1_0_tnn_align16", "gemm", "int8", True),
    (
        "cutlass3x_sm100_bstensorop_gemm_block_scaled_ue8m0xe2m1_ue8m0xe2m1_f32_f16_f16_128x128x256_0_tnt_align32",
        "gemm",
        "mxfp4",
        True,
    ),
    # NVFP4, four bits with scales of e4m3, has no name among the types.
    (
        "cutlass3x_sm100_bstensorop_s256x256x64gemm_block_scaled_ue4m3xf4_ue4m3xf4_f32_f16_f16_256x256x256",
        "gemm",
        None,
        True,
    ),
    # --- Tensile: H with beta (B), and hand-written kernels, which leave the instruction out (ROCm/hipBLASLt).
    ("Cijk_Ailk_Bljk_HB_MT64x64x16_MI16x16x16x1_SN", "gemm", "fp16", True),
    ("Custom_Cijk_Alik_Bljk_F8B8BS_BH_Bias_HA_S_SAB_SAV_UserArgs_shortname1", "gemm", "fp8", True),
    ("Custom_Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_shortname0", "gemm", "bf16", None),
    # --- Composable Kernel: fp8 are integers of eight bits, bf16 is unsigned short (ROCm/composable_kernel, data_type.hpp).
    (
        (
            "void ck::kernel_gemm_xdl_cshuffle_v3<ck::GridwiseGemmMultiD_ABScale_xdl_cshuffle_v3<ck::tensor_layout::gemm::RowMajor, "
            "ck::Tuple<>, ck::f8_fnuz_t, ck::f8_fnuz_t, float, unsigned short> >(P)"
        ),
        "gemm",
        "fp8",
        True,
    ),
    (
        (
            "void ck::kernel_gemm_xdl_cshuffle_v3<ck::GridwiseGemm_xdl_cshuffle_v3<ck::tensor_layout::gemm::RowMajor, "
            "unsigned short, unsigned short, float, float, unsigned short> >(P)"
        ),
        "gemm",
        "bf16",
        True,
    ),
    (
        "_ZN5aiter37dynamic_per_group_scaled_quant_kernelIDF16bDB8_Li32EEEvPT0_PfPKT_",
        "quantize",
        "bf16->fp8",
        False,
    ),
    # --- aiter's own kernels (ROCm/aiter, hsa): operand types stand before "gemm"; what clears a split-K
    # workspace is none, nor what prepares or converts for an attention's backward pass.
    ("aiter::bf16gemm_fp32bf16_tn_64x64_pf3_splitk", "gemm", "bf16", True),
    ("aiter::bf16gemm_fp32bf16_tn_64x64_splitk_clean", "gemm_aux", None, False),
    ("aiter::f4gemm_bf16_per1x32Fp4_BpreShuffle_192x128", "gemm", "mxfp4", True),
    ("aiter::fmha_bwd_hd128_odo_bf16", "attention_aux", "bf16", False),
    ("aiter::fmha_bwd_hd128_dq_convert_bf16", "attention_aux", "bf16", False),
    ("aiter::mla_a8w8_qh16_qseqlen1_gqaratio16", "attention_decode", None, True),
    # --- MIOpen (ROCm/MIOpen, src/kernels): operand, sum and result; WrW is the weight's gradient.
    ("naive_conv_packed_fwd_nhwc_half_double_half", "conv_fwd", "fp16", False),
    ("naive_conv_packed_bwd_nhwc_ushort_double_ushort.kd", "conv_dgrad", "bf16", False),
    ("naive_conv_packed_wrw_nchw_float_double_float", "conv_wgrad", "fp32", False),
    ("miopenGcnAsmConv3x3WrW", "conv_wgrad", None, None),
    ("SubTensorOpWithTransform2d", "copy", None, False),
    # --- Transformer Engine: what it calculates in precedes source and target (NVIDIA/TransformerEngine, common).
    (
        "void transformer_engine::cast_transpose_general_kernel<8, 8, float, __nv_bfloat16, __nv_fp8_e4m3>(P)",
        "quantize",
        "bf16->fp8",
        False,
    ),
    (
        (
            "void transformer_engine::vectorized_pointwise::unary_kernel<8, true, float, transformer_engine::Empty, "
            "&transformer_engine::identity, __nv_bfloat16, __nv_bfloat16>(P)"
        ),
        "elementwise",
        "bf16",
        False,
    ),
    (
        "void transformer_engine::mxfp8::cast_mxfp8_2D_kernel<true, false, true, __nv_bfloat16, __nv_fp8_e4m3>(P)",
        "quantize",
        "bf16->fp8",
        False,
    ),
    # --- Serving (vllm-project/vllm, sgl-project/sglang, deepseek-ai/DeepGEMM, NVIDIA/TensorRT-LLM, flashinfer).
    ("void gptq_marlin_repack_kernel<4, 256, 8, false>(unsigned int const*)", "layout", None, False),
    ("silu_mul_fp8_quant_deep_gemm", "quantize", None, False),
    ("void deep_gemm::transpose_fp32<512u, 128u, 56u>(float const*)", "layout", "fp32", False),
    ("void deep_gemm::sm90_fp8_paged_mqa_logits<64u, 128u>(P)", "gemm", "fp8", True),
    ("_fwd_kernel_ep_scatter_1", "moe_routing", None, False),
    (
        (
            "void moe::dev::activation::activationDeepSeekKernel<moe::dev::activation::KernelParams<cutlass::bfloat16_t, "
            "cutlass::bfloat16_t> >(P)"
        ),
        "elementwise",
        "bf16",
        False,
    ),
    (
        "void tensorrt_llm::kernels::mla::applyMLARopeAndAssignQKVKernelGeneration<__nv_bfloat16, 256>(P)",
        "rope",
        "bf16",
        False,
    ),
    (
        (
            "kernel_cutlass_kernel_flashinfernormkernelsrmsnormRMSNormKernel_object_at__tensorptrbf16gmemalign16o409640961_"
            "tensorptrbf16gmem"
        ),
        "norm",
        "bf16",
        False,
    ),
    (
        "void cudnn::fusion::convert_dq_to_16bits<true, false, 128>(cudnn::fusion::dq_params)",
        "attention_aux",
        None,
        False,
    ),
    (
        "void causal_conv1d_bwd_kernel<Causal_conv1d_bwd_kernel_traits<128, 4, true, c10::BFloat16, c10::BFloat16> >(P)",
        "conv_dgrad",
        "bf16",
        False,
    ),
    # --- PyTorch (pytorch/pytorch, aten/src/ATen/native/cuda): a condition is no element type.
    (
        (
            "void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::where_kernel_impl("
            "at::TensorIterator&)::{lambda()#1}::operator()() const::{lambda()#8}::operator()() const::{lambda(bool, long, long)#1}, "
            "std::array<char*, 4ul> >(int)"
        ),
        "elementwise",
        "int64",
        False,
    ),
    (
        (
            "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<at::native::(anonymous namespace)::"
            "flip_kernel_impl<at::native::OpaqueType<4> >(at::TensorIterator&)::{lambda(int)#1}> >(int)"
        ),
        "copy",
        "4-byte",
        False,
    ),
    ("void at::native::triu_tril_kernel<c10::BFloat16, int, true, 2, false>(P)", "copy", "bf16", False),
    (
        "void at::native::(anonymous namespace)::reflection_pad2d_out_kernel<float>(float const*)",
        "copy",
        "fp32",
        False,
    ),
    (
        "void at::native::(anonymous namespace)::chunk_cat_cuda_kernel<float, float>(float**)",
        "copy",
        "fp32",
        False,
    ),
    ("void at::native::index_put_with_sort_kernel<float, 4>(P)", "index", "fp32", False),
    (
        "void at::native::(anonymous namespace)::adaptive_average_gradinput_nhwc<int, float>(P)",
        "pool",
        "fp32",
        False,
    ),
    ("void at::native::(anonymous namespace)::write_indices<long>(long*)", "sort_scan", None, False),
    ("void at::native::vol2col_kernel<float>(long)", "conv_aux", "fp32", False),
    ("[CUDA Unified Memory memcpy HtoD]", "memcpy", None, False),
    # --- A name may end with its types; cuBLAS's products of bytes without matrix units; cuDNN, cuFFT.
    ("sm80_xmma_fprop_implicit_gemm_indexed_wo_smem_f16f16_f16f32_f32", "conv_fwd", "fp16", True),
    ("ampere_igemm_int8_128x128_ldg4_nn", "gemm", "int8", False),
    ("void convolve_common_engine_float_NHWC<__half, __half, 128, 6, 7, 3, 3>(P)", "conv_fwd", "fp16", False),
    ("void spRealComplex::postprocessC2C_kernelMem<unsigned int, float, 0>(P)", "fft", "fp32", False),
    # --- Triton kernels of sglang, aiter and flash-attn.
    ("set_mla_kv_buffer_kernel", "kv_cache", None, False),
    ("_decode_grouped_att_m_fwd_kernel", "attention_decode", None, True),
    ("_mla_softmax_reducev_kernel", "attention_aux", None, False),
    ("_bwd_kernel", "attention_bwd", None, True),
    # --- PyTorch: the memory-efficient kernel's own backward pass, what a grouped product is prepared by, and a
    # copy between lists, whose target and source may differ in type; cuBLAS's sums are indexed by whole numbers.
    (
        (
            "void PyTorchMemEffAttention::attention_kernel_backward_batched_impl<PyTorchMemEffAttention::"
            "AttentionBackwardKernel<cutlass::arch::Sm80, cutlass::half_t, true> >(P)"
        ),
        "attention_bwd",
        "fp16",
        True,
    ),
    ("void at::cuda::detail::prepare_grouped_gemm_data<cutlass::bfloat16_t>(P)", "gemm_aux", "bf16", False),
    (
        (
            "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::TensorListMetadata<2>, "
            "at::native::(anonymous namespace)::CopyFunctor<float, c10::BFloat16, 2, 1, 1>, at::native::Copy<float, c10::BFloat16> >(P)"
        ),
        "optimizer",
        None,
        False,
    ),
    ("void asum_kernel<int, float, 128>(P)", "reduction", "fp32", False),
    ("void elemWiseRNNcell<__half, __half, float, (cudnnRNNMode_t)2>(P)", "elementwise", "fp16", False),
]
