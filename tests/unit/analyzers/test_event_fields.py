"""Events that anybody records: what lacks a field or has a wrong one is left out and said."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from capture_builders import ON_GPU, batch_one, decodes, event

from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.event_fields import lacking, number, text
from stallscope.analyzers.result import LifeStage
from stallscope.profiler.capture import Capture
from stallscope.profiler.capture_file import read_capture
from stallscope.profiler.recorder import Recorder

FIELDS = {
    "kv_pool": {"bytes": 100, "tokens": 10},
    "kv_alloc": {"blocks": 1, "bytes": 10},
    "kv_init": {"tokens": 1, "bytes": 10},
    "kv_append": {"tokens": 1, "bytes": 10},
    "kv_read": {"tokens": 1, "bytes": 10},
    "kv_free": {"blocks": 1, "bytes": 10},
    "copy": {"bytes": 100, "length_ns": 1000, "in_forward": False},
    "not_observable": {"what": "x", "reason": "y", "how": "z"},
    "check": {"sentence": "x.", "class": "telemetry", "blocks": ["verdict"]},
    "oom": {"stage": "kv", "bytes": 10},
    "error": {"type": "E", "message": "m"},
    "gap": {"what": "w", "reason": "r"},
}
PROBES = {
    "stream": {"when": "before", "value": 1e9, "buffer_bytes": 100},
    "gemm": {"when": "before", "value": 1e9, "n": 64, "dtype": "fp32"},
    "linear": {"op": "qkv", "rows": 1, "time_s": 0.001},
}
MISSING = object()
KINDS = [
    *FIELDS.items(),
    *(("probe", {"probe": name, **fields}) for name, fields in PROBES.items()),
]


@pytest.mark.parametrize(("kind", "fields"), KINDS)
@pytest.mark.parametrize(
    "wrong",
    [MISSING, None, "a word", -1, float("nan"), [], True, 1e308, pytest.param(10**400, id="huge")],
)
def test_no_field_can_break_a_diagnosis(kind: str, fields: dict[str, Any], wrong: Any) -> None:
    for name in fields:
        data = {k: wrong if k == name else v for k, v in fields.items()}
        if wrong is MISSING:
            del data[name]
        row = event(kind, 0, 0)._replace(data=data)
        assert diagnose(Capture(subject=ON_GPU, steps=decodes(30), events=(row,))).verdict


def test_what_is_left_out_is_said() -> None:
    rows = (
        event("probe", probe="stream", value=1.0),
        event("probe", probe="stream", value=2.0),
        event("not_observable"),
    )
    found = diagnose(dataclasses.replace(batch_one(), events=(*batch_one().events, *rows)))
    assert found.notes == (
        "2 probe events without when left out.",
        "1 not_observable event without what and reason left out.",
    )
    assert "probe_bandwidth" not in {m.name for m in found.measures}
    assert found.verdict == diagnose(batch_one()).verdict


def test_a_read_without_bytes_counts_its_tokens_only(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    with Recorder(path, sample_hz=0) as recorder:
        recorder.event("kv_read", tokens=5)
    found = diagnose(read_capture(path))
    assert found.kv_life == (LifeStage("read", 1, 5, None),)
    assert "kv_read_bytes_per_decode_step" not in {m.name for m in found.measures}


def test_numbers_and_texts() -> None:
    row = event("x", a=1, b=1.5, c=True, d="4", e=float("inf"), f="", g=10**400)
    assert (number(row, "a"), number(row, "b")) == (1, 1.5)
    assert [number(row, n) for n in "cdegz"] == [None] * 5
    assert text(row, "d") == "4"
    assert [text(row, n) for n in "afz"] == [None] * 3
    assert lacking(event("anything", z=1)) == ()
    assert lacking(event("kv_alloc", blocks=1)) == ("bytes",)
