"""The real captures of labels.csv, each judged by the command line as its owner would."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import shlex
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from stallscope.app import call

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(os.environ.get("STALLSCOPE_CORPUS", ROOT.parent / "shared" / "corpus"))
GROUPS = (
    *("nsys", "nsys_stats", "ncu", "torch", "smi", "dcgm", "logs"),
    *("prom", "prom_series", "prom_ts", "bench"),
)


@dataclass(frozen=True, slots=True)
class Label:
    """A file, the options its owner gives, whether it must load, and the classes that agree."""

    file: str
    given: tuple[str, ...]
    loads: str
    accept: tuple[str, ...]
    origin: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What `stallscope diagnose` made of a file; `verdict` is None where it refused it."""

    code: int
    said: str
    verdict: str | None
    confidence: float | None
    sentence: str
    report: Mapping[str, Any] = field(default_factory=dict)

    @property
    def grounds(self) -> Mapping[str, float]:
        """What the confidence rests on; empty without a verdict."""
        found: Mapping[str, float] = self.report.get("verdict", {}).get("confidence_from") or {}
        return found


def labels(groups: Iterable[str] = GROUPS) -> list[Label]:
    """Return the labels of some folders; none where the corpus is not there."""
    path = FOLDER / "labels.csv"
    if not path.is_file():
        return []
    with path.open(encoding="utf-8") as file:
        return [
            Label(
                row["file"],
                tuple(shlex.split(row["given"])),
                row["loads"],
                tuple(row["accept"].split(";")) if row["accept"] else (),
                row["origin"].partition(" ")[0],
            )
            for row in _with_origins(csv.DictReader(file))
            if row["file"].split("/")[0] in groups
        ]


def _with_origins(rows: Iterable[dict[str, str]]) -> Iterator[dict[str, str]]:
    """Spell out the origin of rows that say "same" as the one above."""
    origin = ""
    for row in rows:
        if not row["origin"].startswith("same"):
            origin = row["origin"]
        yield {**row, "origin": origin}


@lru_cache(maxsize=256)
def outcome(label: Label) -> Outcome:
    """Diagnose a file in this process, through the command line."""
    given = [str(FOLDER / o) if (FOLDER / o).is_file() else o for o in label.given]
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        arguments = ["diagnose", str(FOLDER / label.file), *given, "--explain", "-o", str(report)]
        with (
            contextlib.redirect_stderr(io.StringIO()) as err,
            contextlib.redirect_stdout(io.StringIO()),
        ):
            code = call(arguments)
        if not report.is_file():
            return Outcome(code, err.getvalue(), None, None, "")
        told = json.loads(report.read_text())
    verdict = told["verdict"]
    said = (verdict["class"], verdict["confidence"], verdict["sentence"])
    return Outcome(code, err.getvalue(), *said, told)


def expects_class(label: Label) -> bool:
    """Tell whether a class is expected of the file."""
    return bool(label.accept) and label.loads == "yes"


def expects_choice(label: Label) -> bool:
    """Tell whether the first of the accepted classes commits itself."""
    return expects_class(label) and label.accept[0] != "undetermined"


def agrees(label: Label) -> bool:
    """Tell whether the verdict is one of those accepted."""
    return outcome(label).verdict in label.accept


def is_first(label: Label) -> bool:
    """Tell whether the verdict is the first of those accepted."""
    return outcome(label).verdict == label.accept[0]


def share(hits: Iterable[bool]) -> float:
    """Return the share of what is true."""
    found = list(hits)
    return sum(found) / len(found)
