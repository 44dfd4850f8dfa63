"""What nvidia-smi recorded over time, as CSV."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from case_form import Case, Version, stamp, write

HEADER = (
    "timestamp, name, driver_model.current, utilization.gpu [%], utilization.memory [%], "
    "memory.used [MiB], memory.total [MiB], power.draw [W], power.limit [W], "
    "clocks.current.sm [MHz], clocks.current.memory [MHz], clocks.max.sm [MHz], "
    "clocks.max.memory [MHz], temperature.gpu, clocks_event_reasons.sw_power_cap, "
    "clocks_event_reasons.sw_thermal_slowdown, clocks_event_reasons.hw_thermal_slowdown\n"
)


def csv(rows: Sequence[str], every_s: float = 1.0) -> str:
    """Put times before rows."""
    text = HEADER
    for i, row in enumerate(rows):
        second = i * every_s
        text += f"2025/09/01 {stamp(second)}.{round(second % 1 * 1000):03d}, {row}\n"
    return text


def paged_out(folder: Path, version: Version) -> list[str]:
    """Memory next to full, the GPU busy all the time, and its memory hardly ever."""
    power = round(128 * version.scale)
    named = "NVIDIA GeForce RTX 3090"
    rows = [
        f"{named}, WDDM, {(100, 99)[i % 2]} %, {(2, 1, 2, 3)[i % 4]} %, 24201 MiB, 24576 MiB, "
        f"{power}.31 W, 350.00 W, {1800 + i % 3 * 15} MHz, 9501 MHz, 2100 MHz, 9751 MHz, 55, "
        "Not Active, Not Active, Not Active"
        for i in range(60)
    ]
    given = [write(folder, "gpu.csv", csv(rows))]
    if version.has_distractor:
        given += ["--gpu", "rtx-3090"]
    return given


# A dense model of 27B parameters in 4 bits, as far as its linears go: 64 layers.
DENSE_27B = {
    "model_type": "qwen3",
    "architectures": ["Qwen3ForCausalLM"],
    "hidden_size": 5120,
    "intermediate_size": 17408,
    "num_hidden_layers": 64,
    "num_attention_heads": 24,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "vocab_size": 248320,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
TOKENS_PER_S = 37.3  # of one stream, at 315 W as at 350 W


def capped_power(folder: Path, version: Version) -> list[str]:
    """The power cap is on in every sample of decode, and the memory's clock never moves."""
    flag = "Active" if version.has_distractor else "Not Active"
    count, rate = 3, TOKENS_PER_S * version.scale
    seconds = count * 1_024 / rate
    idle = (
        "NVIDIA GeForce RTX 3090, WDDM, 0 %, 1 %, 20410 MiB, 24576 MiB, 41.10 W, 315.00 W, "
        "1695 MHz, 9501 MHz, 1695 MHz, 9501 MHz, 52, Not Active, Not Active, Not Active"
    )
    rows = [
        f"NVIDIA GeForce RTX 3090, WDDM, 99 %, {(88, 90, 91)[i % 3]} %, 20410 MiB, 24576 MiB, "
        f"31{(4, 4, 3)[i % 3]}.20 W, 315.00 W, {1500 + i % 2 * 15} MHz, 9501 MHz, 1695 MHz, "
        f"9501 MHz, 68, {flag}, Not Active, Not Active"
        for i in range(round(2 * seconds))
    ]
    written = 10 + seconds + 1
    bench = {
        "date": f"20250901-12{int(written) // 60:02d}{int(written) % 60:02d}",
        "backend": "openai",
        "model_id": version.called("Qwen/Qwen3.8-27B"),
        "num_prompts": count,
        "request_rate": "inf",
        "max_concurrency": 1,
        "duration": seconds,
        "completed": count,
        "total_input_tokens": 32 * count,
        "total_output_tokens": 1_024 * count,
        "request_throughput": count / seconds,
        "output_throughput": rate,
        "mean_ttft_ms": 133.0,
        "median_ttft_ms": 133.0,
        "mean_tpot_ms": 1e3 / rate,
        "mean_e2el_ms": 1e3 * 1_024 / rate,
    }
    config = write(folder, "config.json", json.dumps(DENSE_27B))
    return [
        write(folder, "gpu.csv", csv([*[idle] * 20, *rows, *[idle] * 20], 0.5)),
        write(folder, "bench.json", json.dumps(bench)),
        *("--gpu", "rtx-3090", "--model", config, "--dtype", "int4"),
    ]


def no_framebuffer(folder: Path, version: Version) -> list[str]:
    """A GB10 states no memory, but use and power."""
    total = "[N/A]" if version.has_distractor else "[Not Supported]"
    text = (
        "timestamp, index, name, utilization.gpu [%], utilization.memory [%], memory.used [MiB], "
    )
    text += "memory.free [MiB], memory.total [MiB], power.draw [W], temperature.gpu\n"
    for i in range(30):
        text += (
            f"2025/11/02 {stamp(i)}.000, 0, NVIDIA GB10, 96 %, {total}, {total}, {total}, {total}, "
            f"{37 * version.scale:.2f} W, 61\n"
        )
    return [write(folder, "gpu.csv", text)]


RECORDS = (
    Case(
        "paged-out",
        ("capacity", "interconnect"),
        paged_out,
        says=(r"WDDM|system memory",),
    ),
    Case(
        "capped-power",
        ("bandwidth",),
        capped_power,
        says=(r"memory clock|raising the power limit",),
        never=(r"throttl", r"runs below its clocks"),
    ),
    Case(
        "no-framebuffer",
        ("telemetry", "undetermined"),
        no_framebuffer,
        says=(r"memory_total_bytes", r"MemAvailable"),
    ),
)
