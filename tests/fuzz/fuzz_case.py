"""One damaged file: read and judged, refused in one line, or a fault."""

from __future__ import annotations

import json
import math
import random
import traceback
from contextlib import suppress
from pathlib import Path

from fuzz_broken import BROKEN
from fuzz_parser import Parser
from fuzz_parsers import PARSERS

from stallscope.analyzers.thresholds import Thresholds
from stallscope.errors import CaptureError, InputError
from stallscope.judge import judge_capture
from stallscope.profiler.capture import Capture
from stallscope.profiler.file_kinds import input_kind
from stallscope.reports import json_report, markdown

READ, REFUSED = "read", "refused"


def parser_of(name: str) -> Parser:
    """Return a parser by its name; those that are broken by purpose as well."""
    return {**PARSERS, **BROKEN}[name]


def content_of(parser: str, seed: str, index: int, seeds: list[bytes]) -> bytes:
    """Return the damaged file of a case; the same whenever it is asked for."""
    rng = random.Random(f"{parser} {seed} {index}")
    return parser_of(parser).damage(seeds[index % len(seeds)], rng)


def outcome(parser: str, path: Path) -> str:
    """Return READ, REFUSED, or what went wrong and where."""
    try:
        with suppress(InputError):  # what it is taken for does not matter, if for anything
            input_kind(path)
        capture = parser_of(parser).read(path)
        _check(capture)
        if parser != "capture":  # our own file is taken at its word
            assert all(k.busy_ns >= 0 and k.launches > 0 for k in capture.kernels), "an odd kernel"
        diagnosis = judge_capture(capture, thresholds=Thresholds(), goal=None)
        json.loads(json_report.render(diagnosis), parse_constant=_refuse)
        assert markdown.render(diagnosis, {})
    except (InputError, CaptureError) as error:
        is_line = str(error) and str(error).isprintable()
        return REFUSED if is_line else f"a message that is no line: {str(error)[:200]!r}"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:200]!r} at {_where(error)}"
    return READ


def _check(capture: Capture) -> None:
    """Hold a capture to what every capture is: numbers that are some, in order of time."""
    for samples in (capture.device_samples, capture.engine_samples):
        assert all(math.isfinite(sample.value) for sample in samples), "a value that is not finite"
        times = [sample.t_ns for sample in samples]
        assert times == sorted(times), "samples out of order"
        assert all(-(2**63) <= t_ns < 2**63 for t_ns in times), "a time beyond 64 bits"


def _refuse(constant: str) -> float:
    raise AssertionError(f"{constant} in the report")


def _where(error: Exception) -> str:
    """Name the innermost line of ours that it came through."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if "/lib/python" not in f.filename]
    last = (ours or frames)[-1]
    return f"{'/'.join(Path(last.filename).parts[-3:])}:{last.lineno} ({last.name})"
