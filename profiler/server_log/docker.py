"""Logs as Docker's json-file driver stores them: a JSON record a line, with the daemon's time.

`{"log":"INFO …\\n","stream":"stdout","time":"2026-02-04T07:25:08.123456789Z"}`; a line of more than
16 KiB comes in several records.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from stallscope.profiler.server_log.clock import Stamp, utc_stamp

_START = re.compile(r'\ufeff?\s*\{"log":"')


def is_docker(text: str) -> bool:
    """Tell whether a log in such records begins here."""
    return _START.match(text) is not None


def record_of(line: str) -> tuple[str, Stamp] | None:
    """Return a record's text and time in UTC; None for what is none, or is damaged."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict):
        return None
    text, time = record.get("log"), record.get("time")
    stamp = utc_stamp(time) if isinstance(time, str) else None
    if not isinstance(text, str) or stamp is None:
        return None
    # Half a pair of surrogates, which JSON can name, could not be printed.
    return text.encode("utf-8", "replace").decode().replace("\0", ""), stamp


def texts_in(text: str) -> Iterator[str]:
    """Yield the texts of the whole records in some text."""
    found = (record_of(line) for line in text.splitlines() if is_docker(line))
    return (one[0] for one in found if one is not None)
