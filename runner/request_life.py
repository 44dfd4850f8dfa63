"""One request's life in the engine, from arrival to its last token."""

from __future__ import annotations

from dataclasses import dataclass

from stallscope.profiler.capture import Request


@dataclass(slots=True)
class RequestLife:
    """Counts and times of a request; `cached` are its tokens in the KV cache now, in `blocks`."""

    request: int
    arrival_ns: int
    input_tokens: int
    cached: int = 0
    blocks: int = 0
    output_tokens: int = 0
    admitted_ns: int | None = None
    first_token_ns: int | None = None
    end_ns: int | None = None
    preemptions: int = 0
    preempted_ns: int = 0
    status: str = "waiting"
    _out_since_ns: int | None = None  # preempted and not yet back

    def admit(self, t_ns: int) -> None:
        """Enter the batch, for the first time or again."""
        if self._out_since_ns is not None:
            self.preempted_ns += t_ns - self._out_since_ns
            self._out_since_ns = None
        self.admitted_ns = t_ns if self.admitted_ns is None else self.admitted_ns
        self.status = "running"

    def preempt(self, t_ns: int) -> None:
        """Go back to the queue without a cache."""
        self.cached = 0
        self.preemptions += 1
        self._out_since_ns = t_ns
        self.status = "waiting"

    def sample(self, t_ns: int) -> None:
        """Count a generated token."""
        self.output_tokens += 1
        self.first_token_ns = t_ns if self.first_token_ns is None else self.first_token_ns

    def finish(self, t_ns: int) -> None:
        """Complete."""
        self.end_ns = t_ns
        self.status = "finished"

    def row(self) -> Request:
        """Return the request as it is now."""
        return Request(
            id=self.request,
            arrival_ns=self.arrival_ns,
            admitted_ns=self.admitted_ns,
            first_token_ns=self.first_token_ns,
            end_ns=self.end_ns,
            input_tokens=self.input_tokens,
            cached_tokens=0,
            output_tokens=self.output_tokens,
            preemptions=self.preemptions,
            preempted_ns=self.preempted_ns,
            status=self.status,
        )
