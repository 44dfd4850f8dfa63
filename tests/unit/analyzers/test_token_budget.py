"""The token budget that batches of prompts were cut at, from a log that states none."""

from __future__ import annotations

from pathlib import Path

import pytest

from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.load.engines import moments
from stallscope.analyzers.load.token_budget import budgets_hit
from stallscope.profiler.capture import Capture
from stallscope.profiler.server_log.reader import read_server_log

Rows = list[tuple[int, int, int]]
# A second apart: prompts begun, tokens taken, requests left in the queue.
CUT: Rows = [(9, 2000, 90), (7, 2000, 83), (8, 2000, 75), (6, 2000, 69), (7, 2000, 62)]


def prefills(folder: Path, rows: Rows, *, with_decode: bool = False) -> Capture:
    running, lines = 0, []
    for second, (begun, tokens, queue) in enumerate(rows):
        stamp = f"[2026-01-02 03:04:{second:02d}]"
        lines.append(
            f"{stamp} Prefill batch, #new-seq: {begun}, #new-token: {tokens}, #cached-token: 0, "
            f"token usage: 0.0{second}, #running-req: {running}, #queue-req: {queue}, "
        )
        running += begun
    if with_decode:
        lines += [
            f"[2026-01-02 03:04:{len(rows) + i:02d}] Decode batch, #running-req: {running}, "
            f"#token: 9000, token usage: 0.09, gen throughput (token/s): 500.0, #queue-req: 0, "
            for i in range(2)
        ]
    path = folder / "server.log"
    path.write_text("\n".join(lines) + "\n")
    return read_server_log(path)


def hit(folder: Path, rows: Rows) -> dict[str, int]:
    return budgets_hit(moments(prefills(folder, rows).engine_samples))


@pytest.mark.parametrize(
    ("rows", "budget"),
    [
        (CUT, {"0": 2000}),
        # The first batch has none before it to count from: of four, three behind a queue are three.
        (CUT[:4], {"0": 2000}),
        (CUT[:3], {}),
        ([(b, t if i else 1500, q) for i, (b, t, q) in enumerate(CUT)], {"0": 2000}),
        ([(b, 2000 + i, q) for i, (b, _, q) in enumerate(CUT)], {}),  # never the same
        ([(8, t, q) for _, t, q in CUT], {}),  # eight prompts of 250 tokens each time
        ([(b, t, 0) for b, t, _ in CUT], {}),  # nothing waits
        ([*CUT, (9, 2500, 53)], {}),  # one took more: 2,000 was no budget
        # Four in five at it will do, three in four will not.
        ([*CUT, (3, 900, 53)], {"0": 2000}),
        ([*CUT[:4], (3, 900, 53)], {}),
    ],
)
def test_batches_that_end_at_one_number(rows: Rows, budget: dict[str, int], tmp_path: Path) -> None:
    assert hit(tmp_path, rows) == budget


def test_the_budget_is_named_and_a_larger_one_is_worth_a_try(tmp_path: Path) -> None:
    found = diagnose(prefills(tmp_path, CUT))
    assert (found.verdict.bottleneck, found.verdict.limit) == ("compute", "tokens")
    assert found.verdict.sentence.startswith(
        "Prompts use up the token budget of 2,000 a batch and the rest queue"
    )
    first = found.remedies[0]
    assert first.action.endswith("worth a try where steps do not fill the device yet")
    assert (first.gain, first.flag["sglang"]) == (None, "--chunked-prefill-size")


def test_a_log_of_prefill_alone_tells_no_output(tmp_path: Path) -> None:
    assert diagnose(prefills(tmp_path, CUT)).throughput.output_tokens_per_s is None
    both = diagnose(prefills(tmp_path, CUT, with_decode=True)).throughput
    assert both.output_tokens_per_s is not None
    assert both.output_tokens_per_s > 0
