"""What mail, chat and log collectors put before lines hides no table, and an error is evidence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from stallscope.analyzers.diagnose import diagnose
from stallscope.errors import InputError
from stallscope.profiler.capture import Capture
from stallscope.profiler.file_kinds import InputKind, input_kind
from stallscope.profiler.paste.split import split
from stallscope.profiler.paste.unquoted import unquoted
from stallscope.profiler.reading import read_input

LOG = "".join(
    f"INFO 02-03 10:0{minute}:00 [loggers.py:259] Engine 000: Avg prompt throughput: 0.0 tokens/s, "
    "Avg generation throughput: 900.0 tokens/s, Running: 64 reqs, Waiting: 30 reqs, GPU KV cache "
    f"usage: 99.{minute}%, Prefix cache hit rate: 0.0%\n"
    for minute in range(4)
)
SMI = """\
Tue Feb  3 10:05:00 2026
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 590.48.01              Driver Version: 590.48.01      CUDA Version: 13.1     |
|=========================================+========================+======================|
|   0  NVIDIA H100 80GB HBM3          On  |   00000000:00:09.0 Off |                    0 |
| N/A   41C    P0            300W /  700W |   72000MiB /  81559MiB |     97%      Default |
+-----------------------------------------+------------------------+----------------------+

"""
ERROR = """\
Traceback (most recent call last):
  File "/usr/lib/python3/site-packages/some/runner.py", line 23, in run
    x = model(tokens)
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity \
of 79.15 GiB of which 1.25 GiB is free.
"""
TAKEN = 72000 * 2**20  # bytes, of the table above


def read(folder: Path, text: str) -> Capture:
    path = folder / "stdin"
    path.write_text(text)
    return read_input(path)


def sentences(capture: Capture) -> list[str]:
    return [str(e.data["sentence"]) for e in capture.events if e.kind == "check"]


def headed(mark: str) -> Callable[[str], str]:
    return lambda text: "".join(f"{mark}{line}" for line in text.splitlines(keepends=True))


MARKS = ["> ", ">", "> > ", "    ", "[pod-0] ", "[pod/vllm-0/server] ", "vllm-1  | "]


@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize("of_log", [False, True])
def test_a_table_is_read_behind_what_stands_before_each_line(
    mark: str, of_log: bool, tmp_path: Path
) -> None:
    log = headed(mark)(LOG) if of_log else LOG
    capture = read(tmp_path, log + headed(mark)(SMI))
    assert capture.subject.engine == "vllm"
    assert {s.name: s.value for s in capture.device_samples}["memory_used_bytes"] == TAKEN
    assert sentences(capture)[0] == (
        "The text holds several parts: lines 1–4 an inference server's log; lines 5–12 "
        "output of nvidia-smi or DCGM."
    )


@pytest.mark.parametrize("mark", MARKS)
def test_a_table_alone_is_read_so_too(mark: str, tmp_path: Path) -> None:
    capture = read(tmp_path, headed(mark)(SMI))
    assert {s.name: s.value for s in capture.device_samples}["memory_used_bytes"] == TAKEN
    assert not any("several parts" in s for s in sentences(capture))


def test_an_indented_table_is_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "smi.txt"
    path.write_text(headed("    ")(SMI))
    found = {s.name: s.value for s in read_input(path).device_samples}
    assert (found["memory_used_bytes"], found["nvml_gpu_util"]) == (TAKEN, 0.97)


def test_a_table_that_stands_behind_unknown_marks_is_named(tmp_path: Path) -> None:
    capture = read(tmp_path, LOG + headed("<13>1 ")(SMI) + PAGE)
    unread = [s for s in sentences(capture) if "not read" in s]
    # The date and the rule above it (5, 6) have nothing of a table's own; 7 names nvidia-smi.
    assert unread == [
        "These lines of the text belong to none of its parts and were not read: 7–12."
    ]


PAGE = """\
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="a/b-7B"} 64.0
"""


def test_what_has_no_such_marks_is_left_as_it_is() -> None:
    for text in (LOG, SMI, PAGE, ERROR, headed("[pod-0] ")(LOG), "a | b\n| c | d |\n"):
        lines = text.splitlines(keepends=True)
        assert unquoted(lines) == lines


def refusals(capture: Capture) -> list[dict[str, object]]:
    return [dict(e.data) for e in capture.events if e.kind == "oom"]


def test_an_error_alone_tells_of_the_refused_allocation(tmp_path: Path) -> None:
    path = tmp_path / "error.txt"
    for text in (ERROR, ERROR.splitlines()[-1]):
        path.write_text(text)
        assert input_kind(path) is InputKind.SERVER_LOG
        capture = read_input(path)
        assert capture.subject.engine is None
        (found,) = refusals(capture)
        assert (found["bytes"], found["free_bytes"]) == (2 * 2**30, 5 * 2**28)  # 2, 1.25 GiB


def test_an_error_beside_a_table_is_kept(tmp_path: Path) -> None:
    for text in (ERROR + SMI, SMI + "\nand it says\n" + ERROR):
        capture = read(tmp_path, text)
        assert [found["bytes"] for found in refusals(capture)] == [2 * 2**30]
        assert {s.name: s.value for s in capture.device_samples}["memory_total_bytes"] > TAKEN
    pieces = split(("hello\n" + ERROR + SMI).splitlines(keepends=True))
    assert [(p.kind, p.first, p.last) for p in pieces[:3]] == [
        (None, 1, 1),
        (InputKind.SERVER_LOG, 2, 5),  # the calls above it are the error's
        (InputKind.TELEMETRY, 6, 13),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_uti",
        "ValueError: Free memory on device (6.44/11.63 GiB) on startup is less than desired GPU me",
        "[12345.6] Out of memory: Killed process 99 (python) total-vm:1kB",
        "    Last State:     Terminated\n      Reason:       OOMKilled\n      Exit Code:    137",
        '"lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}',
    ],
)
def test_what_refuses_or_kills_elsewhere_is_found_too(text: str, tmp_path: Path) -> None:
    assert len(refusals(read(tmp_path, f"It dies:\n{text}\n"))) == 1


def test_what_the_system_killed_lacked_the_hosts_memory(tmp_path: Path) -> None:
    told = "      Reason:       OOMKilled\n"
    diagnosis = diagnose(read(tmp_path, told))
    assert diagnosis.verdict.sentence.startswith(
        "Memory capacity limits this run: out of memory (the system killed the process for the "
        "host's memory, not the device's)"
    )
    assert diagnosis.verdict.bottleneck == "capacity"
    assert [r.action for r in diagnosis.remedies][0].startswith("give the process more of the host")


@pytest.mark.parametrize(
    "text",
    [
        "Why do I run out of memory? CUDA out of memory is what a friend had.\n",
        ERROR.replace("CUDA out of memory. Tried to allocate 2.00 GiB.", "x").replace(
            "OutOfMemoryError", "ValueError"
        ),
    ],
)
def test_prose_and_other_errors_are_no_refusal(text: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a text file"):
        read(tmp_path, text)
