"""Choosing a format."""

from __future__ import annotations

from pathlib import Path

import pytest

from stallscope.errors import UsageError
from stallscope.reports.formats import format_for


@pytest.mark.parametrize(
    ("path", "explicit", "chosen"),
    [
        (None, None, "text"),
        (Path("-"), None, "text"),
        (Path("a.md"), None, "markdown"),
        (Path("a.b/REPORT.MD"), None, "markdown"),
        (Path("x.json"), None, "json"),
        (Path("x.txt"), None, "text"),
        (Path("x.md"), "json", "json"),
        (Path("x.log"), "markdown", "markdown"),
        (None, "md", "markdown"),
        (None, "TEXT", "text"),
    ],
)
def test_format(path: Path | None, explicit: str | None, chosen: str) -> None:
    assert format_for(path, explicit) == chosen


@pytest.mark.parametrize(
    ("path", "explicit", "message"),
    [
        (Path("x.html"), None, "x.html: HTML reports are not built yet: use .md or .json"),
        (None, "html", "HTML reports are not built yet: use .md or .json"),
        (Path("x.pdf"), None, "x.pdf: no report format has this suffix: use .md, .json or .txt"),
        (Path("x"), None, "x: no report format has this suffix: use .md, .json or .txt"),
        (None, "yaml", "unknown report format 'yaml': use text, markdown or json"),
    ],
)
def test_refused(path: Path | None, explicit: str | None, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        format_for(path, explicit)
    assert str(raised.value) == message
