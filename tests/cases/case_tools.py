"""What profilers print, and a client beside a server."""

from __future__ import annotations

import json
from pathlib import Path

from case_form import Case, Version, write
from case_loads import gauges


def python_profile(folder: Path, version: Version) -> list[str]:
    """One request at 100 tokens/s; a Python profile charges most of it to one call."""
    x = version.scale
    rows = (
        (3_000, 27.1, 27.1, "{method 'cpu' of 'torch._C.TensorBase' objects}"),
        (96_000, 0.9, 1.2, f"{version.called('linear')}.py:114(forward)"),
        (3_000, 0.4, 28.9, f"{version.called('sampler')}.py:50(forward)"),
    )
    text = f"         812345 function calls (799112 primitive calls) in {30.2 * x:.3f} seconds\n\n"
    text += "   Ordered by: internal time\n\n"
    text += "   ncalls  tottime  percall  cumtime  percall filename:lineno(function)\n"
    for calls, own, whole, name in rows:
        own, whole = own * x, whole * x
        text += (
            f"{calls:9} {own:8.3f} {own / calls:8.3f} {whole:8.3f} {whole / calls:8.3f} {name}\n"
        )
    if version.has_distractor:
        text = "top: python3 100.0 %CPU, GPU-Util 50-70 %\n\n" + text
    return [write(folder, "profile.txt", text)]


def counters_refused(folder: Path, version: Version) -> list[str]:
    """A rented container; the driver keeps its counters from users."""
    text = (
        f"==PROF== Connected to process {5121 if version.is_renamed else 113001} "
        f"({version.called('/usr/bin/python3.11')})\n\n"
        "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU "
        "Performance Counters on the target device 0. For instructions on enabling permissions "
        "and to get more information see https://developer.nvidia.com/ERR_NVGPUCTRPERM\n\n"
    )
    if version.has_distractor:
        text += (
            "==PROF== Disconnected from process 113001\n==WARNING== No kernels were profiled.\n"
            "==WARNING== Profiling kernels launched by child processes requires the "
            "--target-processes all option.\n"
        )
    return [write(folder, "ncu.txt", text)]


NOON = 1_750_161_600  # 2025-06-17 12:00:00 UTC
BEGIN, SECONDS, CLIENTS = 20, 300, 72


def images_in_front(folder: Path, version: Version) -> list[str]:
    """72 clients with pages of images; the engine sees few of them, and none waits."""
    x = version.scale
    model = version.called("Qwen/Qwen3.5-35B-A3B-FP8")
    labels = f'{{engine="0",model_name="{model}"}}'
    each_s, ttft_s, own_s = 60 * x, 45 * x, 0.9 * x
    done_per_s = CLIENTS / each_s
    pages = ""
    for second in range(0, BEGIN + SECONDS + 21):
        at = min(max(0, second - BEGIN), SECONDS)
        busy = 0 < second - BEGIN <= SECONDS
        running = min(4 + at // 15, 19) if busy else 0
        values = {
            "num_requests_running": running,
            "num_requests_waiting": 0,
            "kv_cache_usage_perc": running * 0.01,
            "prompt_tokens_total": 9_000.0 * done_per_s * at,
            "generation_tokens_total": 600.0 * done_per_s * at,
            "time_to_first_token_seconds_sum": own_s * int(done_per_s * at),
            "time_to_first_token_seconds_count": int(done_per_s * at),
        }
        pages += f"# scrape_unix_ms {(NOON + second) * 1000}\n"
        pages += "".join(f"vllm:{name}{labels} {value}\n" for name, value in values.items())
        pages += f"process_cpu_seconds_total {60.0 + 0.05 * second + 0.97 * at}\n"
    count = round(done_per_s * SECONDS)
    bench = {
        "date": "20250617-120521",
        "backend": "openai-chat",
        "model_id": model,
        "num_prompts": count,
        "request_rate": "inf",
        "max_concurrency": CLIENTS,
        "duration": float(SECONDS),
        "completed": count,
        "total_input_tokens": 9_000 * count,
        "total_output_tokens": 600 * count,
        "request_throughput": count / SECONDS,
        "output_throughput": 600 * count / SECONDS,
        "mean_ttft_ms": 1e3 * ttft_s,
        "median_ttft_ms": 1e3 * ttft_s,
        "mean_tpot_ms": 1e3 * (each_s - ttft_s) / 599,
        "mean_e2el_ms": 1e3 * each_s,
    }
    given = [
        write(folder, "metrics.prom", pages),
        write(folder, "bench.json", json.dumps(bench)),
    ]
    if version.has_distractor:
        log = (
            "(APIServer pid=7) INFO 06-17 12:00:00 [api.py:1] vLLM API server version 0.19.0\n"
            "(EngineCore pid=9) WARNING 06-17 12:00:00 [fused_moe.py:1090] Using default MoE "
            "config. Performance might be sub-optimal! Config file not found at "
            "configs/E=256,N=512,device_name=NVIDIA_RTX_PRO_6000.json\n"
        )
        log += "".join(
            gauges(10 * i, 9_000 * done_per_s, 600 * done_per_s, 12, 0, 12.0).replace(
                "03-17", "06-17"
            )
            for i in range(3, 32)
        )
        log += gauges(330, 0, 0, 0, 0, 0).replace("03-17", "06-17")
        given.append(write(folder, "server.log", log))
    return given


TOOLS = (
    Case(
        "images-in-front",
        ("host", "client"),
        images_in_front,
        says=(r"in front of the server", r"--api-server-count"),
        never=(r"MoE",),
    ),
    Case(
        "python-profile",
        ("none", "profiler", "undetermined"),
        python_profile,
        says=(r"GPU trace|torch\.profiler|nsys",),
        never=(r"[Ss]ampler is",),
    ),
    Case(
        "counters-refused",
        ("profiler", "undetermined"),
        counters_refused,
        says=(r"nsys", r"permission|SYS_ADMIN"),
    ),
)
