"""What doctor says of the real Nsight Systems is what then happens."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from doctor_place import Place

TRACE = ["profile", "-t", "nvtx", "--sample=none", "--cpuctxsw=none", "-o", "X", sys.executable]
PROGRAM = "import nvtx\nwith nvtx.annotate('prefill', domain='stallscope'): pass"


@pytest.mark.slow
def test_nsys_importer_and_ranges_are_as_said(place: Place, nsys: str) -> None:
    place.environ |= os.environ
    place.environ["PYTHONPATH"] = str(place.packages)
    checks = place.checks("--root", "/", "--timeout", "60")
    version = subprocess.run([nsys, "--version"], capture_output=True, text=True).stdout
    said = checks["nsys"]["reason"].split()[0]
    assert checks["nsys"]["status"] == "ok"
    assert f"version {said}" in version
    traced = subprocess.run(
        [nsys, *TRACE, "-c", PROGRAM], cwd=place.folder, capture_output=True, text=True
    )
    assert traced.returncode == 0, traced.stderr
    importer = checks["nsys importer"]
    made = (place.folder / "X.nsys-rep").exists()
    assert importer["status"] == ("ok" if made else "limited")
    if not made:
        _import(importer["fix"], place.folder)
    export = ["export", "--type", "sqlite", "-o", "X.sqlite", "X.nsys-rep"]
    subprocess.run([nsys, *export], cwd=place.folder, check=True, capture_output=True)
    ranges = _ranges(place.folder / "X.sqlite")
    assert checks["nsys with nvtx"]["status"] in ("unknown", "ok" if ranges else "limited")


def _import(fix: str, folder: Path) -> None:
    command = shlex.split(fix.removeprefix("after each trace: "))
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


def _ranges(path: Path) -> int:
    import sqlite3

    with sqlite3.connect(path) as database:
        tables = database.execute("SELECT count(*) FROM sqlite_master WHERE name = 'NVTX_EVENTS'")
        if tables.fetchone() == (0,):
            return 0
        query = "SELECT count(*) FROM NVTX_EVENTS WHERE eventType IN (59, 60)"
        return int(database.execute(query).fetchone()[0])
