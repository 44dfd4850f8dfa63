"""Which row counts are probed: worked out from a few steps by hand."""

from __future__ import annotations

from stallscope.profiler.capture import Step
from stallscope.runner.probe_rows import ProbeRows, StepTimes, grid_rows, observed_rows

MS = 1_000_000
STEP = Step(
    id=0,
    rank=0,
    start_ns=0,
    end_ns=0,
    device_ns=None,
    host_ns=None,
    phase="decode",
    warmup=False,
    prefill_requests=0,
    prefill_tokens=0,
    decode_requests=0,
    context_tokens=None,
    waiting=None,
    running=None,
    kv_used_bytes=None,
    kv_total_bytes=None,
    attention_pairs=None,
    logit_rows=None,
    blocked_by=None,
)


def times(*steps: tuple[int, int, int, int]) -> StepTimes:
    """From (prefill tokens, decodes, logit rows, milliseconds)."""
    kept = StepTimes()
    for prefill, decodes, logits, ms in steps:
        kept.add(
            STEP._replace(
                phase="decode" if not prefill else "mixed" if decodes else "prefill",
                prefill_tokens=prefill,
                decode_requests=decodes,
                logit_rows=logits,
                end_ns=ms * MS,
            )
        )
    return kept


def test_the_kinds_that_cover_95_percent_of_the_time_heaviest_first() -> None:
    # 60 + 36 = 96 of 100 ms are covered by two kinds; the third is left out.
    kept = times((0, 4, 4, 18), (0, 4, 4, 18), (500, 2, 3, 60), (0, 1, 1, 4))
    assert observed_rows(kept) == (ProbeRows(502, 3, 0.060), ProbeRows(4, 4, 0.018))


def test_a_short_phase_is_probed_all_the_same() -> None:
    kept = times((0, 1, 1, 99), (30, 0, 1, 1))
    assert observed_rows(kept) == (ProbeRows(1, 1, 0.099), ProbeRows(30, 1, 0.001))


def test_at_most_eight_kinds() -> None:
    kept = times(*((0, n, n, 10) for n in range(1, 21)))
    assert len(observed_rows(kept)) == 8


def test_the_grid_reaches_past_all_rows_seen_and_the_concurrency() -> None:
    # Most rows 100, in a step too short to be probed itself → up to 128. At most 6 logit rows
    # (concurrency) → LM head up to 8.
    kept = times((0, 100, 3, 1), (0, 1, 1, 99))
    assert [kind.rows for kind in observed_rows(kept)] == [1]
    grid = grid_rows(kept, concurrency=6)
    assert [kind.rows for kind in grid] == [1, 2, 4, 8, 16, 32, 64, 128]
    assert [kind.logit_rows for kind in grid] == [1, 2, 4, 8, 0, 0, 0, 0]


def test_nothing_observed_leaves_the_grid_of_the_concurrency() -> None:
    assert observed_rows(StepTimes()) == ()
    assert [kind.rows for kind in grid_rows(StepTimes(), concurrency=3)] == [1, 2, 4]
