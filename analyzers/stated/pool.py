"""How many tokens the KV pool holds: as the engine states it, else by our count."""

from __future__ import annotations

from collections.abc import Mapping

from stallscope.profiler.capture import Capture


def stated_tokens(capture: Capture) -> float | None:
    """Return the tokens of one engine's pool, as its page or log states them."""
    for source in ("metrics_page", "server_log"):
        said = capture.meta.get(source)
        tokens = said.get("kv_tokens") if isinstance(said, Mapping) else None
        if isinstance(tokens, int | float) and not isinstance(tokens, bool) and tokens > 0:
            return float(tokens)
    return None


def pool_tokens(capture: Capture, per_token: int) -> float | None:
    """Return the pool's tokens; without the engine's word its bytes over those of a token."""
    stated = stated_tokens(capture)
    if stated is not None:
        return stated
    budget = capture.subject.kv_budget_bytes
    return budget / per_token if budget else None
