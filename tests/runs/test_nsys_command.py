"""`stallscope nsys -- CMD` with the real Nsight Systems, on a machine with or without a GPU."""

from __future__ import annotations

import json
import os
import pty
import shlex
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from stallscope.profiler.capture import Capture
from stallscope.profiler.capture_file import read_capture

SCRIPT = str(Path(sys.executable).with_name("stallscope"))
LOAD = ["--requests", "6", "--concurrency", "3", "--input-tokens", "24", "--output-tokens", "6:10"]
RUN = [SCRIPT, "run", *LOAD, "--warmup", "1", "--capture", "own.sqlite", "-o", "own.json"]
TRIES = 4
# nsys' own words when another one is started at the same moment; the command was not run then.
COLLISIONS = ("ClientProxy.cpp", "Connection reset by peer")
Span = tuple[str, int, int]  # name, start, end
NAMES = ("prefill", "decode", "mixed", "warmup")
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("nsys")]

# A loop as people write it: ranges of nvtx' own default domain, and nothing of ours.
LOOP = """
import sys, time, nvtx
print("served", flush=True)
for _ in range(2):
    with nvtx.annotate("prefill"):
        time.sleep(0.06)
    for _ in range(8):
        with nvtx.annotate("decode"):
            time.sleep(0.01)
sys.exit(int(sys.argv[1]))
"""
# A loop with a recorder of ours, four seconds long.
RECORDED = """
import time
from stallscope.profiler.recorder import Recorder
with Recorder("own.sqlite") as recorder:
    end = time.monotonic() + 4
    while time.monotonic() < end:
        with recorder.prefill(128):
            time.sleep(0.03)
        for _ in range(10):
            with recorder.decode(4, context_tokens=600):
                time.sleep(0.007)
"""
# Three records, of which the last is thrown away.
SEVERAL = """
import os, time
from stallscope.profiler.recorder import Recorder
for name, steps in (("few", 3), ("most", 9), ("lost", 1)):
    with Recorder(f"{name}.sqlite", sample_hz=0) as recorder:
        for _ in range(steps):
            with recorder.decode(1):
                time.sleep(0.01)
os.unlink("lost.sqlite")
"""
# Counts how often it is asked to end, and ends after a while all the same.
STUBBORN = """
import signal, sys, time
came = []
signal.signal(signal.SIGINT, lambda number, frame: came.append(number))
print("ready", flush=True)
end = time.monotonic() + 60
while not came and time.monotonic() < end:
    time.sleep(0.01)
time.sleep(0.5)
print("asked", len(came), flush=True)
sys.exit(9)
"""


def collided(said: str) -> bool:
    return "left no report" in said and any(words in said for words in COLLISIONS)


