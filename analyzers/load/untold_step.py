"""What samples would have to tell besides, for a mean step to be known by them."""

from __future__ import annotations

from stallscope.analyzers.cost.calibration import NoCostModel
from stallscope.analyzers.cost.roofline import CostModel, kv_bytes_on_rank
from stallscope.analyzers.stated.pool import pool_tokens
from stallscope.profiler.capture import Capture

_COUNTERS = ("input_tokens_total", "output_tokens_total")
_USE = ("kv_used_fraction", "kv_used_bytes")
_PAGE = "metrics page"


def untold_step(capture: Capture, cost: CostModel) -> NoCostModel:
    """Say what is missing, and where it stands: a page may be the engine's own and not tell all."""
    names = {s.name for s in capture.engine_samples}
    lacks_tokens = not names.issuperset(_COUNTERS)
    lacks_use = names.isdisjoint(_USE)
    has_size = "kv_total_bytes" in names or pool_tokens(capture, kv_bytes_on_rank(cost)) is not None
    missing = [
        *(["tokens in and out"] if lacks_tokens else []),
        *(["how full the KV pool is"] if lacks_use else []),
        *([] if has_size else ["how large the KV pool is"]),
    ]
    if not missing:
        reason = "the samples do not tell a mean step of one engine while requests ran"
        return NoCostModel(reason, "watch one engine under load, or trace a few steps with nsys")
    reason = f"the samples do not tell what a step holds: {_joined(missing)}"
    if not any(source.kind == _PAGE for source in capture.sources):
        how = "scrape the engine's own /metrics, or trace a few steps with nsys"
    elif not lacks_tokens and not lacks_use:
        how = (
            "keep the capture (attach --capture FILE) and diagnose it beside the log of the "
            "server's start, which states the pool's size"
        )
    else:
        how = "trace a few steps with nsys, or diagnose the capture beside the server's log"
    return NoCostModel(reason, how)


def _joined(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
