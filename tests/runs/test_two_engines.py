"""Real runs of the same workload on both engines: the same counts, and the same verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from real_run import Ran

pytestmark = pytest.mark.slow

WORKLOADS = {
    "bandwidth": (
        *("--model", "llama-125m", "--requests", "1", "--concurrency", "1"),
        *("--input-tokens", "4", "--output-tokens", "96"),
    ),
    "compute": (
        *("--model", "tiny-26m", "--requests", "6", "--concurrency", "1"),
        *("--input-tokens", "1024", "--output-tokens", "1"),
    ),
    "scheduling": (
        *("--model", "tiny-26m", "--requests", "12", "--concurrency", "8"),
        *("--input-tokens", "64", "--output-tokens", "32", "--max-num-seqs", "1"),
    ),
}


@pytest.fixture(scope="module", params=WORKLOADS)
def pair(request: pytest.FixtureRequest, run_command: Callable[..., Ran]) -> tuple[str, Ran, Ran]:
    arguments = (*WORKLOADS[request.param], "--warmup", "1")
    ours, theirs = (
        run_command(*arguments, "--engine", engine) for engine in ("builtin", "transformers")
    )
    return request.param, ours, theirs


def test_the_verdict_is_the_same(pair: tuple[str, Ran, Ran]) -> None:
    expected, ours, theirs = pair
    for ran in (ours, theirs):
        sentence, notes = ran.report["verdict"]["sentence"], ran.report["notes"]
        print(f"\n({ran.report['subject']['engine']}) {sentence} {ran.shares(ran.whole)} {notes}")
    classes = [ran.report["verdict"]["class"] for ran in (ours, theirs)]
    assert classes == [expected, expected]


def test_steps_and_tokens_are_the_same(pair: tuple[str, Ran, Ran]) -> None:
    ours, theirs = (ran.capture for ran in pair[1:])

    def counts(ran: Ran) -> Counter[tuple[object, ...]]:
        return Counter(
            (s.phase, s.prefill_tokens, s.decode_requests, s.context_tokens, s.logit_rows)
            for s in ran.capture.steps
            if not s.warmup
        )

    assert counts(pair[1]) == counts(pair[2])
    assert len(ours.tokens) == len(theirs.tokens) > 0
    assert [r.output_tokens for r in ours.requests] == [r.output_tokens for r in theirs.requests]
    assert {s.padded_tokens for s in theirs.steps} == {0}


def test_padding_is_shown(run_command: Callable[..., Ran]) -> None:
    ran = run_command(
        *("--engine", "transformers", "--model", "tiny-26m", "--requests", "6"),
        *("--concurrency", "3", "--input-tokens", "8:64", "--output-tokens", "4:32"),
    )
    steps = [s for s in ran.capture.steps if not s.warmup]
    padded = sum(s.padded_tokens or 0 for s in steps)
    real = sum(s.prefill_tokens + s.decode_requests for s in steps)
    shown = {m["name"]: m for m in ran.report["measures"]}
    assert shown["padding_share"]["value"] == pytest.approx(padded / (padded + real))
    assert shown["padding_share"]["provenance"] == "measured"
    assert 0 < shown["padding_time_share"]["value"] < 1
    assert any("of the tokens computed were padding" in note for note in ran.report["notes"])
    # What the forward passes were given adds up to what the requests asked for.
    prompts = sum(r.input_tokens for r in ran.capture.requests)
    outputs = sum(r.output_tokens for r in ran.capture.requests)
    assert sum(s.prefill_tokens for s in steps) == prompts
    assert sum(s.decode_requests for s in steps) == outputs - len(ran.capture.requests)
    # tiny-26m keeps 2 · 6 layers · 4 KV heads · 64 · 4 bytes a token.
    assert shown["kv_bytes_per_token_allocated"]["value"] == 12_288
    taken = sum(e.data["bytes"] for e in ran.capture.events if e.kind == "kv_alloc")
    assert taken == sum(e.data["bytes"] for e in ran.capture.events if e.kind == "kv_free") > 0
