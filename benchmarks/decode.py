"""Batch-1 decode of the built-in engine against transformers' generate, fp32, on the same weights.

Run `python benchmarks/decode.py [PRESET …]`. Both times hold the prefill of the same short prompt.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from paired import interleave, ratio
from streams import PROMPT, Stream, torch

from stallscope.analyzers.cost.arithmetic import step_weight_bytes
from stallscope.analyzers.cost.kv_bytes import kv_bytes_per_token
from stallscope.runner.hf_model import load_hf_model
from stallscope.runner.probe import GIB, probe_stream

PAIRS = 40
TOKENS = 65  # the first one is the prefill's
PRESETS = ("tiny-26m", "llama-125m")


def ours(stream: Stream) -> list[int]:
    """Generate greedily on the built-in engine."""
    stream.restart()
    tokens = [stream.token]
    for _ in range(TOKENS - 1):
        stream.decode()
        tokens.append(stream.token)
    return tokens


def theirs(module: Any) -> list[int]:
    """Generate greedily with transformers, to the same length."""
    prompt = torch.tensor([PROMPT])
    out = module.generate(
        prompt,
        attention_mask=torch.ones_like(prompt),
        do_sample=False,
        min_new_tokens=TOKENS,
        max_new_tokens=TOKENS,
    )
    tokens: list[int] = out[0, len(PROMPT) :].tolist()
    return tokens


def timed_s(run: Callable[[Any], object], subject: object) -> float:
    """Return how long a generation takes."""
    start_s = time.perf_counter()
    run(subject)
    return time.perf_counter() - start_s


def main() -> None:
    """Print both speeds, their ratio, and the built-in engine's MBU by this process's probe."""
    for preset in sys.argv[1:] or PRESETS:
        stream = Stream(preset, tokens=TOKENS)
        model = load_hf_model(preset, stream.spec, folder=None, dtype="fp32", device="cpu", seed=0)
        if ours(stream) != theirs(model.module):
            sys.exit(f"{preset}: the two engines generate different tokens")
        before = probe_stream(GIB, "cpu").bytes_per_s

        pairs = interleave(
            lambda m=model.module: timed_s(theirs, m),
            lambda s=stream: timed_s(ours, s),
            pairs=PAIRS,
        )
        probe = (before + probe_stream(GIB, "cpu").bytes_per_s) / 2
        theirs_s, ours_s = (statistics.median(column) for column in zip(*pairs, strict=True))
        context = len(PROMPT) + TOKENS / 2
        token_bytes = step_weight_bytes(stream.spec, "fp32")
        token_bytes += context * kv_bytes_per_token(stream.spec, "fp32")
        mbu = token_bytes * TOKENS / ours_s / probe
        print(
            f"{preset}: built-in {TOKENS / ours_s:.1f} tokens/s, transformers"
            f" {TOKENS / theirs_s:.1f}; built-in / transformers {ratio(pairs)};"
            f" MBU {mbu:.2f} of {probe / 1e9:.1f} GB/s",
            flush=True,
        )


if __name__ == "__main__":
    main()
