"""KV cache size by sequence length, and the four stages of its life in a run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from stallscope.analyzers.cost.kv_bytes import kv_bytes, kv_formula
from stallscope.analyzers.event_fields import lacking, number
from stallscope.analyzers.result import KvRow, LifeStage
from stallscope.profiler.capture import Capture, Event
from stallscope.profiler.spec import ModelSpec

DEFAULT_LENGTHS = (512, 1024, 2048, 4096)
_STAGES = {
    "initialised": "kv_init",
    "appended": "kv_append",
    "read": "kv_read",
    "freed": "kv_free",
}


def of_all_devices(ranks: int) -> str:
    """Say of a size that it is the whole model's, where several devices share that."""
    return "" if ranks == 1 else f", over all {ranks} devices"


def kv_rows(
    spec: ModelSpec, kv_dtype: str, lengths: Sequence[int], *, ranks: int = 1
) -> tuple[KvRow, ...]:
    """Compute the cache's size over all devices at each length by the formula of section 3.2."""
    source = f"formula: {kv_formula(spec)} · {_held(spec)}{copied(spec, ranks)}"
    source += of_all_devices(ranks)
    return tuple(
        KvRow(n, ranks * kv_bytes(spec, n, kv_dtype, tensor_parallel=ranks), "derived", source)
        for n in lengths
    )


def copied(spec: ModelSpec, ranks: int) -> str:
    """Say where devices hold the same: a latent lies whole on each, as does a last KV head."""
    if spec.latent is not None:
        return f" · {ranks} copies" if ranks > 1 else ""
    copied = ranks * math.ceil(spec.num_kv_heads / ranks) / spec.num_kv_heads
    return f" · {copied:g} for KV heads on several devices" if copied > 1 else ""


def _held(spec: ModelSpec) -> str:
    """Say how many tokens a sequence holds, and what it holds besides."""
    tokens = "tokens" if spec.sliding_window is None else f"min(tokens, {spec.sliding_window})"
    if spec.local_layers:
        some = f"{spec.local_layers} of {spec.num_layers} layers"
        tokens += f", in {some} min(tokens, {spec.local_window})"
    return f"{tokens}, and state that does not grow" if spec.has_state else tokens


def allocated_rows(capture: Capture) -> tuple[KvRow, ...]:
    """State what the longest request really held, block by block, at up to four lengths."""
    block_size = capture.subject.block_size
    now: dict[int, tuple[int, int]] = {}  # the tokens that the request's blocks reach, bytes held
    grown: dict[int, list[tuple[int, int]]] = {}
    for event in capture.events:
        if event.request is None or block_size is None or lacking(event):
            continue
        tokens, size = now.get(event.request, (0, 0))
        if event.kind == "kv_free":
            # A sliding window gives back the first blocks only; what remains is no shorter.
            freed = number(event, "bytes")
            size = 0 if freed is None else size - int(freed)
            now[event.request] = (tokens, size) if size > 0 else (0, 0)
        elif event.kind == "kv_alloc" and "blocks" in event.data:
            tokens += event.data["blocks"] * block_size
            now[event.request] = (tokens, size + event.data["bytes"])
            grown.setdefault(event.request, []).append(now[event.request])
    points = sorted(set(max(grown.values(), key=max, default=[])))
    chosen = {points[i * (len(points) - 1) // 3] for i in range(4)} if points else set()
    source = "blocks of the KV pool's tensors that the longest request held"
    return tuple(KvRow(n, size, "measured", source) for n, size in sorted(chosen))


def _tokens(event: Event, block_size: int | None) -> int | None:
    tokens, blocks = number(event, "tokens"), number(event, "blocks")
    if tokens is not None:
        return int(tokens)
    return None if blocks is None or block_size is None else int(blocks) * block_size


def _bytes(event: Event) -> int | None:
    size = number(event, "bytes")
    return None if size is None else int(size)


def _sum(counts: Iterable[int | None]) -> int | None:
    counts = tuple(counts)
    known = [c for c in counts if c is not None]
    return sum(known) if len(known) == len(counts) else None


def life_stages(capture: Capture) -> tuple[LifeStage, ...]:
    """Count the recorded events of each stage: initialised, appended, read, freed.

    Memory is freed by whole blocks, so more tokens' room is freed than tokens were put in.
    """
    stages = []
    for stage, kind in _STAGES.items():
        events = [e for e in capture.events if e.kind == kind]
        if events:
            tokens = _sum(_tokens(e, capture.subject.block_size) for e in events)
            size = _sum(_bytes(e) for e in events)
            stages.append(LifeStage(stage, len(events), tokens, size))
    return tuple(stages)
