"""Probes against what they must agree with: arithmetic, each other, and a plain copy."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from stallscope.profiler.models import load_model
from stallscope.runner.calibration import Readings, is_unstable
from stallscope.runner.probe import (
    GIB,
    GemmProbe,
    StreamProbe,
    probe_gemm,
    probe_stream,
    step_weight_bytes,
    stream_buffer_bytes,
)
from stallscope.runner.probe_linears import Linear, LinearProber
from stallscope.runner.probe_rows import ProbeRows

MIB = 1 << 20


def test_the_buffer_outgrows_the_cache_within_half_of_the_memory() -> None:
    assert stream_buffer_bytes(32 * MIB, 16 * GIB) == GIB
    assert stream_buffer_bytes(960 * MIB, 16 * GIB) == 1920 * MIB
    assert stream_buffer_bytes(None, 16 * GIB) == GIB
    assert stream_buffer_bytes(960 * MIB, GIB) == 512 * MIB


def test_a_step_reads_every_matrix_but_the_embedding() -> None:
    # Per layer: q and o 512·512 each, k and v 512·256 each, three matrices of 512·1408; six
    # layers; and the LM head 8192·512. fp32.
    layer = 2 * 512 * 512 + 2 * 512 * 256 + 3 * 512 * 1408
    assert step_weight_bytes(load_model("tiny-26m"), 4.0) == 4 * (6 * layer + 8192 * 512)


def test_stream_reads_at_least_as_fast_as_a_copy_moves() -> None:
    buffer = torch.full((64 * MIB // 4,), 0.5)
    other = torch.empty_like(buffer)
    best_s = min(_seconds(lambda: other.copy_(buffer)) for _ in range(5))
    probe = probe_stream(64 * MIB, "cpu")
    assert probe.buffer_bytes == 64 * MIB
    # A copy reads each byte once and writes it besides; half its speed leaves room for noise.
    assert probe.bytes_per_s > 0.5 * buffer.nbytes / best_s


def test_gemm_is_within_the_machines_reach() -> None:
    probe = probe_gemm(torch.float32, "cpu")
    left = torch.full((probe.n, probe.n), 0.5)
    one_s = min(_seconds(lambda: left @ left) for _ in range(3))
    # The best of many passes is not slower than half of a plain product's speed.
    assert probe.flops_per_s > 0.5 * 2 * probe.n**3 / one_s
    assert probe.n in (512, 1024, 2048, 4096)


def test_linears_are_timed_per_instance_at_their_rows() -> None:
    spec = replace(
        load_model("tiny-26m"), hidden_size=64, intermediate_size=96, num_layers=2, vocab_size=256
    )
    heads, seen = spec.num_heads * spec.head_dim, []

    def op(name: str, delay_s: float) -> Linear:
        def call(x: torch.Tensor) -> torch.Tensor:
            seen.append((name, tuple(x.shape)))
            time.sleep(delay_s)
            return x

        return call

    linears = {
        "qkv": [op("qkv", 0.02)] * 2,
        "o": [op("o", 0.0)] * 2,
        "gate_up": [op("gate_up", 0.04)] * 2,
        "down": [op("down", 0.0)] * 2,
        "lm_head": [op("lm_head", 0.03)],
    }
    prober = LinearProber(spec, linears, dtype=torch.float32, device="cpu")
    probes = prober.probe([ProbeRows(5, 2), ProbeRows(9, 0)], budget_s=60.0)
    # Forward order, layer by layer, the LM head last and at its own rows.
    layer = [("qkv", (5, 64)), ("o", (5, heads)), ("gate_up", (5, 64)), ("down", (5, 96))]
    assert seen[:9] == [*layer, *layer, ("lm_head", (2, 64))]
    found = {(p.op, p.rows): p for p in probes}
    assert set(found) == {
        *((name, rows) for name in ("qkv", "o", "gate_up", "down") for rows in (5, 9)),
        ("lm_head", 2),
    }
    assert found["qkv", 5].instances == 2
    assert found["lm_head", 2].instances == 1
    # A sleep lasts at least as long as asked; on a busy machine the best of passes is near it.
    for key, asked in ((("qkv", 5), 0.02), (("gate_up", 9), 0.04), (("lm_head", 2), 0.03)):
        assert asked <= found[key].time_s < asked + 0.015
    assert found["o", 5].time_s < 0.015


def test_what_the_budget_cannot_hold_is_left_out_but_never_the_first() -> None:
    spec = replace(load_model("tiny-26m"), num_layers=1)
    linears = {
        name: [lambda x: time.sleep(0.02) or x]  # type: ignore[func-returns-value]
        for name in ("qkv", "o", "gate_up", "down", "lm_head")
    }
    prober = LinearProber(spec, linears, dtype=torch.float32, device="cpu")
    kinds = [ProbeRows(4, 4), ProbeRows(8, 8, expected_s=30.0), ProbeRows(16, 0)]
    probes = prober.probe(kinds, budget_s=0.01)
    assert {p.rows for p in probes} == {4}


@pytest.mark.parametrize(
    ("streams", "gemms", "unstable"),
    [
        ((10e9, 8.6e9), (1e12, 1e12), False),
        ((10e9, 8.4e9), (1e12, 1e12), True),
        ((8.4e9, 10e9), (1e12, 1e12), True),
        ((10e9, 10e9), (1e12, 0.84e12), True),
        ((10e9,), (1e12,), False),
        ((), (), False),
    ],
)
def test_probes_that_drift_by_more_than_15_percent(
    streams: tuple[float, ...], gemms: tuple[float, ...], unstable: bool
) -> None:
    readings = [
        Readings(StreamProbe(s, GIB, "torch.sum"), GemmProbe(g, 1024))
        for s, g in zip(streams, gemms, strict=True)
    ]
    assert is_unstable(readings) is unstable


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
