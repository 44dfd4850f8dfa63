"""Where DCGM has our counters: field names, their short names in dcgmi dmon, and their tags.

From dcgmlib/src/dcgm_fields.cpp. Profiling fields are fractions of 1; framebuffer fields are MiB.
"""

from __future__ import annotations

from stallscope.profiler.telemetry.rows import Counter

_PROF = "DCGM_FI_PROF_"
_DEV = "DCGM_FI_DEV_"
PIPES = ("dcgm_tensor_active", "dcgm_fp64_active", "dcgm_fp32_active", "dcgm_fp16_active")
FIELDS = (
    Counter(
        "dcgm_gr_engine_active",
        (f"{_PROF}GR_ENGINE_ACTIVE", "GRACT", "gr_engine_active"),
        "1",
    ),
    Counter("dcgm_sm_active", (f"{_PROF}SM_ACTIVE", "SMACT", "sm_active"), "1"),
    Counter("dcgm_sm_occupancy", (f"{_PROF}SM_OCCUPANCY", "SMOCC", "sm_occupancy"), "1"),
    Counter("dcgm_tensor_active", (f"{_PROF}PIPE_TENSOR_ACTIVE", "TENSO", "tensor_active"), "1"),
    Counter("dcgm_fp64_active", (f"{_PROF}PIPE_FP64_ACTIVE", "FP64A", "fp64_active"), "1"),
    Counter("dcgm_fp32_active", (f"{_PROF}PIPE_FP32_ACTIVE", "FP32A", "fp32_active"), "1"),
    Counter("dcgm_fp16_active", (f"{_PROF}PIPE_FP16_ACTIVE", "FP16A", "fp16_active"), "1"),
    Counter("dcgm_dram_active", (f"{_PROF}DRAM_ACTIVE", "DRAMA", "dram_active"), "1"),
    Counter("nvml_gpu_util", (f"{_DEV}GPU_UTIL", "GPUTL", "gpu_utilization"), "%"),
    Counter("nvml_memory_util", (f"{_DEV}MEM_COPY_UTIL", "MCUTL", "mem_copy_utilization"), "%"),
    Counter("memory_used_bytes", (f"{_DEV}FB_USED", "FBUSD", "fb_used"), "MiB"),
    Counter("memory_free_bytes", (f"{_DEV}FB_FREE", "FBFRE", "fb_free"), "MiB"),
    Counter("memory_reserved_bytes", (f"{_DEV}FB_RESERVED", "FBRSV", "fb_resv"), "MiB"),
    Counter("memory_total_bytes", (f"{_DEV}FB_TOTAL", "FBTTL", "fb_total"), "MiB"),
    Counter(
        "power_mw",
        (
            f"{_DEV}POWER_USAGE",
            "POWER",
            "power_usage",
            f"{_DEV}POWER_USAGE_INSTANT",
            "power_usage_instant",
        ),
        "W",
    ),
    Counter(
        "power_limit_mw",
        (
            f"{_DEV}ENFORCED_POWER_LIMIT",
            "EPLMT",
            "enforced_power_limit",
            f"{_DEV}POWER_MGMT_LIMIT",
            "PMLMT",
            "power_management_limit",
        ),
        "W",
    ),
    Counter(
        "energy_mj",
        (f"{_DEV}TOTAL_ENERGY_CONSUMPTION", "TOTEC", "total_energy_consumption"),
        "mJ",
    ),
    Counter("sm_clock_hz", (f"{_DEV}SM_CLOCK", "SMCLK", "sm_clock"), "MHz"),
    Counter("sm_clock_max_hz", (f"{_DEV}MAX_SM_CLOCK", "SMMAX", "sm_max_clock"), "MHz"),
    Counter("memory_clock_hz", (f"{_DEV}MEM_CLOCK", "MMCLK", "memory_clock"), "MHz"),
    Counter("memory_clock_max_hz", (f"{_DEV}MAX_MEM_CLOCK", "MMMAX", "memory_max_clock"), "MHz"),
    Counter("temperature_c", (f"{_DEV}GPU_TEMP", "TMPTR", "gpu_temp"), "C"),
    Counter(
        "clock_event_reasons",
        (
            f"{_DEV}CLOCK_THROTTLE_REASONS",
            f"{_DEV}CLOCKS_EVENT_REASONS",
            "DVCCTR",
            "current_clock_throttle_reasons",
        ),
        "1",
    ),
    Counter("pcie_tx_bytes_per_s", (f"{_PROF}PCIE_TX_BYTES", "PCITX", "pcie_tx_bytes"), "B/s"),
    Counter("pcie_rx_bytes_per_s", (f"{_PROF}PCIE_RX_BYTES", "PCIRX", "pcie_rx_bytes"), "B/s"),
)


def with_busiest_pipe(values: dict[str, float]) -> dict[str, float]:
    """Add dcgm_pipe_active, of all pipes seen the busiest: no less is the SMs' throughput."""
    seen = [values[name] for name in PIPES if name in values]
    return {**values, "dcgm_pipe_active": max(seen)} if seen else values
