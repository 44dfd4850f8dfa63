"""Which kind of work a kernel does, as far as its name tells."""

from __future__ import annotations

import re
from functools import lru_cache

# Names are searched without regard to case, demangled or not, and the first row that is found
# decides. So what is specific stands before what is general:
# - a fused collective waits for its peers, whatever else it does: communication before all;
# - code generators list every operator they fused ("triton_poi_fused_addmm_relu_1" only does what
#   comes after the product), so their own prefix, which says how the loop runs, goes before those;
# - attention, MoE and sampling kernels are matrix products, sorts and softmaxes inside: they come
#   before these;
# - GEMV before GEMM, both before norms, norms before elementwise, which has the widest words.
_TABLE = (
    (
        "communication",
        r"nccl|rccl|multimem|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|all2all"
        r"|cross_device_reduce|nvshmem|deep_?ep::|send_?recv|quick_?reduce|mscclpp|lamport"
        r"|userbuffers|pplx|\ba2a_",
    ),
    (
        "copy",
        r"^memcpy (htod|dtoh|ptop)|^\[cuda memcpy (htod|dtoh|ptop|host-to-|device-to-host|peer)"
        r"|^copy(hosttodevice|devicetohost|peertopeer)",
    ),
    ("elementwise", r"^memcpy|^memset|^\[cuda mem|^copydevicetodevice|rocclr_(copy|fill)"),
    ("attention", r"triton_tem_\w*(attention|sdpa)"),
    ("gemm", r"triton_tem_|^triton_mm"),
    ("elementwise", r"triton_poi_|triton_for_|causal_conv1d"),
    ("norm", r"triton_(per|red)_\w*(norm|rsqrt|softmax|mean|var|sum|amax)"),
    ("sampling", r"triton_(per|red)_\w*(argmax|sort|topk)"),
    ("norm", r"triton_(per|red|mix)_"),
    (
        "attention",
        r"flash_?(attn|fwd|bwd|mla)|pytorch_flash|flash::|fmha|attn|attention|sdpa"
        r"|batch_?(decode|prefill)|single_?(decode|prefill)|paged_?kv|kv_?cache|and_cache"
        r"|kv_?indices|store_?kv|set_?kv|mmha|mqa_logits|\bmla|_mla_|mla_(decode|prefill|sparse)"
        r"|topk_transform|merge_states|page_indices|persistent_?variable_?length"
        r"|selective_(scan|state)|delta_rule|chunk_(scan|state|fwd|cumsum|local)|wkv\d?_|kernel_mha|xqa|gated_delta"
        r"|\bkda_|_fwd_(grouped_)?kernel(_stage\d)?$|flash_?decode",
    ),
    # The experts' products for one row or few.
    (
        "gemv",
        r"(moe|expert)\w*(gemv|mul_mat_vec|mul_mv|matvec)|(gemv|mul_mat_vec|mul_mv|matvec)\w*(moe|expert)",
    ),
    (
        "moe",
        r"moe|expert|topk_?gating|grouped_?topk|routing|dynbatch|group(ed)?_?gemm|grouped_mm"
        r"|groupproblemshape|m_?grouped|mm_ids_helper|expand_?input_?rows|compute_?strides_?tma|ep_(scatter|gather)",
    ),
    (
        "sampling",
        r"(?<!s)top_?[kp]|arg_?max|min_?p_|(?<!up)(?<!grid_)sampl(ing|e_)"
        r"|multinomial|gumbel|penalt|sort|rejection|bitmask|beam_?search|exponential"
        r"|logit_?(bias|proc)|stop_words|speculative",
    ),
    ("gemv", r"gemv|mul_mat_vec|mul_mv_|mmvq|wvsplitk|llmm1|llgemm1|\bdot_kernel|\bmatvec|_gemvt"),
    (
        "gemm",
        r"gemm|xmma|nvjet|cutlass\w*::(kernel|device_kernel)|tensorop_|cijk_|hipblaslt|marlin"
        r"|machete|mul_mat|matmul|(^|_)mm(_|$)|scaled_mm|splitkreduce|splitk_reduce|^bmm_|_bmm"
        r"|hmma|imma_|h884|s1688|s16816|fprop|dgrad|wgrad|winograd|scudnn|implicit_conv|convolve"
        r"|conv(1|2|3)d|convolution|gptq|awq_|exllama|magma_",
    ),
    (
        "norm",
        r"(rms|layer|batch|group|instance|l2|qk|q_k|dyt)_?norm|norm2d|norm_(kernel|f32|fwd|quant)"
        r"|rowwise_?moments|soft_?max|\bbn_(fw|bw)|reduce_kernel|devicereduce|device_reduce"
        r"|reduce_(1block|row)|sum_rows|welford|cudnn_bn",
    ),
    (
        "elementwise",
        r"elementwise|at::native|act_and_mul|silu|gelu|swiglu|relu|rotary|rope|quant|copy|cpy_"
        r"|concat|catarray|gather|scatter|index|embedding|lookup|fill|transpose|permute|bias"
        r"|cast|convert|cvt|dropout|scan|arange|mask|pool|nchw|nhwc|get_rows|set_rows|bin_bcast"
        r"|unary|binary|epilogue::|tensor1d|op_?with_?(scalar|tensor)|im2col|upsample|multi_tensor"
        r"|thrust::|cub::|rocprim|clamp|future_token|position|\badd_kernel|\bmul_kernel"
        r"|hadamard|^fused_|scale_f32|add_f32|mul_f32",
    ),
)
_ROWS = tuple((name, re.compile(pattern, re.IGNORECASE)) for name, pattern in _TABLE)


@lru_cache(maxsize=65536)
def kernel_class(name: str) -> str:
    """Return the class of work that a kernel's name tells, "other" where it tells none.

    - gemm: matrix products, convolutions and the sums that end them. A product with one row is a
      matrix-vector product, whatever kernel does it; "nvjet_…" and "Cijk_…" do both, and no name
      tells with how many rows.
    - gemv: kernels made for one row or few.
    - attention: attention of every kind, what stands in for it (state space, linear attention),
      and what writes or indexes the KV cache.
    - norm: reductions over rows: norms, softmax, means.
    - elementwise: everything else that reads its input about once: activations, rotary embedding,
      quantisation, gathers, layout changes, and copies within a device, by kernel or by memcpy.
    - moe: routing, permutation and the experts' grouped products.
    - sampling: top-k, top-p, sorts, arg max, penalties.
    - communication: collectives, also where fused with a norm.
    - copy: bytes that cross a link, to or from the host or another device; kernels do not.
    """
    return next((kind for kind, pattern in _ROWS if pattern.search(name)), "other")
