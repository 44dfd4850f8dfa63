"""Which format a report is written in: by the file's suffix, or as asked."""

from __future__ import annotations

from pathlib import PurePath

from stallscope.errors import UsageError

SUFFIXES = {".md": "markdown", ".json": "json", ".txt": "text"}
_ALIASES = {"md": "markdown", "txt": "text", "terminal": "text"}
_NO_HTML = "HTML reports are not built yet: use .md or .json"


def format_for(path: PurePath | None = None, explicit: str | None = None) -> str:
    """Return "text", "markdown" or "json"; `explicit` wins over the suffix of `path`.

    Raises UsageError for a format that does not exist.
    """
    if explicit is not None:
        return _named(explicit)
    if path is None or str(path) == "-":
        return "text"
    suffix = path.suffix.lower()
    if suffix in (".html", ".htm"):
        raise UsageError(f"{path}: {_NO_HTML}")
    if suffix not in SUFFIXES:
        raise UsageError(f"{path}: no report format has this suffix: use .md, .json or .txt")
    return SUFFIXES[suffix]


def _named(explicit: str) -> str:
    name = explicit.lower()
    name = _ALIASES.get(name, name)
    if name == "html":
        raise UsageError(_NO_HTML)
    if name not in SUFFIXES.values():
        raise UsageError(f"unknown report format {explicit!r}: use text, markdown or json")
    return name
