"""Servers under load, by their logs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from case_form import Case, Version, stamp, write


def gauges(
    second: float,
    prompts: float,
    made: float,
    running: int,
    waiting: int,
    kv: float,
    engine: int = 0,
) -> str:
    """Return vLLM's periodic line."""
    return (
        f"(APIServer pid=77) INFO 03-17 {stamp(second)} [loggers.py:259] Engine {engine:03d}: Avg "
        f"prompt throughput: {prompts:.1f} tokens/s, Avg generation throughput: {made:.1f} "
        f"tokens/s, Running: {running} reqs, Waiting: {waiting} reqs, GPU KV cache usage: "
        f"{kv:.1f}%, Prefix cache hit rate: 0.0%\n"
    )


# Clients, time per output token, running, waiting, KV use.
SWEEP = (
    (6, 0.107, 6, 0, 79.4),
    (7, 0.114, 7, 0, 92.4),
    (8, 0.440, 8, 0, 98.9),
    (12, 0.423, 8, 4, 98.7),
)
PROMPT, OUTPUT = 32_768, 1_000


def sweep(levels: Sequence[tuple[int, float, int, int, float]], scale: float = 1.0) -> str:
    """Write ten minutes of each load; prompts come in as requests end, one whole prompt each."""
    log, second, due = "", 0.0, 0.0
    for _, tpot_s, running, waiting, kv in levels:
        rate = running / tpot_s * scale
        for _ in range(60):
            second += 10
            due += rate * 10 / OUTPUT
            prompts, due = int(due), due % 1
            log += gauges(second, prompts * PROMPT / 10, rate, running, waiting, kv)
    return log


def cliff(folder: Path, version: Version) -> list[str]:
    """The eighth request of 32k + 1k tokens does not fit; what distracts is a queue at last."""
    levels = SWEEP if version.has_distractor else SWEEP[:3]
    return [write(folder, "server.log", sweep(levels, version.scale))]


def prefill_ramp(folder: Path, version: Version) -> list[str]:
    """100 prompts of 40k tokens come in at 24,000 tokens/s."""
    x = version.scale
    rows = (
        (24_000, 18, 10, 90, 19.3),
        (24_000, 35, 16, 84, 30.9),
        (24_000, 53, 22, 78, 42.5),
        (24_000, 70, 28, 72, 54.2),
        (24_000, 84, 34, 66, 65.4),
        (20_000, 84, 34, 66, 65.4),
    )
    log = "".join(
        gauges(10 * i, prompts * x, made * x, running, waiting, kv)
        for i, (prompts, made, running, waiting, kv) in enumerate(rows)
        if i < 5 or version.has_distractor
    )
    return [write(folder, "server.log", log)]


def starved_decode(folder: Path, version: Version) -> list[str]:
    """2,863 prefill batches and 37 of decode in 15 minutes, with room in the KV cache."""
    rows = []
    for i in range(2863):
        second = i * 900 / 2863
        queue = (0, 2, 1, 3)[i % 4] if version.has_distractor else 0
        rows.append(
            (
                second,
                f"Prefill batch, #new-seq: 2, #new-token: {round(6300 * version.scale)}, "
                f"#cached-token: 0, token usage: 0.22, #running-req: 252, #queue-req: {queue}, ",
            )
        )
    for i in range(37):
        rows.append(
            (
                (i + 1) * 900 / 37 - 0.1,
                f"Decode batch, #running-req: 254, #token: 412000, token usage: 0.22, cuda graph: "
                f"True, gen throughput (token/s): {254 * 37 / 900:.2f}, #queue-req: 0, ",
            )
        )
    log = "".join(f"[2026-07-27 {stamp(t)} TP0] {text}\n" for t, text in sorted(rows))
    return [write(folder, "server.log", log)]


def uneven_ranks(folder: Path, version: Version) -> list[str]:
    """512 clients at eight engines of 64 sequences at most; two hold most of the queue."""
    others = (
        (24, 2, 61.0),
        (20, 0, 52.3),
        (26, 3, 66.1),
        (18, 0, 47.0),
        (22, 1, 57.4),
        (21, 0, 54.8),
    )
    full = ((51, 117, 100.0), (31, 108, 98.6))
    rows = (*full, *(others if version.has_distractor else [(20, 0, 50.0)] * 6))
    log = ""
    for i in range(30):
        for engine, (running, waiting, kv) in enumerate(rows):
            log += gauges(
                10 * i,
                900 * version.scale,
                12.0 * running * version.scale,
                running,
                waiting,
                kv,
                engine,
            )
    return [write(folder, "server.log", log), "--max-num-seqs", "64"]


def pinned_memory_off(folder: Path, version: Version) -> list[str]:
    """A warning and a platform, and a user to whom it feels slower."""
    warning = (
        "(EngineCore pid=589) WARNING 03-22 12:00:03 [interface.py:525] Using 'pin_memory=False' "
        "as WSL is detected. This may slow down the performance.\n"
    )
    log = (
        "(APIServer pid=1) INFO 03-22 12:00:00 [api_server.py:10] vLLM API server version 0.11.0\n"
        "(APIServer pid=1) INFO 03-22 12:00:01 [utils.py:33] platform: "
        "Linux-5.15.167.4-microsoft-standard-WSL2-x86_64\n"
        + (warning if version.has_distractor else "")
        + "(APIServer pid=1) INFO 03-22 12:00:30 [launcher.py:38] Application startup complete.\n"
    )
    log += "".join(gauges(60 + 10 * i, 0.0, 41 * version.scale, 1, 0, 1.2) for i in range(6))
    return [write(folder, "server.log", log)]


LOADS = (
    Case(
        "kv-cliff",
        ("capacity",),
        cliff,
        says=(r"preempt", r"--max-num-seqs 7\b", r"makes? \d\d\.\d tokens/s"),
        never=(r"raise the sequence cap",),
    ),
    Case(
        "prefill-ramp",
        ("compute",),
        prefill_ramp,
        says=(r"so that 51 fill it, and 100 are in flight", r"\"raising the sequence cap"),
        never=(r"raise the sequence cap",),
    ),
    Case(
        "starved-decode",
        ("scheduling", "compute"),
        starved_decode,
        says=(r"77 batches of prompts", r"24\.3 s between two of its tokens"),
        never=(r"add GPUs", r"raise the sequence cap"),
    ),
    Case("uneven-ranks", ("scheduling",), uneven_ranks, says=(r"imbalance|engine 0|other engine",)),
    Case(
        "pinned-memory-off",
        ("undetermined",),
        pinned_memory_off,
        says=(r"ran under WSL", r"VLLM_WSL2_ENABLE_PIN_MEMORY", r"cannot be told"),
        never=(r"host-bound because",),
    ),
)
