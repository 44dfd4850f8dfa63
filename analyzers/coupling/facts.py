"""What is known of a run as facts that edges can ask for."""

from __future__ import annotations

from collections.abc import Mapping

from stallscope.analyzers.judge import Judgement
from stallscope.analyzers.load.first_token import most_have_begun
from stallscope.analyzers.queue_words import kv_has_room
from stallscope.profiler.evidence import Measure

# Engines whose scheduler, as it comes, keeps room for output: TensorRT-LLM for all that is allowed
# (GUARANTEED_NO_EVICT), SGLang for a share of it (--schedule-conservativeness).
_RESERVING = ("tensorrt-llm", "sglang")


def facts_of(
    judgement: Judgement, found: Mapping[str, Measure], engine: str | None = None
) -> dict[str, float]:
    """Return the measures by name, and what the verdict found."""
    facts = {name: m.value for name, m in found.items()}
    limit, queues = judgement.decision.limit, judgement.admission is not None
    is_thrash = judgement.preemption is not None
    facts["queues"] = float(queues)
    facts["no_queue"] = float(not queues)
    facts["thrash"] = float(is_thrash)
    facts["held_by_kv"] = float(queues and not is_thrash)
    facts["by_kv"] = float(limit == "kv")
    facts["held_by_tokens"] = float(limit == "tokens")
    facts["held_by_prefill"] = float(limit == "prefill")
    begun = most_have_begun(found.get("first_token_wait_share"))
    facts["waits_for_first"] = float(not begun)
    counted = facts.get("preemptions", 0.0) > 0
    facts["only_inferred"] = float(not counted and facts.get("preemptions_inferred", 0.0) > 0)
    if "kv_used_peak" in found and limit == "kv" and not is_thrash and queues:
        facts["reserves"] = float(kv_has_room(found) and (engine or "").lower() in _RESERVING)
    if facts.get("ridge") and "intensity_decode" in facts:
        facts["intensity_of_ridge"] = facts["intensity_decode"] / facts["ridge"]
    return facts
