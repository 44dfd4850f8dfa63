"""Lay a trace on a recorder's clock, and mark in it the steps that the recorder knows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from stallscope.profiler.capture import Step
from stallscope.profiler.trace.timeline import UNKNOWN, Ranges, Trace
from stallscope.profiler.wrap.compare import Offset, Spans
from stallscope.profiler.wrap.handshake import Announced

STEP_NAMES = ("prefill", "decode", "mixed", "warmup")  # of the ranges that a recorder leaves
# nsys reads the wall clock once as its session begins. Ranges were within 0.2 ms of where the wall
# clock had them with 2022.4.2; what other versions do was not measured.
SESSION_START_NS = 2_000_000


def step_name(step: Step) -> str:
    """Return the name of the range that a recorder leaves for a step."""
    return "warmup" if step.warmup else step.phase


def recorded_spans(steps: Sequence[Step]) -> Spans:
    """Return a record's steps as spans on its own clock."""
    named = sorted(
        (s.start_ns, s.end_ns, step_name(s)) for s in steps if step_name(s) in STEP_NAMES
    )
    starts, ends = ([row[i] for row in named] for i in (0, 1))
    return Spans(
        tuple(name for *_, name in named),
        np.array(starts, dtype=np.int64),
        np.array(ends, dtype=np.int64),
    )


def traced_spans(trace: Trace) -> Spans:
    """Return the ranges of a trace that are named as a recorder names them."""
    marks = trace.marks
    named = np.array([text in STEP_NAMES for text in trace.texts], dtype=bool)
    rows = np.flatnonzero(named[marks.text]) if len(marks) else np.empty(0, dtype=np.int64)
    rows = rows[np.argsort(marks.start_ns[rows], kind="stable")]
    names = tuple(trace.texts[text] for text in marks.text[rows].tolist())
    return Spans(names, marks.start_ns[rows], marks.end_ns[rows])


def by_wall_clock(announced: Announced, trace: Trace) -> Offset | None:
    """Return trace time minus the record's time as the wall clocks tell it."""
    if trace.unix_ns is None:
        return None
    ns = announced.unix_ns - announced.clock_ns - trace.unix_ns
    return Offset(ns, announced.error_ns + SESSION_START_NS)


def shifted(trace: Trace, by_ns: int) -> Trace:
    """Return the trace with `by_ns` added to all its times."""
    columns = {
        name: _shifted(getattr(trace, name), by_ns)
        for name in ("kernels", "copies", "calls", "marks", "operators", "waits")
    }
    window = trace.window_ns
    return replace(
        trace,
        **columns,
        series=tuple(replace(series, t_ns=series.t_ns + by_ns) for series in trace.series),
        window_ns=None if window is None else (window[0] + by_ns, window[1] + by_ns),
        unix_ns=None if trace.unix_ns is None else trace.unix_ns - by_ns,
    )


def marked_by(trace: Trace, steps: Sequence[Step]) -> Trace:
    """Return the trace with its marks replaced by a record's steps, which share its clock."""
    known = [step for step in steps if step_name(step) in STEP_NAMES]
    marks = Ranges(
        np.array([step.start_ns for step in known], dtype=np.int64),
        np.array([step.end_ns for step in known], dtype=np.int64),
        np.full(len(known), UNKNOWN, dtype=np.int32),
        np.array([STEP_NAMES.index(step_name(step)) for step in known], dtype=np.int32)
        + np.int32(len(trace.texts)),
        np.array([_payload(step) for step in known], dtype=np.int64),
    )
    return replace(trace, marks=marks, texts=(*trace.texts, *STEP_NAMES))


def _payload(step: Step) -> int:
    return step.prefill_tokens if step.phase == "prefill" else step.decode_requests


def _shifted(columns: Any, by_ns: int) -> Any:
    moved = {
        f.name: np.where(column == UNKNOWN, UNKNOWN, column + by_ns)
        for f in fields(columns)
        if f.name in ("start_ns", "end_ns", "launch_ns")
        for column in (getattr(columns, f.name),)
    }
    return replace(columns, **moved)
