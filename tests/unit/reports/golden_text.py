"""Reports as files that a person has read; see tests/golden/reports/README.md."""

from __future__ import annotations

import os
import re
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "golden" / "reports"
# Every new threshold would change this part; other tests look at it.
_THRESHOLDS = re.compile(r"\n(?:## )?Thresholds\n.*", re.DOTALL)


def trimmed(text: str) -> str:
    """Return a report without its list of thresholds and what follows."""
    return _THRESHOLDS.sub("\n", text)


def golden(name: str, text: str) -> str:
    """Return the golden file `name`, written anew from `text` first where that is asked for."""
    path = FOLDER / name
    if os.environ.get("STALLSCOPE_REGENERATE") == "reports":
        path.write_text(trimmed(text), encoding="utf-8")
    return path.read_text(encoding="utf-8")
