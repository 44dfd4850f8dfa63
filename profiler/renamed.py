"""Call a capture's sources as the user does, where what was read lies under another name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from stallscope.profiler.capture import Capture


def renamed(capture: Capture, names: Mapping[str, str]) -> Capture:
    """Replace paths by the names given for them, in sources and in the trials of a benchmark."""
    meta = dict(capture.meta)
    for key in ("benchmark", "printed_benchmark"):
        if isinstance(results := meta.get(key), Mapping):
            meta[key] = {**results, "trials": [_trial(t, names) for t in results.get("trials", ())]}
    sources = tuple(s._replace(path=names.get(s.path, s.path)) for s in capture.sources)
    return replace(capture, sources=sources, meta=meta)


def _trial(trial: Any, names: Mapping[str, str]) -> Any:
    """A file's trials are called by it, and by their row where there are several."""
    source = trial.get("source") if isinstance(trial, Mapping) else None
    if not isinstance(source, str):
        return trial
    path = source.partition(", row ")[0]
    return {**trial, "source": source.replace(path, names.get(path, path), 1)}
