"""Servers that did not start, and what their start says of memory."""

from __future__ import annotations

import json
from pathlib import Path

from case_form import Case, Version, stamp, write


def line(second: float, text: str, level: str = "INFO", who: str = "Worker_TP0 pid=412") -> str:
    return f"({who}) {level} 03-11 {stamp(second)} [gpu_worker.py:359] {text}\n"


def refused(asked: float, unit: str, free: str, more: str, *, hint: bool) -> str:
    """Return torch's message as it stands in a log."""
    text = (
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {asked:.2f} {unit}. GPU 0 "
        f"has a total capacity of {free} is free. {more}"
    )
    if hint:
        text += (
            " If reserved but unallocated memory is large try setting "
            "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation."
        )
    return text


def sampler_warm_up(folder: Path, version: Version) -> list[str]:
    """Weights and pool are there, a sort of 256 rows of logits finds no room."""
    x = version.scale
    model = version.called("zai-org/GLM-4.7-Flash")
    inside = (
        f"Including non-PyTorch memory, this process has {23.30 * x:.2f} GiB memory in use. Of the "
        f"allocated memory {20.10 * x:.2f} GiB is allocated by PyTorch, with {51.88 * x:.2f} MiB "
        f"allocated in private pools (e.g., CUDA Graphs), and {914 * x:.2f} MiB is reserved by "
        "PyTorch but unallocated."
    )
    free = f"{23.52 * x:.2f} GiB of which {212.38 * x:.2f} MiB"
    return [
        write(
            folder,
            "server.log",
            line(0, f"non-default args: {{'model': '{model}', 'tensor_parallel_size': 2, "
                 "'gpu_memory_utilization': 0.9}", who="APIServer pid=9")
            + line(9, f"Starting to load model {model}...")
            + line(40, f"Model loading took {15.02 * x:.2f} GiB memory and 28.1 seconds")
            + line(58, f"Available KV cache memory: {4.31 * x:.2f} GiB")
            + line(58, f"GPU KV cache size: {83_584 * x:,.0f} tokens")
            + line(66, f"Graph capturing finished in 6 secs, took {0.05 * x:.2f} GiB")
            + line(67, refused(304 * x, "MiB", free, inside, hint=version.has_distractor), "ERROR")
            + line(67, "RuntimeError: CUDA out of memory occurred when warming up sampler with 256 "
                   "dummy requests. Please try lowering `max_num_seqs` or "
                   "`gpu_memory_utilization` when initializing the engine.", "ERROR"),
        )
    ]  # fmt: skip


def logits_of_drafts(folder: Path, version: Version) -> list[str]:
    """7 draft tokens make eight rows of fp32 logits of each request; none was profiled."""
    x = version.scale
    model = version.called("Qwen/Qwen3-8B")
    inside = f"Including non-PyTorch memory, this process has {75.27 * x:.2f} GiB memory in use."
    free = f"{79.19 * x:.2f} GiB of which {3.91 * x:.2f} GiB"
    profiled = (
        f"Memory profiling takes 4.51 seconds: total_gpu_memory ({79.19 * x:.2f}GiB) x "
        f"gpu_memory_utilization (0.90) = {71.27 * x:.2f}GiB; model weights take "
        f"{15.27 * x:.2f}GiB; PyTorch activation peak memory takes {3.04 * x:.2f}GiB; the rest of "
        f"the memory reserved for KV Cache is {52.02 * x:.2f}GiB."
    )
    log = (
        line(0, f"non-default args: {{'model': '{model}', 'speculative_config': "
             "{'num_speculative_tokens': 7}}", who="APIServer pid=9")
        + line(3, f"Starting to load model {model}...")
        + line(20, f"Model loading took {15.27 * x:.2f} GiB memory and 9.1 seconds")
        + (line(31, profiled) if version.has_distractor else "")
        + line(31, f"Available KV cache memory: {52.02 * x:.2f} GiB")
        + line(31, f"GPU KV cache size: {378_800 * x:,.0f} tokens")
        + line(44, '  File "/usr/lib/python3/site-packages/vllm/v1/sample/rejection_sampler.py", '
               "line 101, in forward", "ERROR")
        + line(44, "    logits = logits.to(torch.float32)", "ERROR")
        + line(44, refused(4.12 * x, "GiB", free, inside, hint=False), "ERROR")
    )  # fmt: skip
    return [write(folder, "server.log", log), "--model", "qwen3-8b", "--gpu", "h100-sxm"]


KIMI = {
    "model_type": "deepseek_v3",
    "architectures": ["DeepseekV3ForCausalLM"],
    "hidden_size": 7168,
    "intermediate_size": 18432,
    "moe_intermediate_size": 2048,
    "num_hidden_layers": 61,
    "num_attention_heads": 64,
    "num_key_value_heads": 64,
    "kv_lora_rank": 512,
    "q_lora_rank": 1536,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "n_routed_experts": 384,
    "n_shared_experts": 1,
    "num_experts_per_tok": 8,
    "first_k_dense_replace": 1,
    "moe_layer_freq": 1,
    "vocab_size": 163840,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}


def replicated_latent(folder: Path, version: Version) -> list[str]:
    """46.80 GiB hold 715,072 tokens of 61 layers x (512 + 64) x 2 B on each of 8 ranks."""
    x = version.scale
    log = line(58, f"Available KV cache memory: {46.80 * x:.2f} GiB") + line(
        58, f"GPU KV cache size: {715_072 * x:,.0f} tokens"
    )
    config = write(folder, "config.json", json.dumps(KIMI))
    return [write(folder, "server.log", log), "--model", config, "--gpus", "8"]


STARTS = (
    Case(
        "sampler-warm-up",
        ("capacity",),
        sampler_warm_up,
        says=(r"warming up", r"--max-num-seqs \(lower\)", r"--gpu-memory-utilization \(lower\)"),
        never=(r"does not fit", r"smaller dtype", r"more devices"),
    ),
    Case(
        "logits-of-drafts",
        ("capacity",),
        logits_of_drafts,
        says=(
            r"\d,\d{3} rows of fp32",
            r"--max-num-seqs \(lower\)",
            r"giving the KV cache more room",
        ),
        never=(r"leak", r"larger KV", r"\(higher\)"),
    ),
    Case(
        "replicated-latent",
        ("capacity",),
        replicated_latent,
        says=(r"each rank", r"70,27\d", r"8\.0 copies", r"--decode-context-parallel-size"),
        never=(r"more tensor",),
    ),
)
