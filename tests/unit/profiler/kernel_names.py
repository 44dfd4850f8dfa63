"""Names of kernels that real programs launch, by the work each does.

Sources: traces and kernel summaries published by their owners (PyTorch on CUDA and ROCm, vLLM,
SGLang, TensorRT-LLM), and the sources of llama.cpp, vLLM, FlashInfer, TensorRT-LLM, AITER, NCCL and
DeepEP. Template and call arguments are shortened; what could mislead is kept.
"""

from __future__ import annotations

NAMES = {
    "gemm": """
        ampere_sgemm_128x64_nn
        ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_32x6_tn
        ampere_bf16_s16816gemm_bf16_64x64_sliced1x2_ldg8_f2f_stages_64x6_tn
        turing_fp16_s1688gemm_fp16_128x128_ldg8_relu_f2f_tn
        volta_fp16_s884gemm_fp16_64x128_ldg8_f2f_nn
        volta_sgemm_64x64_nt
        sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x256x8_stage3_warpsize1x4x1_execute_kernel
        sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_execute_segment_k_off_kernel
        nvjet_tst_192x8_64x8_4x1_v_bz_TNT
        nvjet_hsh_256x128_64x4_1x2_h_bz_coopA_NTN
        nvjet_sm103_tst_64x16_64x16_4x1_v_bz_TNT
        void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_32x32_128x2>(Params)
        void cutlass::Kernel2<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>(Params)
        void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<int, int>>>(P)
        void cutlass__5x_cudnn::Kernel<cutlass_tensorop_bf16_s16816fprop_optimized_bf16_128x128>
        void cublasLt::splitKreduce_kernel<32, 16, int, __nv_bfloat16, __nv_bfloat16, float>(int)
        cutlass3x_sm100_simt_sgemm_f32_f32_f32_f32_f32_64x32x16_1x1x1_3_tnn_align1_bias_f32_relu
        cudnn_infer_volta_scudnn_128x64_relu_medium_nn_v1
        void wgrad_alg0_engine<float, 128, 6, 7, 3, 3, 5, false, 512>(int, int, int, float const*)
        void cudnn::winograd_nonfused::winogradForwardData4x4<float, float>(WinogradDataParams)
        igemm_fwd_gtcx2_nhwc_bf16_bx0_ex1_bt64x64x64_wt16x16x16_ws1x1_wr2x2_ta1x8x2x1_gkgs
        Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x32x64_MI16x16x1_SN_LDSB1_AFC1
        Cijk_Ailk_Bjlk_BBS_BH_Bias_HAS_SAV_UserArgs_MT128x64x32_MI32x32x1_SN_LDSB0
        void marlin::Marlin<__half, 8589934592l, 256, 1, 8, 8, 4, 8>(int4 const*, int4 const*)
        void gptq_marlin::Marlin<256, 4, 16, 4, 4, 8>(int4 const*, int4 const*)
        triton_tem_fused_addmm_0
        triton_mm
        _w8a8_triton_block_scaled_mm
        _w8a8_block_fp8_matmul
        void deep_gemm::fp8_gemm_kernel<7168u, 2048u, 128u, 112u, 128u>(__nv_bfloat16*, float*)
        _gemm_a8w8_blockscale_kernel_GROUP_K_128_GROUP_N_128
        void mul_mat_q<(ggml_type)8, 16, false>(char const*, int const*)
        void mul_mat_q_stream_k_fixup<(ggml_type)8, (int)16, (bool)0>(int const*)
        bmm_E4m3_E4m3E4m3_Fp32_t128x8x128u2_s6_et128x8_m128x8x32_cga1x1x1_16dp256b_sm100f
        void ck::kernel_gemm_xdl_cshuffle_v3_multi_d<GridwiseGemm>(Argument)
    """,
    "gemv": """
        std::enable_if<!T7, void>::type internal::gemvx::kernel<int, int, __nv_bfloat16, float>(T13)
        void gemv2T_kernel_val<int, int, __half, __half, __half, float, 128, 16, 4, 4, false>(P)
        void gemvNSP_kernel<float, float, float, float, 1, 32, 4, 1024, cublasGemvParams>(P)
        void gemv2N_kernel<int, int, float2, float2, float2, float2, 128, 16, 4, 4, 1, false>(P)
        void gemmk1_kernel<int, float, 256, 5, false, false, cublasGemvTensorStridedBatched<float>>
        enable_if<!T7, void>::type kernel<int, int, float, 0, 1, 1, cublasGemvParamsEx<int>>(T13)
        void dot_kernel<float, 128, 0, cublasDotParams<cublasGemvTensor<float const>>>(P)
        void mul_mat_vec_q<(ggml_type)12, (int)1, (bool)0>(void const*, void const*)
        void mul_mat_vec<__half, float, 1, 256>(__half const*, float const*)
        void dequantize_mul_mat_vec<1, 1, convert_f16>(void const*, float const*)
        void wvSplitK_hf_sml_<__hip_bfloat16, 64, 1, 16, 8, 4, 4>(int, int, int)
        void LLGemm1_kernel<c10::Half, 4>(float4 const*, float4 const*)
    """,
    "attention": """
        void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4, false>>(P)
        void flash::flash_fwd_splitkv_combine_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4>>(P)
        void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 128>>
        void cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnFwdSm90<CollectiveMainloop>>>
        fmha_cutlassF_bf16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<bfloat16_t>)
        fmhaSm100aKernel_QkvE4m3OBfloat16H64PagedKvCausalP16VarSeqQ128Kv128PersistentContext
        fmhaSm100fKernel_QkvBfloat16OBfloat16HQk576HV512HVPerCta256PagedKvDenseP64MultiCtasKvVarSeq
        fmha_v2_flash_attention_fp16_64_128_S_128_sm80_kernel
        cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x64x128_4x1x1_kernel0
        void vllm::paged_attention_v2_kernel<__nv_bfloat16, __nv_bfloat16, 128, 16, 128>(float*)
        void paged_attention_ll4mi_QKV_mfma16_kernel<0, __hip_bfloat16, ck_tile::ComposedAttention>
        void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, unsigned char>(bfloat16 const*)
        void vllm::concat_and_cache_mla_kernel<__nv_bfloat16, __nv_bfloat16>(bfloat16 const*)
        void (anonymous namespace)::store_kvcache<2048l, 4, false, long>(StoreKVCacheParams)
        kernel_unified_attention_2d
        kernel_unified_attention_3d
        _fwd_grouped_kernel_stage1
        void flash_fwd_splitkv_mla_kernel<Flash_fwd_kernel_traits_mla<576, 64, 64, 8>>(P)
        void flashinfer::BatchDecodeWithPagedKVCacheKernel<PosEncodingMode, 2u, 4u, 8u>(Params)
        void flashinfer::BatchPrefillWithPagedKVCacheKernel<flashinfer::KernelTraits<1>>(Params)
        _ZN10flashinfer33BatchDecodeWithPagedKVCacheKernelILNS_15PosEncodingModeE0ELj2ELj4EEEvT7_
        void mmha::masked_multihead_attention_kernel<unsigned short, KVBlockArray, 128>(params)
        void kernel_mha<true>(unsigned int, float, bool, KVCacheList)
        void flash_attn_ext_f16<128, 128, 4, 1, 8, false>(char const*, char const*)
        void flash_attn_tile<64, 64, 2, 1, false>(char const*)
        void flash_attn_stream_k_fixup<256, 1, 8>(float*, float2 const*)
        void flash_attn_vec_ext_f32<128, 1, (ggml_type)1, (ggml_type)1>(char const*)
        _ZN7ck_tile6kentryILi256ELi2ENS_13FmhaFwdKernelINS_15FmhaFwdPipeline
        create_flashinfer_kv_indices_triton
        attn_fwd
        _fwd_kernel_flash_decode_stage1
        _fwd_kernel_stage2
        chunk_gated_delta_rule_fwd_kernel_h_blockdim64
        fused_recurrent_gated_delta_rule_fwd_kernel
        _selective_scan_update_kernel
    """,
    "norm": """
        void vllm::rms_norm_kernel<c10::BFloat16, 8, 2>(c10::BFloat16*, c10::BFloat16 const*)
        std::enable_if<(((8)>(0))), void>::type vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(P)
        void flashinfer::norm::FusedAddRMSNormKernel<8u, __nv_bfloat16>(bfloat16*, bfloat16*)
        void tensorrt_llm::kernels::generalRmsNorm<__nv_bfloat16, __nv_bfloat16, false>(P)
        _ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi256ELi16ELb1ELb0ELb1ELi1EEEvPT0_PT_PfS4_
        void rms_norm_f32<1024, true>(float const*, float*, int)
        void norm_f32<1024>(float const*, float*, int)
        void soft_max_f32<true, 0, 0, float>(float const*, float const*, float*)
        void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(int)
        void at::native::batch_norm_backward_kernel<c10::BFloat16, c10::BFloat16, float, int>(P)
        void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps>>(P)
        void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, true, false>(P)
        void at::native::(anonymous namespace)::cunn_SoftMaxForward<8, float, float, float>(float*)
        void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, int, 512, true, 1, true>(TensorStruct)
        triton_red_fused__unsafe_view_add_mean_mul_pow_rsqrt_1
        triton_per_fused_native_layer_norm_0
        triton_red_fused__to_copy_add_addmm_mean_mul_pow_rsqrt_3
    """,
    "elementwise": """
        void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)
        void at::native::elementwise_kernel<128, 4, gpu_kernel_impl<direct_copy_kernel_cuda>>(int)
        void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda>(int)
        void at::native::(anonymous namespace)::CatArrayBatchedCopy<OpaqueType<2u>, unsigned int>(P)
        void at::native::(anonymous namespace)::indexSelectLargeIndex<c10::BFloat16, long>(Info)
        void at::native::vectorized_gather_kernel<16, long>(char*, char*, long*, int)
        void at::native::index_elementwise_kernel<128, 4, gpu_index_kernel<index_put_kernel>>(P)
        void at::native::(anonymous namespace)::upsample_gen2d_aa_out_frame<float, float>(float)
        void at::native::(anonymous namespace)::grid_sampler_2d_kernel<float, int>(int)
        void at::native::(anonymous namespace)::distribution_elementwise_grid_stride_kernel<float>
        void (anonymous namespace)::elementwise_kernel_with_index<int, at::native::arange_cuda_out>
        void at::native::(anonymous namespace)::multi_tensor_apply_kernel<TensorListMetadata<2>>(P)
        void at_cuda_detail::cub::DeviceScanKernel<DeviceScanPolicy<long, std::plus<long>>>(long*)
        void vllm::act_and_mul_kernel<c10::BFloat16, &vllm::silu_kernel<c10::BFloat16>, true>(P)
        void flashinfer::activation::act_and_mul_kernel<__nv_bfloat16, silu>(bfloat16*)
        void vllm::rotary_embedding_kernel<c10::BFloat16, true>(long const*, c10::BFloat16*)
        void vllm::scaled_fp8_quant_kernel_strided<c10::BFloat16, c10::Float8_e4m3fn>(Float8*)
        void tensorrt_llm::kernels::quantize_with_block_size<2>(flashinfer::SFLayout)
        _per_token_group_quant_fp8
        _ZN7sgl_hip10activation18act_and_mul_kernelI14__hip_bfloat16TnPFT_RKS3_EXadL_Z4siluIS2_EE
        void rope_neox<true, false, float>(float const*, float*, int)
        void quantize_q8_1(float const*, void*, long)
        void k_bin_bcast<&op_add, float, float, float>(float const*, float const*, float*)
        void k_get_rows_float<float, float>(float const*, int const*, float*)
        cpy_f32_f16
        void convert_unary<__half, float>(void const*, float*, long)
        triton_poi_fused_add_bitwise_and_bitwise_not_bitwise_or_ge_lt_mul_sub_0
        triton_poi_fused_addmm_relu_1
        triton_poi_fused__softmax_rms_norm_4
        void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true>(nchw2nhwc_params_t)
        batched_transpose_64x64_pack_4x4_ediv_4x4_half
        SubTensorOpWithScalar1d
        fused__autocast_to__12152488584593855096
        Memcpy DtoD (Device -> Device)
        Memset (Device)
        [CUDA memset]
        [CUDA memcpy Device-to-Device]
        __amd_rocclr_copyBuffer
    """,
    "moe": """
        fused_moe_kernel
        _fused_moe_kernel_gptq_awq
        void vllm::moe::topkGatingSoftmax<4, 64, 4, 16, int>(float const*, bool const*)
        void vllm::moe::moe_align_block_size_kernel<int>(int*, int*, int*)
        void marlin_moe_wna16::Marlin<__nv_bfloat16, 256, 1, 8, 8>(int4 const*)
        void moe::dev::finalize::finalizeKernelVecLoad<KernelParams<cutlass::bfloat16_t>>(P)
        void moe::dev::routing::routingIndicesHistogramKernel<KernelParams<__nv_bfloat16>>(P)
        bmm_MxE4m3_MxE2m1MxE4m3_Fp32_t128x16x256u2_s3_swiGlu_dynBatch_sm100f
        void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<GroupProblemShape>>(P)
        void grouped_topk_fused_kernel<float, float, int>(float*, float*)
        void tensorrt_llm::kernels::cutlass_kernels::expandInputRowsKernel<bfloat16>(P)
        mfma_moe2_afp8_wfp4_bf16_cshuffle_t32x256x256_vscale_fix3_fp4opt_v1_pm1_xcd4
        _ZN7ck_tile6kentryILi256ENS_16MoeSortingKernelINS_17MoeSortingProblem
        mm_ids_helper
    """,
    "sampling": """
        void at::native::sbtopk::gatherTopK<float, unsigned int, 1, false>(TensorInfo)
        void at::native::bitonicSortKVInPlace<-2, -1, 16, 16, long, long>(TensorInfo)
        void at::native::reduce_kernel<512, 1, ReduceOp<float, at::native::ArgMaxOps<float>>>(P)
        void at_cuda_detail::cub::DeviceRadixSortOnesweepKernel<DeviceRadixSortPolicy<long>>(P)
        void flashinfer::sampling::TopPSamplingFromProbKernel<1024u, BLOCK_SCAN>(float*)
        void flashinfer::sampling::TopKTopPSamplingFromProbKernel<1024u>(float*)
        top_k_renorm_probs_kernel
        _gumbel_sample_kernel
        void vllm::apply_repetition_penalties_kernel<float>(float*)
        apply_token_bitmask_inplace_kernel
        void k_argsort_f32_i32<(ggml_sort_order)1>(float const*, int*)
        void tensorrt_llm::kernels::topKStage1<float, 128, 8>(float const*)
    """,
    "communication": """
        ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)
        ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)
        ncclKernel_AllReduce_RING_LL_Sum_half(ncclWorkElem)
        ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)
        ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)
        void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*)
        void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*, RankSignals)
        void sglang::cross_device_reduce_2stage<__half, 8>(sglang::RankData*)
        void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<8>(P)
        twoshotAllreduceKernel
        void deep_ep::intranode::notify_dispatch<8>(int const*, int*, int const*)
        void deep_ep::internode_ll::combine<false, 7168, 9>(void*, void*)
        nvshmemi_transfer_rma_kernel
    """,
    "copy": """
        Memcpy HtoD (Pageable -> Device)
        Memcpy HtoD (Pinned -> Device)
        Memcpy DtoH (Device -> Pinned)
        Memcpy PtoP (Device -> Device)
        [CUDA memcpy Host-to-Device]
        [CUDA memcpy HtoD]
        [CUDA memcpy DtoH]
        [CUDA memcpy Peer-to-Peer]
        CopyHostToDevice
    """,
    "other": """
        void fft2d_c2r_32x32<float, false, false, 0u, false, false>(float*, float2 const*)
        saxpy(int, float, float *, float *)
        kernel_0001_67bdb7e29d1bb4e0ca0aec954ef18af3
        stop_kernel
    """,
}
