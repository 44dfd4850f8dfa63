"""Prompts that always go first: how many of their batches lie between two tokens."""

from __future__ import annotations

import pytest

from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.load.span import Span
from stallscope.analyzers.load.starved import observe_starved
from stallscope.profiler.capture import Capture, EngineSample

S = 1_000_000_000
SPAN = Span(0, 400 * S)


def logged(per_s: float, made_per_s: float, *, running: int = 40, without: str = "") -> Capture:
    """Play 400 s of a log: batches of prompts each second, tokens told every ten."""
    samples = []
    for second in range(401):
        values = {
            "running": float(running),
            "waiting": 0.0,
            "kv_used_fraction": 0.2,
            "prefill_batches_total": per_s * second,
            "input_tokens_total": 8_000 * per_s * second,
            "output_tokens_total": made_per_s * (second // 10 * 10),
        }
        samples += [EngineSample(second * S, "0", n, v) for n, v in values.items() if n != without]
    return Capture(engine_samples=tuple(samples), meta={"ended": {}})


def test_batches_and_seconds_between_two_tokens() -> None:
    """3 batches/s · 40 running ÷ 8 tokens/s = 15 batches, 40 ÷ 8 = 5 s."""
    found = observe_starved(logged(3.0, 8.0), SPAN)
    assert found is not None
    assert (found.between, found.gap_s, found.running) == (
        pytest.approx(15),
        pytest.approx(5),
        pytest.approx(40),
    )
    diagnosis = diagnose(logged(3.0, 8.0))
    assert diagnosis.verdict.bottleneck == "scheduling"
    assert "15 batches of prompts run for each token of the 40 requests" in (
        diagnosis.verdict.sentence
    )
    assert diagnosis.remedies[0].flag["sglang"].startswith("--enable-mixed-chunk")
    assert diagnosis.wont_help[0].action == "raising the sequence cap"
    assert diagnosis.verdict.finding == "starved"
    assert "requests queue" not in (diagnosis.document.differs_because or "requests queue")
    assert diagnosis.verdict.chain[0].cause == "prompts always go first, batch after batch"


@pytest.mark.parametrize(
    ("capture", "decides"),
    [
        (logged(3.0, 12.0), True),  # 3 · 40 ÷ 12 = 10
        (logged(3.0, 12.1), False),
        (logged(3.0, 400.0), False),  # a batch of decode for each 0.3 of prompts
        (logged(3.0, 1.6, running=8), True),
        (logged(3.0, 1.4, running=7), False),  # they may just have been let in
        (logged(0.06, 0.1), True),  # 23 batches between the first and the last tokens
        (logged(0.05, 0.1), False),  # 19
        (logged(3.0, 0.0), False),  # no token at all is a standstill
        (logged(3.0, 8.0, without="prefill_batches_total"), False),
        (logged(3.0, 8.0, without="output_tokens_total"), False),
    ],
)
def test_ten_batches_for_each_token(capture: Capture, decides: bool) -> None:
    assert (diagnose(capture).verdict.bottleneck == "scheduling") is decides
