"""Frames: fixed nullable dtypes, exact integers, None as NA."""

from __future__ import annotations

import pytest

from stallscope.profiler.capture import (
    Capture,
    DeviceSample,
    Event,
    KernelSummary,
    Request,
    Step,
)

EXPECTED = {
    "sources": {
        "id": "Int64",
        "kind": "string",
        "path": "string",
        "clock": "string",
        "offset_ns": "Int64",
        "offset_error_ns": "Int64",
    },
    "steps": {
        "id": "Int64",
        "rank": "Int64",
        "start_ns": "Int64",
        "end_ns": "Int64",
        "device_ns": "Int64",
        "host_ns": "Int64",
        "phase": "string",
        "warmup": "boolean",
        "prefill_requests": "Int64",
        "prefill_tokens": "Int64",
        "decode_requests": "Int64",
        "context_tokens": "Int64",
        "waiting": "Int64",
        "running": "Int64",
        "kv_used_bytes": "Int64",
        "kv_total_bytes": "Int64",
        "attention_pairs": "Int64",
        "logit_rows": "Int64",
        "blocked_by": "string",
        "padded_tokens": "Int64",
        "padded_context_tokens": "Int64",
        "padded_pairs": "Int64",
    },
    "requests": {
        "id": "Int64",
        "arrival_ns": "Int64",
        "admitted_ns": "Int64",
        "first_token_ns": "Int64",
        "end_ns": "Int64",
        "input_tokens": "Int64",
        "cached_tokens": "Int64",
        "output_tokens": "Int64",
        "preemptions": "Int64",
        "preempted_ns": "Int64",
        "status": "string",
    },
    "tokens": {"request": "Int64", "t_ns": "Int64"},
    "device_samples": {
        "t_ns": "Int64",
        "device": "string",
        "name": "string",
        "value": "Float64",
        "unit": "string",
    },
    "engine_samples": {
        "t_ns": "Int64",
        "engine": "string",
        "name": "string",
        "value": "Float64",
    },
    "events": {"t_ns": "Int64", "kind": "string", "request": "Int64", "data_json": "string"},
    "kernel_summary": {
        "device": "string",
        "rank": "Int64",
        "phase": "string",
        "class": "string",
        "name": "string",
        "count": "Int64",
        "busy_ns": "Int64",
        "exposed_ns": "Int64",
    },
}
BARE = Step(2, 0, 0, 2**60 + 1, None, None, "other", False, 0, 0, 0, *[None] * 5, None, None, None)
FILLED = Capture(
    steps=(BARE,),
    requests=(Request(2, 5, None, None, None, 512, None, 0, None, None, "waiting"),),
    device_samples=(DeviceSample(3, "host", "host_cpu_cores", 1.5, "cores"),),
    events=(Event(2, "probe", None, {"a": [1, None]}),),
    kernels=(KernelSummary("gpu0", 0, "decode", "gemv", "k", 3, 30, None),),
)


@pytest.mark.parametrize("table", EXPECTED)
@pytest.mark.parametrize("capture", [Capture(), FILLED], ids=["empty", "filled"])
def test_dtypes_are_fixed(capture: Capture, table: str) -> None:
    dtypes = {name: str(dtype) for name, dtype in capture.frame(table).dtypes.items()}
    assert dtypes == EXPECTED[table]
    assert list(dtypes) == list(EXPECTED[table])


def test_integers_are_exact_beside_none_and_none_is_na() -> None:
    import pandas as pd

    steps = Capture(steps=(BARE, BARE)).frame("steps")
    assert steps["end_ns"].tolist() == [2**60 + 1] * 2
    assert steps["device_ns"].isna().all()
    assert steps["blocked_by"].isna().all()
    requests = Capture(
        requests=(
            Request(1, 5, None, None, 2**60 + 1, 1, None, 0, None, None, "waiting"),
            Request(2, 5, None, None, None, 1, None, 0, None, None, "waiting"),
        )
    ).frame("requests")
    assert requests["end_ns"].iloc[0] == 2**60 + 1
    assert requests["end_ns"].iloc[1] is pd.NA


def test_renamed_columns_hold_their_fields() -> None:
    assert FILLED.frame("events")["data_json"].tolist() == ['{"a": [1, null]}']
    assert FILLED.frame("kernel_summary")["class"].tolist() == ["gemv"]


def test_an_unknown_table_is_refused() -> None:
    with pytest.raises(ValueError, match="no table 'kernels' in a capture; there are: sources"):
        Capture().frame("kernels")
