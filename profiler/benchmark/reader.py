"""Read results of benchmarks, of one file or several, as one capture."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from stallscope.errors import InputError
from stallscope.profiler.benchmark.arrays import requests_of, start_by_date
from stallscope.profiler.benchmark.figures import Row, count
from stallscope.profiler.benchmark.formats import Format, format_of, rows_of
from stallscope.profiler.benchmark.no_figures import no_figures
from stallscope.profiler.benchmark.to_capture import Result, capture_of
from stallscope.profiler.capture import Capture
from stallscope.profiler.opened import opened
from stallscope.profiler.text_lines import decoded
from stallscope.profiler.trial import Trial, trials_from_json
from stallscope.profiler.wall_clock import WallClock

_CUT = "The file breaks off in its last row; the rows before it were read."


def read_benchmarks(paths: Sequence[str | PathLike[str]]) -> Capture:
    """Read results of load generators; each row is one trial, several are a sweep.

    The capture's meta "benchmark" holds the trials, latencies in seconds by the client's clock, and
    which one is judged; where a row says when each request was sent, that one's requests stand in
    the capture, their admission unknown. Raises InputError where nothing was measured by a tool
    known here.
    """
    found = [result for path in paths for result in _results(Path(path))]
    return capture_of(found, [str(path) for path in paths])


def judged_path(capture: Capture, paths: Sequence[str | PathLike[str]]) -> Path:
    """Return which of the files that were read holds the trial that is judged."""
    told = capture.meta["benchmark"]
    source = trials_from_json(told["trials"])[told["judged"]].source
    return next(p for p in map(Path, paths) if source in (str(p), *_rows_of(source, str(p))))


def _rows_of(source: str, path: str) -> tuple[str, ...]:
    return (source,) if source.startswith(f"{path}, row ") else ()


def _results(path: Path) -> list[Result]:
    try:
        with opened(path) as file:
            content = decoded(file.read())
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    rows, is_cut = rows_of(content, str(path))
    known = [(row, form) for row in rows if (form := format_of(row)) is not None]
    if not known:
        raise InputError(
            f"{path}: holds no result of a benchmark tool known here; give the JSON that vllm "
            "bench, SGLang, trtllm-bench, genai-perf, guidellm, inference-perf, InferenceX or "
            "Ollama wrote, or what vllm bench, SGLang or trtllm-bench printed at its end"
        )
    found = [
        result
        for i, (row, form) in enumerate(known, start=1)
        for result in _of_row(row, form, str(path) if len(known) == 1 else f"{path}, row {i}")
    ]
    if is_cut:
        found[-1] = dataclasses.replace(found[-1], notes=(*found[-1].notes, _CUT))
    return found


def _of_row(row: Row, form: Format, source: str) -> list[Result]:
    told = form.subject(row)
    cap = count(row, "max_num_seqs")  # a sweep's rows hold the server's settings they vary
    if cap:
        told = dataclasses.replace(told, max_num_seqs=cap)
    lacking = no_figures(row)
    notes = [] if lacking is None else [f"{Path(source).name}: {lacking}"]
    notes += form.notes(row)
    return [
        Result(
            form.tool,
            form.model(row),
            told,
            trial,
            requests_of(row),
            tuple(notes),
            _clock(row, trial),
        )
        for trial in form.trials(row, source)
    ]


def _clock(row: Row, trial: Trial) -> WallClock | None:
    if trial.started_unix_ns is not None:
        return WallClock(trial.started_unix_ns)
    return start_by_date(row)
