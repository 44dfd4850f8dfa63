"""What limits a step when there is no budget: device counters and kernel classes."""

from __future__ import annotations

import statistics

from stallscope.analyzers.kernel_mix import shares_by_class
from stallscope.analyzers.paged_out import decide_paged_out
from stallscope.analyzers.quantities import (
    DRAM_THROUGHPUT,
    TENSOR_ACTIVE,
    is_below,
    observe,
)
from stallscope.analyzers.step.limit import Decision
from stallscope.analyzers.step.lone_kernels import (
    from_kernel_profiles,
    may_wait_for_host,
    too_short_to_tell,
)
from stallscope.analyzers.step.rarely_busy import rarely_busy
from stallscope.analyzers.step.trace import queued_share, trace_busy, window_s
from stallscope.analyzers.thresholds import Thresholds
from stallscope.analyzers.words import both, percent
from stallscope.profiler.capture import Capture
from stallscope.profiler.wording import counted

MATRIX_MATRIX = frozenset({"gemm"})
MATRIX_VECTOR = frozenset({"gemv", "norm", "elementwise"})
# In decode these read weights and KV cache for as many rows as there are requests. Up to this many,
# a matrix product in 2-byte weights does at most 64 FLOP for each byte of weights; the lowest ridge
# of the datacenter GPUs in the device table is above 100.
FEW_ROWS = 64
READING_IN_DECODE = frozenset({"gemm", "attention"})
_NAMED = 0.01  # of the kernel time: a smaller share is not named
_WORTH_SAYING = 0.05  # of a steady window without work, where kernels decide
_SPELLED = {"gemv": "GEMV", "gemm": "GEMM"}
MOVING = frozenset({"communication", "copy"})
CANDIDATES = ("bandwidth", "compute", "host")  # of a step about which nothing is known


def _decision(bottleneck: str, share: float, quality: float, reason: str, cap: float) -> Decision:
    return Decision(bottleneck, share, 0.0, None, 1.0 - share, quality, reason, cap=cap)


def _from_idle(capture: Capture, t: Thresholds) -> Decision | None:
    """A trace whose steady window is mostly idle: the host, unless exposed copies fill it."""
    busy = trace_busy(capture)
    if busy is None:
        return None
    idle = 1.0 - busy - queued_share(capture)
    if idle <= t.kernel_idle:
        return None
    exposed = sum(k.exposed_ns or 0 for k in capture.kernels if k.kernel_class in MOVING)
    length_ns = window_s(capture, busy) * 1e9
    if length_ns and exposed / length_ns > idle / 2:
        reason = "exposed copies and communication fill the time in which no kernel computes"
        return _decision("interconnect", idle, 0.7, reason, 0.8)
    reason = f"the device idles {percent(idle)} of the steady window"
    return _decision("host", idle, 1.0, reason, 0.9)


def _from_counters(capture: Capture, t: Thresholds) -> Decision | None:
    tensor = observe(capture, "tensor_active", TENSOR_ACTIVE)
    dram = observe(capture, "dram_throughput", DRAM_THROUGHPUT)
    under, measure = is_below(tensor, t.tensor_bound)
    if under is False and measure is not None:
        reason = f"tensor cores are active {percent(measure.value)}"
        return _decision("compute", measure.value, 0.8, reason, 0.85)
    under, measure = is_below(dram, t.dram_bound)
    low, _ = is_below(tensor, t.tensor_low)
    if under is False and low and measure is not None:
        reason = f"DRAM runs at {percent(measure.value)} with the tensor cores nearly idle"
        return _decision("bandwidth", measure.value, 0.8, reason, 0.85)
    return None


def _from_kernel_classes(capture: Capture, t: Thresholds) -> Decision | None:
    total = sum(k.busy_ns for k in capture.kernels)
    if not total:
        return None
    rows = _rows_in_decode(capture)
    small = rows is not None and rows <= FEW_ROWS
    reading = [k for k in capture.kernels if small and k.phase == "decode"]
    reading = [k for k in reading if k.kernel_class in READING_IN_DECODE]
    of_few = sum(k.busy_ns for k in reading) / total
    matrix = sum(k.busy_ns for k in capture.kernels if k.kernel_class in MATRIX_MATRIX) / total
    matrix -= sum(k.busy_ns for k in reading if k.kernel_class in MATRIX_MATRIX) / total
    vector = sum(k.busy_ns for k in capture.kernels if k.kernel_class in MATRIX_VECTOR) / total
    if matrix >= t.kernel_class_share:
        reason = f"{percent(matrix)} of kernel time is matrix-matrix GEMM"
        return _by_class(capture, "compute", matrix, reason)
    if vector + of_few >= t.kernel_class_share:
        reason = f"{percent(vector + of_few)} of kernel time is {_moving_text(capture, of_few)}"
        if of_few:
            reason += (
                f" in decode of {counted(round(rows or 0.0), 'row')} a step, which reads "
                "weights and KV cache"
            )
        return _by_class(capture, "bandwidth", vector + of_few, reason)
    return None


def _moving_text(capture: Capture, of_few: float) -> str:
    """Name the kinds of kernels that move bytes, the largest first, and say where GEMV lacks."""
    kinds = MATRIX_VECTOR | (READING_IN_DECODE if of_few else frozenset())
    shares = {c: s for c, s in shares_by_class(capture).items() if c in kinds}
    found = [c for c, share in shares.items() if share >= _NAMED]
    names = both([_SPELLED.get(c, c) for c in found])
    if of_few or "gemv" in found:
        return names
    return f"{names} ({'hardly any' if 'gemv' in shares else 'no'} GEMV)"


def _rows_in_decode(capture: Capture) -> float | None:
    """Return the mean rows of a decode step, where every one says how many it has."""
    rows = [s.logit_rows for s in capture.steps if s.phase == "decode" and not s.warmup]
    known = [count for count in rows if count is not None]
    return statistics.fmean(known) if known and len(known) == len(rows) else None


def _by_class(capture: Capture, bottleneck: str, share: float, reason: str) -> Decision:
    if may_wait_for_host(capture):
        return too_short_to_tell(capture, bottleneck, reason)
    busy = trace_busy(capture)
    idle = 0.0 if busy is None else 1.0 - busy - queued_share(capture)
    if idle >= _WORTH_SAYING:
        reason += f", and the device idles {percent(idle)} of the steady window"
    return _decision(bottleneck, share, 0.4, reason, 0.6)


def limit_without_budget(capture: Capture, t: Thresholds, missing: str) -> Decision:
    """Decide from counters and kernel classes; else undetermined, ending with what to type."""
    for decide in (
        _from_idle,
        from_kernel_profiles,
        _from_counters,
        decide_paged_out,
        _from_kernel_classes,
    ):
        decision = decide(capture, t)
        if decision is not None:
            return decision
    waiting = rarely_busy(capture, t, missing)
    if waiting is not None:
        return waiting
    reason = f"without a step budget these cannot be told apart: {missing}"
    return Decision("undetermined", 0.0, 0.0, None, 1.0, 0.4, reason, between=CANDIDATES)
