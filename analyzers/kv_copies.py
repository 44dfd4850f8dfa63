"""How often a token's KV lies in the memory of tensor-parallel ranks, by the engine's own figures.

A latent has no heads, and of fewer KV heads than ranks some lie on several: more ranks then bring
little more room, whatever a division of the formula by the ranks would say.
"""

from __future__ import annotations

from dataclasses import dataclass

from stallscope.analyzers.cost.kv_bytes import cache_dtype, kv_bytes_per_token, kv_formula
from stallscope.analyzers.result import Remedy, WontHelp
from stallscope.analyzers.stated.said import engines_word, positive, ranks_of
from stallscope.analyzers.step.limit import QUALITY, Decision
from stallscope.profiler.capture import Capture
from stallscope.profiler.evidence import Measure
from stallscope.profiler.wording import figure

LEAST = 1.9  # copies: the engine rounds the figures that it prints
_MOST_SURE = 0.6  # where a start is all there is: nobody yet asked for more than the pool holds


@dataclass(frozen=True, slots=True)
class KvCopies:
    """`stored_bytes` of a token on each of `ranks`, `whole_bytes` of it once, and the pool."""

    ranks: int
    stored_bytes: float
    whole_bytes: int
    pool_tokens: float
    formula: str

    @property
    def copies(self) -> float:
        """How often the ranks together hold a token."""
        return self.stored_bytes * self.ranks / self.whole_bytes

    @property
    def sentence(self) -> str:
        """Say it with the arithmetic, and what one copy would give."""
        return (
            f"Each rank's KV cache takes {self.stored_bytes:,.0f} bytes a token, where a token has "
            f"{self.whole_bytes:,} in all ({self.formula}): {self.ranks} ranks hold "
            f"{self.copies:.1f} copies. Split between them, the same memory would hold "
            f"{figure(self.pool_tokens * self.copies / 1e6)} million tokens, not "
            f"{figure(self.pool_tokens / 1e6)} million"
        )


def observe_copies(capture: Capture) -> KvCopies | None:
    """Return how often a token lies in the ranks' memory; None where nothing tells, or once.

    Layers with a window or a recurrent state take no fixed bytes a token, and of a pipeline a rank
    holds some layers only: nothing is said of those.
    """
    said, subject = engines_word(capture), capture.subject
    spec, dtype = subject.model, cache_dtype(subject)
    size, tokens = positive(said, "kv_bytes"), positive(said, "kv_tokens")
    if positive(said, "kv_blocks_override"):
        return None  # the pool does not fill that memory
    ranks = ranks_of(capture, said)
    if spec is None or dtype is None or size is None or tokens is None or ranks < 2:
        return None
    if (positive(said, "pipeline_parallel") or 1) > 1 or spec.has_state:
        return None
    if spec.sliding_window is not None or spec.local_layers:
        return None
    whole = kv_bytes_per_token(spec, dtype)
    found = KvCopies(ranks, size / tokens, whole, tokens, kv_formula(spec))
    return found if LEAST <= found.copies <= 1.05 * ranks else None


def decide_by_copies(capture: Capture) -> Decision | None:
    """Of a start that nobody asked anything yet, say what will be short."""
    found = observe_copies(capture)
    if found is None:
        return None
    quality = QUALITY["derived"]
    share = 1.0 - 1.0 / found.copies
    reason = found.sentence[0].lower() + found.sentence[1:]
    sure, finding = _MOST_SURE, "kv-copied"
    return Decision("capacity", share, 0.0, None, 0.0, quality, reason, cap=sure, finding=finding)


def copies_note(capture: Capture) -> tuple[str, ...]:
    """Say it, whatever limits."""
    found = observe_copies(capture)
    return () if found is None else (f"{found.sentence}.",)


def copies_measure(capture: Capture) -> tuple[Measure, ...]:
    """Return the copies, with where they are from."""
    found = observe_copies(capture)
    if found is None:
        return ()
    source = f"{found.ranks} ranks × the engine's KV bytes ÷ its KV tokens ÷ {found.formula}"
    return (Measure("kv_copies_stated", found.copies, "count", "derived", source),)


def one_copy(capture: Capture) -> tuple[Remedy, ...]:
    """Say how the ranks come to share one copy."""
    found = observe_copies(capture)
    if found is None:
        return ()
    remedy = Remedy(
        "let the ranks share one copy of the KV cache: attention by requests or by context, not by "
        "heads",
        {
            "vllm": "--data-parallel-size with --enable-expert-parallel, or "
            "--decode-context-parallel-size",
            "sglang": "--enable-dp-attention",
        },
        None,
        f"the KV cache that the engine states at its start grows, to {found.copies:.1f} times its "
        "tokens at the most",
        ("kv_copies_stated",),
        cost="each rank has requests of its own: its weights are read for fewer at a time",
    )
    return (remedy,)


def more_ranks(capture: Capture) -> tuple[WontHelp, ...]:
    """Say why more ranks make no room."""
    if observe_copies(capture) is None:
        return ()
    return (WontHelp("more tensor-parallel ranks for the KV cache", "each keeps its own copy"),)
