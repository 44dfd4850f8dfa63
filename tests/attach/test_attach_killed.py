"""A watch that is killed outright: what it had seen is in the file of --capture."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path

from scripted_server import Served, send, serving, vllm_page

from stallscope.profiler.capture_file import read_capture

SCRIPT = str(Path(sys.executable).with_name("stallscope"))


def full_pool(handler: BaseHTTPRequestHandler, number: int) -> None:
    page = vllm_page(running=64, waiting=18, kv=0.995, tokens=1000 + 90 * number)
    send(handler, page.encode())


@contextmanager
def attached(served: Served, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [SCRIPT, "attach", served.url, "--interval", "0.2", "--format", "json", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_until(what: Callable[[], object]) -> None:
    end = time.monotonic() + 120
    while not what():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_what_was_seen_before_the_kill_is_judged_as_cut(tmp_path: Path) -> None:
    kept = tmp_path / "kept.sqlite"
    with serving(full_pool) as served:
        served.says["/version"] = b'{"version": "0.32.0"}'
        with attached(served, "--duration", "300", "--capture", str(kept)) as process:
            wait_until(kept.exists)
            process.send_signal(signal.SIGKILL)
            assert process.wait(timeout=60) == -signal.SIGKILL
    capture = read_capture(kept)
    moments = {sample.t_ns for sample in capture.engine_samples}
    # The first five seconds, at most 25 scrapes and the one before the watch; fewer if it is slow.
    assert 5 <= len(moments) <= 26
    assert capture.cut is not None
    length_s = (max(moments) - min(moments)) / 1e9
    assert 4.5 < length_s < 60
    told = subprocess.run(
        [SCRIPT, "diagnose", str(kept), "--format", "json"], capture_output=True, check=True
    )
    report = json.loads(told.stdout)
    assert report["verdict"]["class"] == "capacity"
    assert report["capture"]["cut"] is True
    cut = f"cut {length_s:.1f} s after its first reading: the watch did not end"
    assert f"The capture is incomplete: {cut}." in report["notes"]
    assert "vllm 0.32.0" in report["subject"]["workload"]
    assert [file.name for file in tmp_path.iterdir()] == ["kept.sqlite"]


def test_a_file_to_be_replaced_stands_until_the_end(tmp_path: Path) -> None:
    """What was seen so far is beside it; Ctrl-C ends the watch, and puts the whole in its place."""
    kept, beside = tmp_path / "kept.sqlite", tmp_path / "kept.sqlite.part"
    kept.write_text("mine")
    with serving(full_pool) as served:
        options = ("--duration", "300", "--capture", str(kept), "--force")
        with attached(served, *options) as process:
            wait_until(beside.exists)
            assert kept.read_text() == "mine"
            assert read_capture(beside).cut is not None
            process.send_signal(signal.SIGINT)
            out, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    assert f"stallscope: {kept} is replaced at the end; until then {beside} is kept\n" in said
    assert read_capture(kept).cut is None
    assert json.loads(out)["verdict"]["class"] == "capacity"
    assert not beside.exists()


def test_the_whole_replaces_what_was_kept_meanwhile(tmp_path: Path) -> None:
    kept = tmp_path / "kept.sqlite"
    options = ("--duration", "300", "--capture", str(kept))
    with serving(full_pool) as served, attached(served, *options) as process:
        wait_until(kept.exists)
        so_far = len(read_capture(kept).engine_samples)
        process.send_signal(signal.SIGINT)
        out, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    whole = read_capture(kept)
    assert whole.cut is None
    assert len(whole.engine_samples) >= so_far
    assert json.loads(out)["capture"]["cut"] is False
    assert [file.name for file in tmp_path.iterdir()] == ["kept.sqlite"]