def wrap(folder: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    for _ in range(TRIES):
        done = subprocess.run(
            [SCRIPT, "nsys", *arguments],
            capture_output=True,
            text=True,
            cwd=folder,
            env=os.environ | environ,
            timeout=300,
        )
        assert not list(folder.glob(".stallscope*"))  # temporary folders are gone
        if not collided(done.stderr):
            break
    return done


def checks(capture: Capture) -> list[str]:
    return [event.data["sentence"] for event in capture.events if event.kind == "check"]


def ranges(report: Path) -> list[Span]:
    """Read name, start and end of the ranges in a report, by plain SQL."""
    target = report.with_suffix(".plain.sqlite")
    export = ["nsys", "export", "--type=sqlite", "--force-overwrite=true"]
    command = [*export, f"--output={target}", str(report)]
    subprocess.run(command, check=True, capture_output=True)
    with sqlite3.connect(target) as database:
        return database.execute(
            "SELECT coalesce(text, value), start, end FROM NVTX_EVENTS"
            " LEFT JOIN StringIds ON StringIds.id = textId"
            " WHERE eventType IN (59, 60) ORDER BY start"
        ).fetchall()


def unix_at_zero(report: Path) -> int:
    """Return the wall clock at the report's time 0."""
    with sqlite3.connect(report.with_suffix(".plain.sqlite")) as database:
        found = database.execute("SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME")
        return int(found.fetchone()[0])


def lengths_agree(traced: list[Span], recorded: list[Span]) -> bool:
    pairs = [(b[2] - b[1], a[2] - a[1]) for a, b in zip(traced, recorded, strict=True)]
    return all(abs(own - seen) <= max(0.05 * own, 1_000_000) for own, seen in pairs)


def traced_and_recorded(folder: Path) -> tuple[list[Span], list[Span]]:
    own = read_capture(folder / "own.sqlite")
    traced = [row for row in ranges(folder / "trace.nsys-rep") if row[0] in NAMES]
    recorded = [("warmup" if s.warmup else s.phase, s.start_ns, s.end_ns) for s in own.steps]
    return traced, recorded


@pytest.fixture(scope="module")
def wrapped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder after a run of our own under nsys, with all that it can keep.

    What the engine does between two ranges belongs to a step and not to its range. Neighbours on
    the machine stretch that; then the run is repeated.
    """
    for _ in range(TRIES):
        folder = tmp_path_factory.mktemp("wrapped")
        kept = ["--keep", "trace.nsys-rep", "--capture", "joined.sqlite", "-o", "out.json"]
        done = wrap(folder, *kept, "--", *RUN)
        assert done.returncode == 0, done.stderr
        (folder / "stderr.txt").write_text(done.stderr)
        traced, recorded = traced_and_recorded(folder)
        if len(traced) != len(recorded) or lengths_agree(traced, recorded):
            break
    return folder


def test_trace_and_own_record_hold_the_same_steps(wrapped: Path) -> None:
    traced, recorded = traced_and_recorded(wrapped)
    assert {row[0] for row in traced} >= {"prefill", "decode", "warmup"}
    assert [row[0] for row in traced] == [row[0] for row in recorded]
    assert lengths_agree(traced, recorded)


def test_the_own_record_stands_and_the_trace_is_compared_to_it(wrapped: Path) -> None:
    own, joined = (read_capture(wrapped / f"{name}.sqlite") for name in ("own", "joined"))
    assert joined.steps == own.steps
    assert joined.requests == own.requests
    assert joined.subject == own.subject
    counts = Counter("warmup" if s.warmup else s.phase for s in own.steps)
    said = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
    (sentence,) = [s for s in checks(joined) if s.startswith("nsys traced all of")]
    assert f"all of the run's {len(own.steps)} recorded steps ({said})" in sentence
    report = json.loads((wrapped / "out.json").read_text())
    assert sentence in report["notes"]
    kinds = [source["kind"] for source in report["capture"]["sources"]]
    assert kinds == ["stallscope", "nsys"]
    phases = {p["phase"]: p["count"] for p in report["phases"] if p["phase"] != "all"}
    assert phases == {name: count for name, count in counts.items() if name != "warmup"}


def test_wall_clocks_agree_with_the_ranges(wrapped: Path) -> None:
    own, joined = (read_capture(wrapped / f"{name}.sqlite") for name in ("own", "joined"))
    traced = [row for row in ranges(wrapped / "trace.nsys-rep") if row[0] in NAMES]
    clock = own.meta["clock"]
    by_clock = clock["unix_ns"] - clock["monotonic_ns"] - unix_at_zero(wrapped / "trace.nsys-rep")
    # A step ends a few microseconds after its range.
    late = [s.end_ns + by_clock - end for s, (*_, end) in zip(own.steps, traced, strict=True)]
    assert abs(sorted(late)[len(late) // 2]) < 2_000_000
    (source,) = [source for source in joined.sources if source.kind == "nsys"]
    assert abs(source.offset_ns + by_clock) < 2_000_000 + source.offset_error_ns


def test_what_is_kept_is_named(wrapped: Path) -> None:
    lines = (wrapped / "stderr.txt").read_text().splitlines()
    assert "stallscope: kept trace.nsys-rep" in lines
    assert "stallscope: recorded joined.sqlite" in lines
    assert lines[-1] == "stallscope: wrote out.json"


@pytest.fixture(scope="module")
def newer_nvtx(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder with an nvtx whose ranges nsys before 2023.3 loses."""
    folder = tmp_path_factory.mktemp("nvtx")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target"]
    done = subprocess.run([*command, str(folder), "nvtx==0.2.14"], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"pip cannot fetch nvtx 0.2.14: {done.stderr.strip()[-200:]}")
    return str(folder)


def test_lost_ranges_are_replaced_by_the_clock(tmp_path: Path, newer_nvtx: str) -> None:
    version = subprocess.run(["nsys", "--version"], capture_output=True, text=True).stdout
    if "2022." not in version:
        pytest.skip(f"only older nsys loses these ranges, not {version.strip()}")
    kept = ["--keep", "trace.nsys-rep", "--capture", "joined.sqlite", "-o", "out.json"]
    done = wrap(tmp_path, *kept, "--", *RUN, PYTHONPATH=newer_nvtx)
    assert done.returncode == 0, done.stderr
    assert [row for row in ranges(tmp_path / "trace.nsys-rep") if row[0] in NAMES] == []
    own, joined = (read_capture(tmp_path / f"{name}.sqlite") for name in ("own", "joined"))
    assert joined.steps == own.steps
    (sentence,) = [s for s in checks(joined) if "holds no range of the recorded steps" in s]
    assert "with nvtx 0.2.14: every range is lost, silently" in sentence
    assert "the wall clock tells which kernels belong to which step, within 2 ms" in sentence
    assert "pip install 'nvtx<0.2.12', or use a newer nsys" in sentence
    assert sentence in json.loads((tmp_path / "out.json").read_text())["notes"]
    clock = own.meta["clock"]
    by_clock = clock["unix_ns"] - clock["monotonic_ns"] - unix_at_zero(tmp_path / "trace.nsys-rep")
    (source,) = [source for source in joined.sources if source.kind == "nsys"]
    # Two reads of the same two clocks, in the same process.
    assert abs(source.offset_ns + by_clock) < 100_000


@pytest.fixture(scope="module")
def loop(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What became of a user's own loop, which ends with code 7."""
    folder = tmp_path_factory.mktemp("loop")
    (folder / "loop.py").write_text(LOOP)
    done = wrap(folder, "-o", "out.json", "--", sys.executable, "loop.py", "7")
    return {"done": done, "report": json.loads((folder / "out.json").read_text())}


def test_a_users_own_ranges_are_phases(loop: dict[str, Any]) -> None:
    phases = {phase["phase"]: phase for phase in loop["report"]["phases"]}
    counts = {name: phase["count"] for name, phase in phases.items() if name != "all"}
    assert counts == {"prefill": 2, "decode": 16}
    # Sleeps last at least as long as they should; on a busy machine longer.
    assert 0.12 <= phases["prefill"]["time_s"] < 0.12 + 0.2
    assert 0.16 <= phases["decode"]["time_s"] < 0.16 + 1.0


def test_output_and_exit_code_pass_through(loop: dict[str, Any]) -> None:
    assert loop["done"].returncode == 7
    assert loop["done"].stdout.splitlines()[0] == "served"


def test_an_interrupt_goes_to_the_command_once_and_its_trace_is_judged(tmp_path: Path) -> None:
    (tmp_path / "stubborn.py").write_text(STUBBORN)
    arguments = ["--keep", "trace.nsys-rep", "-o", "out.json"]
    process = subprocess.Popen(
        [SCRIPT, "nsys", *arguments, "--", sys.executable, "stubborn.py"],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert out.splitlines()[0] == "asked 1", out + err
    assert process.returncode == 9
    assert json.loads((tmp_path / "out.json").read_text())["schema"] == 1
    assert {path.name for path in tmp_path.iterdir()} == {
        "stubborn.py",
        "trace.nsys-rep",
        "out.json",
    }


def test_ctrl_c_in_a_terminal_reaches_the_command_once(tmp_path: Path) -> None:
    (tmp_path / "stubborn.py").write_text(STUBBORN)
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        command = [SCRIPT, "nsys", "-o", "out.json", "--", sys.executable, "stubborn.py"]
        os.execv(command[0], command)
    said = b""
    pressed = False
    try:
        while chunk := os.read(terminal, 4096):
            said += chunk
            if b"ready" in said and not pressed:
                os.write(terminal, b"\x03")
                pressed = True
    except OSError:  # how a terminal says that nobody is left on it
        pass
    finally:
        os.close(terminal)
    _, status = os.waitpid(pid, 0)
    if collided(said.decode(errors="replace")):
        pytest.skip("another nsys was started at the same moment")
    assert b"asked 1" in said, said.decode()
    assert os.waitstatus_to_exitcode(status) == 9
    assert (tmp_path / "out.json").exists()


def test_a_window_is_compared_to_its_own_steps(tmp_path: Path) -> None:
    (tmp_path / "recorded.py").write_text(RECORDED)
    kept = ["--delay", "2", "--keep", "trace.nsys-rep", "--capture", "joined.sqlite"]
    done = wrap(tmp_path, *kept, "-o", "out.json", "--", sys.executable, "recorded.py")
    assert done.returncode == 0, done.stderr
    own, joined = (read_capture(tmp_path / f"{name}.sqlite") for name in ("own", "joined"))
    traced = Counter(row[0] for row in ranges(tmp_path / "trace.nsys-rep") if row[0] in NAMES)
    assert joined.steps == own.steps
    assert 0 < traced.total() < len(own.steps)
    said = checks(joined)[0]
    assert said.startswith("nsys traced all of the run's ")
    # Of a step at the window's edge the clocks do not tell whether it lies within.
    expected = int(said.split("run's ")[1].split()[0])
    assert traced.total() - 2 <= expected <= traced.total()


def test_of_several_records_one_is_joined_and_the_others_are_named(tmp_path: Path) -> None:
    (tmp_path / "several.py").write_text(SEVERAL)
    kept = ["--capture", "joined.sqlite", "-o", "out.json"]
    done = wrap(tmp_path, *kept, "--force", "--", sys.executable, "several.py")
    assert done.returncode == 0, done.stderr
    joined = read_capture(tmp_path / "joined.sqlite")
    assert joined.steps == read_capture(tmp_path / "most.sqlite").steps
    said = checks(joined)
    assert f"The run's own record is not used: {tmp_path}/lost.sqlite cannot be read" in said[0]
    assert said[1] == (
        f"The command kept 2 records; {tmp_path}/most.sqlite is joined here. Diagnose the others "
        f"by themselves: {tmp_path}/few.sqlite."
    )
    assert said[2].startswith("nsys traced all of the run's 9 recorded steps (9 decode)")


def test_dry_run_prints_what_would_run_and_runs_nothing(tmp_path: Path) -> None:
    done = wrap(tmp_path, "--dry-run", "--duration", "5", "--", "touch", "a file")
    assert (done.returncode, done.stderr) == (0, "")
    words = shlex.split(done.stdout)
    assert words[1] == "profile"
    assert words[-2:] == ["touch", "a file"]
    assert {"--sample=none", "--cpuctxsw=none", "--duration=5", "--output=trace"} <= set(words)
    assert list(tmp_path.iterdir()) == []
    # nsys itself takes the line.
    subprocess.run(words, cwd=tmp_path, check=True, capture_output=True, timeout=120)
    assert (tmp_path / "a file").exists()
    assert list(tmp_path.glob("trace.*"))


def test_a_failure_of_our_own_step_is_70(tmp_path: Path) -> None:
    # Nothing is traced before the delay is over, so nsys leaves no report.
    done = wrap(tmp_path, "--delay", "60", "-o", "out.json", "--", "true")
    last = done.stderr.splitlines()[-1]
    assert last.startswith("stallscope: nsys 20")
    assert "left no report" in last
    assert done.returncode == 70
    done = wrap(tmp_path, "--delay", "60", "-o", "out.json", "--", "false")
    assert done.returncode == 1
    assert list(tmp_path.iterdir()) == []


def test_fail_on_the_verdict_exits_with_four(tmp_path: Path) -> None:
    (tmp_path / "loop.py").write_text(LOOP)
    command = ["--", sys.executable, "loop.py"]
    judged = wrap(tmp_path, "-o", "out.json", *command, "0")
    assert judged.returncode == 0, judged.stderr
    verdict = json.loads((tmp_path / "out.json").read_text())["verdict"]["class"]
    failed = wrap(tmp_path, "-o", "out.json", "--force", "--fail-on", verdict, *command, "0")
    assert failed.returncode == 4
    passed_on = wrap(tmp_path, "-o", "out.json", "--force", "--fail-on", verdict, *command, "3")
    assert passed_on.returncode == 3
