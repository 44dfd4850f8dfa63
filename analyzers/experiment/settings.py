"""Settings that people vary, and what a response to one proves: what an experiment is read by.

Each row names the class that limits where the time responds, where it does not, and where more
costs time. The reports behind a row are public; what they established is in docs/compare.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Kind = Literal["resource", "burden", "choice", "format"]


@dataclass(frozen=True, slots=True)
class Setting:
    """What a setting is, in words, and the classes its responses prove; None proves nothing.

    `responds` is the class where the time follows the setting, `flat` where a resource that should
    matter does not, `worse` where more of a resource costs time. `unit_bytes` of a burden makes its
    slope a bandwidth. `is_speed` says that a time can grow by no more than the setting shrinks;
    `default` is what an option is where it was not given, and `speeds` what stands for a value.
    """

    names: tuple[str, ...]
    what: str
    kind: Kind
    responds: str | None
    flat: str | None = None
    worse: str | None = None
    unit_bytes: float | None = None
    is_speed: bool = False
    default: float | None = None
    speeds: Mapping[float, float] | None = None


# Of a lane and direction, after encoding: 2.5, 5 GT/s at 8/10; 8, 16, 32 GT/s at 128/130; 64 GT/s.
_PCIE_GB_PER_S = {1.0: 0.25, 2.0: 0.5, 3.0: 0.985, 4.0: 1.969, 5.0: 3.938, 6.0: 7.563}
SETTINGS = (
    Setting(
        ("link_bytes_per_s", "link_gbps", "network_gbps", "link_gb_per_s"),
        "the link between devices",
        "resource",
        "interconnect",
        is_speed=True,
    ),
    Setting(
        ("pcie_gen",),
        "the PCIe generation",
        "resource",
        "interconnect",
        is_speed=True,
        speeds=_PCIE_GB_PER_S,
    ),
    Setting(
        ("memory_bytes_per_s", "memory_gb_per_s", "memory_clock_mhz"),
        "the memory's bandwidth",
        "resource",
        "bandwidth",
        is_speed=True,
    ),
    Setting(
        ("sm_clock_mhz", "gpu_clock_mhz", "core_clock_mhz"),
        "the SM clock",
        "resource",
        "compute",
        is_speed=True,
    ),
    Setting(("power_limit_w", "power_cap_w"), "the power limit", "resource", "device"),
    Setting(
        ("max_num_seqs", "max_running_requests", "max_batch_size"),
        "the cap on running requests",
        "resource",
        "scheduling",
        worse="capacity",
    ),
    Setting(
        ("kv_budget_bytes", "kv_gib", "kv_tokens", "gpu_memory_utilization"),
        "the KV pool",
        "resource",
        "capacity",
    ),
    Setting(
        ("max_num_batched_tokens", "chunked_prefill_size"),
        "the token budget of a step",
        "resource",
        "compute",
    ),
    Setting(
        ("cpus", "processes", "api_servers", "workers"), "the host's processes", "resource", "host"
    ),
    Setting(("threads", "cpu_threads"), "the host's threads", "resource", "host", worse="host"),
    Setting(
        ("pipeline_parallel", "pipeline_parallel_size", "pp"),
        "the number of pipeline stages",
        "resource",
        None,
        flat="scheduling",
        worse="scheduling",
    ),
    Setting(
        ("tensor_parallel", "tensor_parallel_size", "tp", "gpus"),
        "the number of devices that share each layer",
        "resource",
        None,
        flat="interconnect",
        worse="interconnect",
    ),
    Setting(
        ("cpu_offload_gb", "offload_gb"),
        "what is kept in host memory",
        "burden",
        "interconnect",
        unit_bytes=1e9,
        default=0.0,  # vLLM and SGLang
    ),
    Setting(
        ("guided_requests", "constrained_requests", "structured_requests"),
        "the requests with serial host work",
        "burden",
        "host",
    ),
    Setting(("host_sleep_ms", "host_work_ms"), "the host's work in a step", "burden", "host"),
    Setting(("client", "tool", "load_generator"), "the load generator", "choice", "client"),
    Setting(("p2p", "nvlink", "peer_access"), "the way between devices", "choice", "interconnect"),
    Setting(
        ("capacity_scheduler_policy", "admission_policy"),
        "how many requests are let into the KV pool",
        "choice",
        "capacity",
    ),
    Setting(("guided", "structured_output", "grammar"), "constrained decoding", "choice", "host"),
    Setting(
        ("enforce_eager", "cuda_graphs", "cuda_graph"), "how kernels are launched", "choice", "host"
    ),
    Setting(
        ("dtype", "weights", "quantization", "load_option"), "the weights' format", "format", None
    ),
)
# Bytes of a weight, by the names that formats have; what is not here has no known size.
FORMAT_BYTES: Mapping[str, float] = {
    "fp32": 4.0,
    "float32": 4.0,
    "bf16": 2.0,
    "bfloat16": 2.0,
    "fp16": 2.0,
    "float16": 2.0,
    "half": 2.0,
    "fp8": 1.0,
    "int8": 1.0,
    "8bit": 1.0,
    "int4": 0.5,
    "4bit": 0.5,
    "nf4": 0.5,
    "mxfp4": 0.5,
    "nvfp4": 0.5,
    "gptq": 0.5,
    "awq": 0.5,
}


def setting_of(name: str) -> Setting | None:
    """Return the row of a setting, however its name is spelled; None where it is not known."""
    plain = name.lower().strip().lstrip("-").replace("-", "_").replace(" ", "_")
    return next((row for row in SETTINGS if plain in row.names), None)
