"""What may be a cause or an effect, in the words of a report."""

from __future__ import annotations

from collections.abc import Mapping

NODES: Mapping[str, str] = {
    # Memory
    "kv-copied": "devices that share each layer hold the same KV entries (few heads, or a latent)",
    "weights-heavy": "weights take more than half of the devices' memory (fewer bytes each: dtype)",
    "reserved": "admission keeps room for output that may come (max_tokens)",
    "kv-room": "room for fewer tokens of KV cache",
    "kv-full": "KV pool full",
    "preemption": "preemption",
    "again": "prompt and output prefilled again",
    "fewer-tokens": "fewer new tokens per second",
    "kv-queue": "requests queue for KV room",
    "queue": "requests queue",
    "ttft": "TTFT grows",
    "put-back-wait": "those that had begun wait for the rest of their output: TPOT grows",
    # The scheduler
    "cap": "sequence cap (max_num_seqs) reached",
    "cap-roomy": "sequence cap (max_num_seqs) reached with KV to spare",
    "static": "a static batch takes nobody in until its last request ends",
    "padding": "ended requests are computed on as padding",
    "stalled": "the engine makes no progress under no cap",
    "deferred": "requests lack something other than room: an adapter, KV from elsewhere, a grammar",
    "imbalance": "one engine gets more requests than one with room",
    "no-tokens": "requests that run get no tokens",
    # The step
    "small-batch": "small batch: few FLOPs for each byte read",
    "reads-all": "every step reads all weights and the whole KV cache",
    "below-ridge": "few FLOPs for each byte: below the ridge",
    "memory-sets": "memory bandwidth sets the step time",
    "prompts": "prompts bring many tokens per step",
    "large-batch": "a large batch brings many tokens per step",
    "arithmetic-sets": "arithmetic sets the step time",
    "budget-used": "token budget used up; requests queue",
    "prompts-behind": "prompts queue behind prompts",
    "prompts-first": "prompts always go first, batch after batch",
    "decode-waits": "decode of other requests waits for prompts",
    "itl-tail": "gaps between tokens have a long tail (ITL p99)",
    # The host
    "front": "requests are prepared more slowly than the scheduler could take them",
    "front-queue": "they queue in front of the scheduler",
    "host-launch": "the host launches kernels one by one, operator by operator",
    "host-first": "the host launches kernels for the first time",
    "host-operators": "the host computes inside operators",
    "host-copy": "the host hands data over between kernels",
    "host-alloc": "the host allocates and frees memory of the device",
    "host-capture": "the host captures CUDA graphs",
    "host-sync": "the host waits for results before it launches on",
    "host-wait": "the host waits for a lock, a file or another process",
    "host-unseen": "the host does something that was not traced",
    "host-between": "work on the host between forward calls",
    "host-late": "kernels are over before the host launches the next",
    "device-waits": "the device waits for the host",
    "both-low": "SM throughput and memory bandwidth are both low",
    # Whoever shares the cores
    "cores-taken": "others keep the cores busy that the run needs",
    "threads-wait": "threads that are ready wait for a core, and the others for them",
    # Links, and whoever sends
    "copies_to_device": "what kernels need (weights, KV cache or inputs) comes from the host",
    "copies_to_host": "results or KV cache are copied to the host",
    "copies_marked": "what a step needs (weights, KV cache or inputs) comes over a link",
    "copies_between_devices": "devices copy data to each other",
    "communication_exposed": "devices exchange results, and compute nothing meanwhile",
    "copies-wait": "kernels wait for copies",
    "exchange-wait": "kernels wait for the exchange",
    "client": "the client sends less than it claims",
    "server-waits": "the server waits for its client",
}
