"""Aggregates of InferenceMAX / InferenceX: seconds, and rates per GPU."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from stallscope.errors import InputError
from stallscope.profiler.benchmark.figures import (
    Row,
    count,
    number,
    positive,
    ratio,
    spread,
    text,
    told,
)
from stallscope.profiler.devices import load_device
from stallscope.profiler.spec import DTYPE_BYTES, DeviceSpec, Subject
from stallscope.profiler.trial import Spread, Trial

_CALLED: Mapping[str, tuple[str, ...]] = {
    "ttft_s": ("ttft",),
    "tpot_s": ("tpot",),
    "itl_s": ("itl",),
    "e2e_s": ("e2el", "ttlt"),  # whole request, time to last token
}
_FIGURES = {"mean": "mean", "p50": "median", "p90": "p90", "p99": "p99"}


def is_aggregate(row: Row) -> bool:
    """Tell whether a row is such an aggregate."""
    return "hw" in row and ("tput_per_gpu" in row or "mean_ttlt" in row)


def trials(row: Row, source: str) -> Iterator[Trial]:
    """Read one. Lengths of a fixed-length scenario are the nominal ones, rates are of all GPUs.

    With prefill and decode apart, several engines serve.
    """
    gpus, completed = gpu_count(row), count(row, "num_requests_successful")
    asked = count(row, "num_requests_total")
    read = positive(row, "mean_input_tokens", "isl")
    written = positive(row, "mean_output_tokens_actual", "osl")
    output_s = _of_all(row, "output_tput_per_gpu", gpus)
    per_s = positive(row, "mean_qps") or ratio(output_s, written)
    yield Trial(
        source=source,
        concurrency=count(row, "conc", "users") or None,
        completed=completed,
        failed=asked - completed if asked and completed and asked >= completed else None,
        duration_s=ratio(completed, per_s),
        input_tokens=read,
        output_tokens=written,
        input_tokens_per_s=positive(row, "input_tput_tps")
        or _of_all(row, "input_tput_per_gpu", gpus),
        output_tokens_per_s=output_s or _product(per_s, written),
        requests_per_s=per_s,
        speculative=_is_on(row.get("spec_decoding")),
        engines=2 if _is_on(row.get("disagg")) or _is_on(row.get("dp_attention")) else None,
        latency={} if completed == 0 else _latency(row, completed),
    )


def subject(row: Row) -> Subject:
    """Return what it says of engine, device and dtype."""
    precision = text(row, "precision")
    return Subject(
        device=_device(text(row, "hw")),
        num_devices=gpu_count(row) or 1,
        dtype=precision if precision in DTYPE_BYTES else None,
        engine=text(row, "framework"),
    )


def model(row: Row) -> str | None:
    """Name the model."""
    return text(row, "model")


def gpu_count(row: Row) -> int | None:
    """Count the GPUs; of apart prefill and decode both."""
    apart = [count(row, name) for name in ("num_prefill_gpu", "num_decode_gpu")]
    if any(apart):
        return sum(n or 0 for n in apart)
    return None if _is_on(row.get("disagg")) else count(row, "tp") or None


def _device(name: str | None) -> DeviceSpec | None:
    try:
        return load_device(name) if name else None
    except InputError:
        return None


def _of_all(row: Row, name: str, gpus: int | None) -> float | None:
    return _product(number(row, name), gpus)


def _product(a: float | None, b: float | None) -> float | None:
    return a * b if a and b else None


def _is_on(value: object) -> bool | None:
    if value is None:
        return None
    return str(value).strip().lower() not in ("", "none", "false", "off", "0")


def _latency(row: Row, completed: int | None) -> dict[str, Spread]:
    found: dict[str, Spread] = {}
    for metric, called in _CALLED.items():
        names = {f: tuple(f"{figure}_{c}" for c in called) for f, figure in _FIGURES.items()}
        n = completed if metric in ("ttft_s", "e2e_s") else None
        found[metric] = spread(row, names, 1.0, n)
    return told(found)
