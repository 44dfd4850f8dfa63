"""What the request at the queue's head needs of the KV pool, at any time of a run."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence

from stallscope.analyzers.load.waits import present
from stallscope.profiler.capture import Capture, Request
from stallscope.profiler.spec import Subject


def _heads(
    requests: Sequence[Request], spans: Sequence[tuple[int, int]]
) -> Iterator[Request | None]:
    """Yield the earliest of those that came before each span and were not admitted within it.

    Spans come in order of time.
    """
    coming = sorted(requests, key=lambda r: (r.arrival_ns, r.id), reverse=True)
    queue: list[tuple[int, int, Request]] = []
    for start_ns, end_ns in spans:
        while coming and coming[-1].arrival_ns <= start_ns:
            request = coming.pop()
            heapq.heappush(queue, (request.arrival_ns, request.id, request))
        while queue and _left(queue[0][2], end_ns):
            heapq.heappop(queue)
        yield queue[0][2] if queue else None


def _left(request: Request, t_ns: int) -> bool:
    moments = (request.admitted_ns, request.first_token_ns, request.end_ns)
    return any(t is not None and t <= t_ns for t in moments)


def _need_bytes(request: Request, subject: Subject, per_token: int) -> int:
    """Return the room that lets a request in: its prompt's, or the first chunk's of it."""
    tokens = request.input_tokens - (request.cached_tokens or 0)
    if subject.chunked_prefill and subject.max_num_batched_tokens is not None:
        tokens = min(tokens, subject.max_num_batched_tokens)
    block = subject.block_size or 1
    return -(-tokens // block) * block * per_token


def head_needs(
    capture: Capture, spans: Sequence[tuple[int, int]], kv_bytes_per_token: int | None
) -> tuple[int | None, ...]:
    """Return the KV bytes that the queue's head needs in each span; None where not known.

    Only requests that were never admitted count: what a preempted one needs is not recorded.
    """
    if kv_bytes_per_token is None:
        return (None,) * len(spans)
    return tuple(
        None if head is None else _need_bytes(head, capture.subject, kv_bytes_per_token)
        for head in _heads(present(capture), spans)
    )
