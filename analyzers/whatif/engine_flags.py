"""What the engines call the same lever: vLLM, SGLang, TensorRT-LLM, llama.cpp and transformers.

From the engines' own documentation as of 2026; where one has no such setting it is said.
"""

from __future__ import annotations

from collections.abc import Mapping

Flags = Mapping[str, str]

POOL: Flags = {
    "stallscope": "--kv-budget",
    "vllm": "--gpu-memory-utilization",
    "sglang": "--mem-fraction-static",
    "tensorrt-llm": "kv_cache_config.free_gpu_memory_fraction",
    "llama.cpp": "--ctx-size (of all slots together)",
    "transformers": "ContinuousBatchingConfig(max_memory_percent=…)",
}
HALF_KV: Flags = {
    "vllm": "--kv-cache-dtype fp8",
    "sglang": "--kv-cache-dtype fp8_e5m2",
    "tensorrt-llm": "kv_cache_config.dtype: fp8",
    "llama.cpp": "--cache-type-k q8_0 --cache-type-v q8_0",
    "transformers": 'cache_implementation="quantized" (slower)',
}
SEQUENCES: Flags = {
    "stallscope": "--max-num-seqs",
    "vllm": "--max-num-seqs",
    "sglang": "--max-running-requests",
    "tensorrt-llm": "max_batch_size",
    "llama.cpp": "--parallel",
    "transformers": "ContinuousBatchingConfig(max_requests_per_batch=…)",
}
TOKEN_BUDGET: Flags = {
    "stallscope": "--max-num-batched-tokens",
    "vllm": "--max-num-batched-tokens",
    "sglang": "--chunked-prefill-size",
    "tensorrt-llm": "max_num_tokens",
    "llama.cpp": "--batch-size and --ubatch-size",
    "transformers": "ContinuousBatchingConfig(max_batch_tokens=…)",
}
CONTINUOUS: Flags = {
    "stallscope": "--engine builtin",
    "vllm": "always does",
    "sglang": "always does",
    "tensorrt-llm": "batching_type: INFLIGHT",
    "llama.cpp": "--cont-batching (on by default)",
    "transformers": "generate_batch() instead of generate(), or transformers serve",
}
RESERVE_LESS: Flags = {
    "vllm": "reserves nothing for output",
    "sglang": "--schedule-conservativeness (lower)",
    "tensorrt-llm": "scheduler_config.capacity_scheduler_policy: MAX_UTILIZATION",
    "llama.cpp": "--ctx-size for each slot is fixed; fewer slots hold more each",
    "transformers": "ContinuousBatchingConfig(safety_margin=…) (lower)",
}
PREFIXES: Flags = {
    "vllm": "--enable-prefix-caching (on by default in V1)",
    "sglang": "on by default (RadixAttention)",
    "tensorrt-llm": "kv_cache_config.enable_block_reuse",
    "llama.cpp": "cache_prompt in the request (on by default)",
    "transformers": "shared blocks in generate_batch()",
}
IN_16: Flags = {
    "stallscope": "--dtype bf16",
    "vllm": "--dtype bfloat16",
    "sglang": "--dtype bfloat16",
    "tensorrt-llm": "dtype: bfloat16",
    "llama.cpp": "a BF16 or F16 file",
    "transformers": "dtype=torch.bfloat16",
}
IN_32: Flags = {
    "stallscope": "--dtype fp32",
    "vllm": "--dtype float32",
    "sglang": "--dtype float32",
    "tensorrt-llm": "dtype: float32",
    "llama.cpp": "an F32 file",
    "transformers": "dtype=torch.float32",
}
IN_4: Flags = {
    "vllm": "--quantization awq_marlin (a 4-bit checkpoint)",
    "sglang": "--quantization awq_marlin (a 4-bit checkpoint)",
    "tensorrt-llm": "a checkpoint quantized to W4A16_AWQ or NVFP4",
    "llama.cpp": "a Q4_K_M file",
    "transformers": "a GPTQ or AWQ checkpoint",
}
IN_8: Flags = {
    "stallscope": "--dtype bf16",
    "vllm": "--quantization fp8",
    "sglang": "--quantization fp8",
    "tensorrt-llm": "a checkpoint quantized to FP8",
    "llama.cpp": "a Q8_0 file",
    "transformers": "FineGrainedFP8Config",
}
DEVICES: Flags = {
    "vllm": "--tensor-parallel-size",
    "sglang": "--tp-size",
    "tensorrt-llm": "tensor_parallel_size",
    "llama.cpp": "--split-mode row",
    "transformers": 'tp_plan="auto" under torchrun',
}
FEWER_DEVICES: Flags = {
    "vllm": "a smaller --tensor-parallel-size, with --pipeline-parallel-size or replicas",
    "sglang": "a smaller --tp-size, with --pp-size or --dp-size",
    "tensorrt-llm": "a smaller tensor_parallel_size, with pipeline_parallel_size or replicas",
    "llama.cpp": "--split-mode layer",
    "transformers": 'device_map="auto" (layers apart) instead of tp_plan',
}
GRAPHS: Flags = {
    "vllm": "remove --enforce-eager",
    "sglang": "remove --disable-cuda-graph",
    "tensorrt-llm": "cuda_graph_config with enable_padding: true",
    "llama.cpp": "on by default in CUDA builds (GGML_CUDA_GRAPHS)",
    "transformers": 'cache_implementation="static" with torch.compile, or '
    "ContinuousBatchingConfig(use_cuda_graph=True)",
    "pytorch": "torch.compile(mode='reduce-overhead')",
}
ON_DEVICE: Flags = {
    "vllm": "remove --cpu-offload-gb",
    "sglang": "remove --cpu-offload-gb",
    "tensorrt-llm": "kv_cache_config.host_cache_size: 0",
    "llama.cpp": "-ngl 999, and no --n-cpu-moe",
    "transformers": "a device_map without cpu or disk",
}
FRONTENDS: Flags = {
    "vllm": "--api-server-count",
    "sglang": "--tokenizer-worker-num",
    "tensorrt-llm": "num_postprocess_workers (the way back only)",
    "llama.cpp": "--threads-http",
    "transformers": "tokenize in processes of your own",
}
ENGINES = ("vllm", "sglang", "tensorrt-llm", "llama.cpp", "transformers")
LEVERS: Mapping[str, Flags] = {
    "pool": POOL,
    "half-kv": HALF_KV,
    "sequences": SEQUENCES,
    "token-budget": TOKEN_BUDGET,
    "continuous": CONTINUOUS,
    "reserve-less": RESERVE_LESS,
    "prefixes": PREFIXES,
    "in-32": IN_32,
    "in-16": IN_16,
    "in-8": IN_8,
    "in-4": IN_4,
    "devices": DEVICES,
    "fewer-devices": FEWER_DEVICES,
    "graphs": GRAPHS,
    "on-device": ON_DEVICE,
    "frontends": FRONTENDS,
}


def at(flags: Flags, value: object | None) -> dict[str, str]:
    """Return flags with the value that a model found, where there is one."""
    if value is None:
        return dict(flags)
    return {
        engine: flag.replace("…", str(value)) if "…" in flag else f"{flag} {value}"
        for engine, flag in flags.items()
    }
