"""Blocks of our own making, in the layouts that vLLM and SGLang print."""

from __future__ import annotations


def block(*rows: tuple[str, str] | str, end: bool = True) -> str:
    """Lay figures out as both tools do: a label of 40 columns; a text alone is a section's rule."""
    lines = [" Serving Benchmark Result ".center(50, "=")]
    lines += [r.center(50, "-") if isinstance(r, str) else f"{r[0]:<40} {r[1]:<10}" for r in rows]
    return "\n".join([*lines, *(["=" * 50] if end else [])]) + "\n"


OLD = block(
    ("Successful requests:", "40"),
    ("Benchmark duration (s):", "80.00"),
    ("Total input tokens:", "4000"),
    ("Total generated tokens:", "20000"),
    ("Request throughput (req/s):", "0.50"),
    ("Output token throughput (tok/s):", "250.00"),
    ("Total Token throughput (tok/s):", "300.00"),
    "Time to First Token",
    ("Mean TTFT (ms):", "200.00"),
    ("Median TTFT (ms):", "150.00"),
    ("P99 TTFT (ms):", "900.50"),
    "Time per Output Token (excl. 1st token)",
    ("Mean TPOT (ms):", "20.00"),
    ("Median TPOT (ms):", "19.00"),
    ("P99 TPOT (ms):", "40.00"),
    "Inter-token Latency",
    ("Mean ITL (ms):", "21.00"),
    ("Median ITL (ms):", "18.00"),
    ("P99 ITL (ms):", "90.00"),
)
NEW = block(
    ("Successful requests:", "38"),
    ("Failed requests:", "2"),
    ("Maximum request concurrency:", "8"),
    ("Request rate configured (RPS):", "1.50"),
    ("Benchmark duration (s):", "19.00"),
    ("Total input tokens:", "3800"),
    ("Total generated tokens:", "7600"),
    ("Request throughput (req/s):", "2.00"),
    ("Output token throughput (tok/s):", "400.00"),
    ("Peak output token throughput (tok/s):", "700.00"),
    ("Peak concurrent requests:", "10.00"),
    ("Total token throughput (tok/s):", "600.00"),
    "Time to First Token",
    ("Mean TTFT (ms):", "50.00"),
    ("Median TTFT (ms):", "40.00"),
    ("P50 TTFT (ms):", "40.00"),
    ("P90 TTFT (ms):", "80.00"),
    ("P95 TTFT (ms):", "90.00"),
    ("P99 TTFT (ms):", "100.00"),
    "End-to-end Latency",
    ("Mean E2EL (ms):", "2050.00"),
    ("P99 E2EL (ms):", "3000.00"),
    "Speculative Decoding",
    ("Acceptance rate (%):", "60.00"),
    ("Acceptance length:", "2.20"),
)
SGLANG = block(
    ("Backend:", "sglang"),
    ("Traffic request rate:", "inf"),
    ("Max request concurrency:", "not set"),
    ("Successful requests:", "100"),
    ("Benchmark duration (s):", "50.00"),
    ("Total input tokens:", "10000"),
    ("Total generated tokens:", "20000"),
    ("Total generated tokens (retokenized):", "19990"),
    ("Request throughput (req/s):", "2.00"),
    ("Input token throughput (tok/s):", "200.00"),
    ("Output token throughput (tok/s):", "400.00"),
    ("Total token throughput (tok/s):", "600.00"),
    ("Concurrency:", "61.50"),
    "End-to-End Latency",
    ("Mean E2E Latency (ms):", "30000.00"),
    ("Median E2E Latency (ms):", "29000.00"),
    "Time to First Token",
    ("Mean TTFT (ms):", "5000.00"),
    ("Median TTFT (ms):", "4000.00"),
    ("P99 TTFT (ms):", "9000.00"),
    "Inter-Token Latency",
    ("Mean ITL (ms):", "0.00"),
    ("Median ITL (ms):", "-0.00"),
    ("Max ITL (ms):", "0.00"),
)
