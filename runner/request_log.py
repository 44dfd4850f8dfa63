"""Writes the rows of a load's requests and their tokens."""

from __future__ import annotations

from collections.abc import Mapping

from stallscope.profiler.recorder import Recorder
from stallscope.runner.request_life import RequestLife


class RequestLog:
    """The part of a load's log that is the same for every engine. A warm-up leaves no rows here."""

    def __init__(self, recorder: Recorder, *, warmup: bool) -> None:
        self.recorder = recorder
        self.warmup = warmup
        self._lives: dict[int, RequestLife] = {}

    def arrived(self, request: int, t_ns: int, *, input_tokens: int) -> None:
        """Note a request's arrival."""
        self._lives[request] = RequestLife(request, t_ns, input_tokens)
        self.write(request)

    def admitted(self, request: int, t_ns: int) -> None:
        """Note that a request entered the batch."""
        self.event("admit", t_ns, request)
        self._lives[request].admit(t_ns)
        self.write(request)

    def sampled(self, t_ns: int, tokens: Mapping[int, int]) -> None:
        """Note one generated token of each of these requests."""
        for request in tokens:
            life = self._lives[request]
            life.sample(t_ns)
            if not self.warmup:
                self.recorder.token(request, t_ns)
            if life.output_tokens == 1:
                self.write(request)

    def complete(self, request: int, t_ns: int) -> None:
        """Note that a request has all its tokens."""
        self._lives[request].finish(t_ns)
        self.write(request)
        del self._lives[request]

    def failed(self) -> None:
        """Fail every request still in flight."""
        for request, life in self._lives.items():
            life.status = "failed"
            self.write(request)

    def event(self, kind: str, t_ns: int, request: int | None = None, **data: int) -> None:
        """Record something that happened to the load."""
        if not self.warmup:
            self.recorder.event(kind, request, t_ns, **data)

    def kv_traffic(self, t_ns: int, appended: int, read: int, token_bytes: int) -> None:
        """Record what a step put into the KV cache and what it read from it, in tokens."""
        if not self.warmup:
            self.recorder.kv_traffic(appended, read, token_bytes, t_ns)

    def write(self, request: int) -> None:
        """Record a request as it is now."""
        if not self.warmup:
            self.recorder.add(self._lives[request].row())
