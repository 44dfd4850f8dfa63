"""The report of doctor: its forms, its place, its exit codes."""

from __future__ import annotations

import json
import re

from doctor_place import Place, write

import stallscope

STATUSES = ("ok", "limited", "missing", "unknown")


def files_of(place: Place) -> dict[str, int]:
    return {str(p): p.stat().st_mtime_ns for p in place.folder.rglob("*") if p.is_file()}


def test_text_says_it_in_one_sentence_and_how_to_get_the_rest(place: Place) -> None:
    done = place.run()
    assert (done.returncode, done.stderr) == (0, "")
    counts = {s: len(re.findall(rf"^  \S.*?  {s}  ", done.stdout, re.M)) for s in STATUSES}
    rest = ", ".join(f"{counts[s]} {s}" for s in STATUSES[1:] if counts[s])
    first = f"{counts['ok']} of {sum(counts.values())} checks are ok; {rest}."
    assert done.stdout.splitlines()[0] == first
    assert sum(counts.values()) == 21
    assert "  - nsys: install Nsight Systems" in done.stdout
    assert "    Lost without it: which kernels run when" in done.stdout
    assert "see nsys" not in done.stdout  # the entry itself is there


def test_it_changes_nothing(place: Place) -> None:
    before = files_of(place)
    place.run()
    assert {name: time for name, time in files_of(place).items() if ".pyc" not in name} == before


def test_markdown_and_json_files(place: Place) -> None:
    done = place.run("-o", "report.md")
    assert (done.returncode, done.stdout) == (0, "")
    assert "stallscope: wrote report.md" in done.stderr
    text = (place.folder / "report.md").read_text()
    assert text.startswith("# stallscope doctor\n\n**")
    assert "| nsys | **missing** | not on PATH |" in text
    done = place.run("-o", "report.json")
    report = json.loads((place.folder / "report.json").read_text())
    assert (report["schema"], report["tool"]) == (1, "stallscope")
    assert report["version"] == stallscope.__version__
    assert {check["status"] for check in report["checks"]} <= set(STATUSES)
    keys = {"group", "name", "status", "reason", "lost", "fix"}
    assert all(check.keys() == keys for check in report["checks"])


def test_refusals_come_before_any_look(place: Place) -> None:
    write(place.folder / "old.md", "old\n")
    done = place.run("-o", "old.md")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "stallscope: -o old.md: exists; add --force to overwrite it\n"
    for seconds in ("0", "601", "1e9", "inf", "nan", "-inf"):
        done = place.run("--timeout", seconds)
        assert (done.returncode, done.stdout) == (2, "")
        assert "timeout" in done.stderr
        assert ("600" in done.stderr) == (seconds not in ("0", "-inf"))
    for root in ("old.md", "none"):
        done = place.run("--root", root)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == f"stallscope: --root {root}: is no folder\n"
    assert place.run("--format", "html").returncode == 2


def test_a_name_in_the_working_folder_is_not_imported(place: Place) -> None:
    write(place.folder / "pynvml.py", "raise SystemExit('imported from the working folder')\n")
    check = place.checks()["pynvml binding"]
    assert check["status"] == "ok"


def test_this_very_machine(place: Place) -> None:
    checks = place.checks("--root", "/")
    assert len(checks) == 21
    assert checks["clock"]["status"] == "ok"
