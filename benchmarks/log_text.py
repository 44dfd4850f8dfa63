"""A vLLM server's log of any length, made by rule: no two runs differ."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

API = "\x1b[0;36m(APIServer pid=7651)\x1b[0;0m "
CORE = "\x1b[0;36m(EngineCore_DP0 pid=7653)\x1b[0;0m "
START = (
    f"{API}INFO 02-04 07:25:08 [utils.py:261] non-default args: {{'model': 'm', "
    f"'max_num_seqs': 64}}\n"
    f"{CORE}INFO 02-04 07:25:27 [gpu_model_runner.py:4021] Starting to load model m...\n"
    f"{CORE}INFO 02-04 07:25:38 [gpu_model_runner.py:4118] Model loading took 39.89 GiB memory and "
    "10.567905 seconds\n"
    f"{CORE}INFO 02-04 07:26:00 [gpu_worker.py:356] Available KV cache memory: 19.35 GiB\n"
    f"{API}INFO:     Application startup complete.\n"
)
PERIODIC = (
    API
    + "INFO {at:%m-%d %H:%M:%S} [loggers.py:257] Engine 000: Avg prompt throughput: {taken:.1f} "
    "tokens/s, Avg generation throughput: {made:.1f} tokens/s, Running: {running} reqs, Waiting: "
    "{waiting} reqs, GPU KV cache usage: {used:.1f}%, Prefix cache hit rate: 86.6%\n"
)
ACCESS = API + 'INFO:     127.0.0.1:{port} - "POST /v1/chat/completions HTTP/1.1" 200 OK\n'
METRICS = API + 'INFO:     127.0.0.1:39638 - "GET /metrics HTTP/1.1" 200 OK\n'
FRAME = API + (
    'ERROR {at:%m-%d %H:%M:%S} [serving_chat.py:{line}]   File "/usr/lib/python3.12/site-packages/'
    'vllm/entrypoints/openai/serving_chat.py", line {line}, in create_chat_completion\n'
)
RAISED = API + (
    "ERROR {at:%m-%d %H:%M:%S} [serving_chat.py:239] ValueError: This model's maximum context "
    "length is 8192 tokens. However, you requested 9001 tokens.\n"
)


def periods(rng: random.Random) -> Iterator[str]:
    """Yield ten seconds of a busy server after the other: 64 run, a few wait, some prompts fail."""
    at = datetime(2024, 2, 4, 7, 26, 12)
    while True:
        at += timedelta(seconds=10)
        parts = [METRICS if n % 8 == 0 else ACCESS.format(port=39_000 + n) for n in range(28)]
        if rng.random() < 0.1:
            frames = (FRAME.format(at=at, line=rng.randint(100, 900)) for _ in range(24))
            parts += [*frames, RAISED.format(at=at)]
        parts.append(
            PERIODIC.format(
                at=at,
                taken=rng.uniform(2000, 4000),
                made=rng.uniform(700, 900),
                running=64,
                waiting=rng.randint(1, 20),
                used=rng.uniform(30, 60),
            )
        )
        yield "".join(parts)


def make(path: Path, size_mb: float) -> int:
    """Write a log of about `size_mb` MB; return how many periods it holds."""
    size, count = len(START), 0
    with path.open("w") as file:
        file.write(START)
        for text in periods(random.Random("vLLM's log")):
            size, count = size + file.write(text), count + 1
            if size > size_mb * 1e6:
                break
    return count
