"""Clients in threads that ask a completions server for tokens: `python vllm_load.py URL MODEL …`.

A process of its own, so that a test and what it watches share no interpreter. Prompts are token ids
and differ from each other, so that no prefix is cached.
"""

from __future__ import annotations

import argparse
import http.client
import json
import random
import statistics
import threading
import time
from collections.abc import Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

VOCABULARY = 8000  # ids below the model's 8192
TIMEOUT_S = 600.0


@dataclass(frozen=True)
class Answer:
    """One request as its client saw it, in seconds of one clock."""

    start_s: float
    first_s: float
    end_s: float
    input_tokens: int
    output_tokens: int


@dataclass
class Load:
    """What every client does, until the time is over or the requests are used up."""

    url: str
    model: str
    input_tokens: int
    output_tokens: int
    until_s: float
    requests: int | None
    every_s: float
    one_at_a_time: bool
    stream: bool
    answers: list[Answer] = field(default_factory=list)
    taken: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    wire: threading.Lock = field(default_factory=threading.Lock)

    def client(self, seed: int, after_s: float) -> None:
        """Send requests one after the other, the first one after a while."""
        rng, where = random.Random(seed), urlsplit(self.url)
        time.sleep(after_s)
        while self._next():
            start_s = time.monotonic()
            # A new connection each: the server closes one that was idle for seconds.
            connection = http.client.HTTPConnection(
                where.hostname or "", where.port, timeout=TIMEOUT_S
            )
            with self.wire if self.one_at_a_time else nullcontext(), closing(connection):
                first_s = self._ask(connection, rng)
            answer = (start_s, first_s, time.monotonic(), self.input_tokens, self.output_tokens)
            with self.lock:
                self.answers.append(Answer(*answer))
            time.sleep(max(0.0, start_s + self.every_s - time.monotonic()))

    def _next(self) -> bool:
        with self.lock:
            self.taken += 1
            enough = self.requests is not None and self.taken > self.requests
        return not enough and time.monotonic() < self.until_s

    def _ask(self, connection: http.client.HTTPConnection, rng: random.Random) -> float:
        """Ask for one completion; return when its first token came, or all of it at once."""
        body = {
            "model": self.model,
            "prompt": [rng.randrange(10, VOCABULARY) for _ in range(self.input_tokens)],
            "max_tokens": self.output_tokens,
            "ignore_eos": True,
            "detokenize": False,
            "stream": self.stream,
        }
        headers = {"Content-Type": "application/json"}
        connection.request("POST", "/v1/completions", json.dumps(body), headers)
        response = connection.getresponse()
        if response.status != 200:
            raise SystemExit(f"{self.url}: HTTP {response.status}: {response.read()[:300]!r}")
        if self.stream:
            response.readline()
            first_s = time.monotonic()
            response.read()
            return first_s
        response.read()
        return time.monotonic()


def bench_json(load: Load, claimed: int, duration_s: float) -> dict[str, object]:
    """Return the result file of `vllm bench serve`, as far as these clients know it."""
    answers = load.answers
    inputs, outputs = (
        sum(getattr(a, name) for a in answers) for name in ("input_tokens", "output_tokens")
    )
    ttft = [(a.first_s - a.start_s) * 1e3 for a in answers]
    tpot = [(a.end_s - a.first_s) * 1e3 / max(1, a.output_tokens - 1) for a in answers]
    e2e = [(a.end_s - a.start_s) * 1e3 for a in answers]
    timed = {"ttft": ttft, "tpot": tpot, "e2el": e2e}
    latency = {
        f"{name}_{key}_ms": of(values)
        for key, values in timed.items()
        for name, of in (("mean", statistics.fmean), ("median", statistics.median))
    }
    return {
        "date": time.strftime("%Y%m%d-%H%M%S"),
        "endpoint_type": "openai",
        "backend": "openai",
        "label": None,
        "model_id": load.model,
        "tokenizer_id": load.model,
        "num_prompts": len(answers),
        "request_rate": "inf",
        "burstiness": 1.0,
        "max_concurrency": claimed,
        "duration": duration_s,
        "completed": len(answers),
        "failed": 0,
        "total_input_tokens": inputs,
        "total_output_tokens": outputs,
        "request_throughput": len(answers) / duration_s,
        "output_throughput": outputs / duration_s,
        "total_token_throughput": (inputs + outputs) / duration_s,
        **latency,
    }


def _arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("model")
    parser.add_argument("--clients", type=int, default=1)
    parser.add_argument("--input", type=int, default=32)
    parser.add_argument("--output", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--requests", type=int)
    parser.add_argument(
        "--every", type=float, default=0.0, help="seconds between a client's starts"
    )
    parser.add_argument("--ramp", type=float, default=0.0, help="seconds until all clients are in")
    parser.add_argument("--wait", type=float, default=0.0, help="seconds before the first client")
    parser.add_argument("--one-at-a-time", action="store_true", help="clients take turns")
    parser.add_argument("--bench-json", type=Path, help="write what vllm bench serve would")
    return parser.parse_args(given)


def main(given: Sequence[str] | None = None) -> None:
    """Run the load that the command line asks for."""
    args = _arguments(given)
    time.sleep(args.wait)
    start_s = time.monotonic()
    load = Load(
        url=args.url,
        model=args.model,
        input_tokens=args.input,
        output_tokens=args.output,
        until_s=start_s + args.seconds,
        requests=args.requests,
        every_s=args.every,
        one_at_a_time=args.one_at_a_time,
        stream=args.bench_json is not None,  # else the clients alone would fill a core
    )
    clients = [
        threading.Thread(target=load.client, args=(i, args.ramp * i / args.clients))
        for i in range(args.clients)
    ]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    duration_s = time.monotonic() - start_s
    if args.bench_json is not None:
        found = bench_json(load, args.clients, duration_s)
        args.bench_json.write_text(json.dumps(found), "utf-8")
    tokens = sum(a.output_tokens for a in load.answers)
    print(f"{len(load.answers)} answers, {tokens / duration_s:.0f} output tokens/s")


if __name__ == "__main__":
    main()
