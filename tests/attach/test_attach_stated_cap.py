"""A cap given by --max-num-seqs beside what the watched server shows of it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from scripted_server import send, serving, vllm_page

SCRIPT = str(Path(sys.executable).with_name("stallscope"))


def plateau(handler: BaseHTTPRequestHandler, number: int) -> None:
    """Forty run and eighteen wait; prompts are let in all the time, and KV has room."""
    page = vllm_page(running=40, waiting=18, kv=0.3, tokens=1000 + 90 * number)
    send(handler, page.encode())


def judged(*options: str) -> dict[str, Any]:
    """Watch until the server was asked twelve times, however long that takes."""
    command = [SCRIPT, "attach", "--interval", "0.1", "--duration", "300", "--format", "json"]
    with serving(plateau) as served:
        process = subprocess.Popen(
            [*command, served.url, *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            end = time.monotonic() + 120
            while len(served.asked) < 12:
                assert time.monotonic() < end
                time.sleep(0.02)
            process.send_signal(signal.SIGINT)
            out, said = process.communicate(timeout=120)
        finally:
            process.kill()
    assert process.returncode == 0, said
    report: dict[str, Any] = json.loads(out)
    return report


@pytest.mark.parametrize("cap", [None, 40, 256, 4096])
def test_no_cap_that_is_given_hides_a_plateau(cap: int | None) -> None:
    report = judged(*(() if cap is None else ("--max-num-seqs", str(cap))))
    assert report["verdict"]["class"] == "scheduling"
    assert report["verdict"]["sentence"].startswith(
        "Requests queue at the sequence cap of 40 while"
    )
    refused = f"--max-num-seqs was not used: {cap} was given, and running stood at 40 in "
    assert [w.startswith(refused) for w in report["warnings"]] == (
        [True] if cap in (256, 4096) else []
    )
    word = (
        "The cap of 40 is the word of --max-num-seqs: nothing recorded states it. At most 40 ran "
    )
    assert any(note.startswith(word) for note in report["notes"]) is (cap == 40)


def test_a_cap_below_what_runs_cannot_be() -> None:
    report = judged("--max-num-seqs", "39")
    assert report["warnings"] == [
        "--max-num-seqs was not used: 39 was given, and 40 requests ran at once."
    ]
    assert report["verdict"]["class"] == "scheduling"
