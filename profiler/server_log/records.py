"""Logs as collectors store them: a JSON record a line, with the text and the time it was taken.

Docker's json-file driver writes `{"log":"INFO …\\n","stream":"…","time":"2026-02-04T07:25:08Z"}`, a
line of more than 16 KiB in several records; others have "message", "textPayload", "line" or "msg",
and the level apart, where the program itself was set to log so.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from stallscope.profiler.server_log.clock import LEVEL_NAMES, Stamp, stamp_of, utc_stamp

_TEXTS = ("log", "message", "textPayload", "line", "msg")
_TIMES = ("time", "timestamp", "@timestamp", "ts", "asctime")
_LEVELS = ("level", "levelname", "severity")
_LONGEST = 1 << 16
_S, _MS, _US = 1e11, 1e14, 1e17  # unix times below are in s, ms, µs; above in ns
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def is_records(text: str) -> bool:
    """Tell whether a log in such records begins here."""
    first = text.lstrip("\ufeff \t\r\n")[:_LONGEST].partition("\n")[0]
    return first.startswith('{"log":"') or (first[:1] == "{" and record_of(first) is not None)


def record_of(line: str) -> tuple[str, Stamp] | None:
    """Return a record's text and time; None for what is none, or is damaged."""
    try:
        record = json.loads(line.lstrip("\ufeff"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict):
        return None
    name = next((name for name in _TEXTS if isinstance(record.get(name), str)), None)
    if name is None:
        return None
    stamp = next((s for t in _TIMES if (s := _stamp(record.get(t), name)) is not None), None)
    if stamp is None:
        return None
    # Half a pair of surrogates, which JSON can name, could not be printed.
    text = str(record[name]).encode("utf-8", "replace").decode().replace("\0", "")
    return _with_level(text, record, stamp), stamp


def _stamp(time: object, name: str) -> Stamp | None:
    """Return a time in UTC, and where a program's own logger told it, in whatever zone it is."""
    if isinstance(time, str):
        return utc_stamp(time) or (None if name == "log" else stamp_of(time))
    if isinstance(time, bool) or not isinstance(time, int | float) or not 1e8 < time < 1e20:
        return None
    scale = 1.0 if time < _S else 1e3 if time < _MS else 1e6 if time < _US else 1e9
    return Stamp(int(time / scale), has_year=True, has_zone=True)


def _with_level(text: str, record: Mapping[str, Any], stamp: Stamp) -> str:
    """Put the level and time before a text that was stored without, as the engine prints them."""
    level = next((v.upper() for n in _LEVELS if isinstance(v := record.get(n), str)), "")
    if level not in LEVEL_NAMES or text.lstrip().startswith(LEVEL_NAMES):
        return text
    at = _EPOCH + timedelta(seconds=min(stamp.seconds, 10**11))
    return f"{level} {at:%m-%d %H:%M:%S} {text}"


def texts_in(text: str) -> Iterator[str]:
    """Yield the texts of the whole records in some text."""
    found = (record_of(line) for line in text.splitlines() if line.lstrip("\ufeff \t")[:1] == "{")
    return (one[0] for one in found if one is not None)
