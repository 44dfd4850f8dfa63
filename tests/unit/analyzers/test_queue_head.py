"""What the queue's head needs: the actual head's prompt, at that time."""

from __future__ import annotations

from capture_builders import MS, request

from stallscope.analyzers.load.queue_head import head_needs
from stallscope.profiler.capture import Capture, Request
from stallscope.profiler.spec import Subject


def needs(
    rows: tuple[Request, ...], *times_ms: float, subject: Subject | None = None
) -> tuple[int | None, ...]:
    spans = [(round(t * MS), round(t * MS)) for t in times_ms]
    return head_needs(Capture(subject=subject or Subject(), requests=rows), spans, 10)


def test_the_earliest_of_those_not_yet_admitted() -> None:
    rows = (
        request(0, 0, 5, 6, 7, input_tokens=100),
        request(1, 1, 8, 9, 9, input_tokens=7),
        request(2, 2, None, None, None, input_tokens=50),
    )
    assert needs(rows, 0, 4, 5, 7.9, 8, 20) == (1000, 1000, 70, 70, 500, 500)


def test_nobody_waits_before_the_first_or_after_the_last() -> None:
    assert needs((request(0, 3, 4, 5, 6),), 2, 3, 4, 5) == (None, 160, None, None)
    assert needs((), 1) == (None,)


def test_a_request_that_was_turned_away_is_nobodys_head() -> None:
    rows = (
        request(0, 0, None, None, None, status="failed", input_tokens=9000),
        request(1, 1, None, None, 4, status="failed", input_tokens=3),  # gave up at 4
        request(2, 2, 9, 10, 11),
    )
    assert needs(rows, 2, 4, 9) == (30, 160, None)


def test_cached_tokens_chunks_and_blocks() -> None:
    rows = (request(0, 0, None, None, None, input_tokens=100, cached_tokens=30),)
    assert needs(rows, 1) == (700,)
    assert needs(rows, 1, subject=Subject(block_size=16)) == (800,)  # 5 blocks of 16
    chunks = Subject(max_num_batched_tokens=20, chunked_prefill=True)
    assert needs(rows, 1, subject=chunks) == (200,)
    whole = Subject(max_num_batched_tokens=20, chunked_prefill=False)
    assert needs(rows, 1, subject=whole) == (700,)


def test_not_known_without_the_bytes_of_a_token() -> None:
    capture = Capture(requests=(request(0, 0, None, None, None),))
    assert head_needs(capture, [(1, 1)], None) == (None,)
