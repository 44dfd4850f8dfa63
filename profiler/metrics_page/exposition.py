"""Lines of Prometheus text and OpenMetrics, one at a time, so that a damaged one costs no other."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import NamedTuple

_LINE = re.compile(
    r"(?P<name>[A-Za-z_:](?:[\w:]*\w)?)[ \t]*"  # "name: 3" is no metric, but YAML
    r'(?:\{(?P<labels>(?:[^"{}]|"(?:[^"\\]|\\.)*")*)\})?[ \t]+'
    r"(?P<value>[-+]?(?:\d[\d.]*(?:[eE][-+]?\d{1,3})?|\.\d+|Inf|NaN))"
    r"(?:[ \t]+(?P<time>\d[\d.]*))?[ \t]*(?:#.*)?"  # an exemplar stands behind #
)
_ANY = re.compile(
    r"(?P<name>[A-Za-z_:](?:[\w:]*\w)?)[ \t]*"
    r'(?:\{(?:[^"{}]|"(?:[^"\\]|\\.)*")*\})?[ \t]+(?P<value>\S{1,60})(?:[ \t]+\d[\d.]*)?'
)
_LABEL = re.compile(r'([A-Za-z_]\w*)[ \t]*=[ \t]*"((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(r"\\(.)")
_MOST_LONG = 1 << 16
_MOST = 1e30  # no counter of ours gets there, and sums of such stay finite
_LEAST_MS = 100_000_000_000  # as seconds this is the year 5138; as milliseconds 1973


class Sample(NamedTuple):
    """One line: a metric, its labels, its value, and when it was taken (ns since 1970) if told."""

    name: str
    labels: Mapping[str, str]
    value: float
    unix_ns: int | None


def sample_of(line: str) -> Sample | None:
    """Read a line; None for comments, what is damaged, and values that are no finite number."""
    found = _LINE.fullmatch(line.strip()) if len(line) < _MOST_LONG else None
    if found is None:
        return None
    try:
        value, time = float(found["value"]), float(found["time"] or "nan")
    except ValueError:  # "1.2.3"
        return None
    if not abs(value) < _MOST:
        return None
    labels = {k: _ESCAPE.sub(_unescaped, v) for k, v in _LABEL.findall(found["labels"] or "")}
    return Sample(found["name"], labels, value, _unix_ns(time))


def no_figure(line: str) -> tuple[str, str] | None:
    """Return the metric and the value of a whole line whose value `sample_of` does not take."""
    if sample_of(line) is not None or len(line) >= _MOST_LONG:
        return None
    found = _ANY.fullmatch(line.strip())
    return None if found is None else (found["name"], found["value"])


def _unescaped(found: re.Match[str]) -> str:
    return "\n" if found[1] == "n" else found[1]


def _unix_ns(time: float) -> int | None:
    """Take seconds, as OpenMetrics writes them, or milliseconds, as Prometheus text does."""
    if not math.isfinite(time) or time <= 0:
        return None
    return sane_ns(round(time * 1e6) if time >= _LEAST_MS else round(time * 1e9))


def sane_ns(unix_ns: int) -> int | None:
    """Return a time before 2116; later ones do not fit what they are stored in."""
    return unix_ns if 0 < unix_ns < 2**62 else None
