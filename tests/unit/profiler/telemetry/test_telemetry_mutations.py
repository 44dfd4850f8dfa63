"""Damaged outputs are read as far as they are whole, or refused in one line."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from telemetry_texts import (
    DCGM_DMON,
    DMON,
    OLD_REPORT,
    PAGE,
    PMON,
    QUERY,
    REPORT,
    TABLE,
    XML,
)

from stallscope.errors import CaptureError, InputError
from stallscope.profiler.capture import Capture
from stallscope.profiler.reading import read_input
from stallscope.profiler.telemetry.formats import Form, read_form
from stallscope.profiler.telemetry.to_capture import capture_of
from stallscope.profiler.text_lines import decoded

TIMES = 300
MOST_BYTES = 16 * 1024
VALUES = "GPUId,TimeStampUs,Field,Values\n0,1718783836956328,power_usage,71.20\n" * 3
TEXTS = {
    Form.QUERY_CSV: QUERY + QUERY,
    Form.UNHEADED: "2024/01/16 14:44:16.981, NVIDIA L4, 95 %, 23034 MiB, 70.10 W\n" * 3,
    Form.QUERY_TEXT: REPORT + OLD_REPORT,
    Form.QUERY_XML: XML + XML,
    Form.TABLE: TABLE,
    Form.MONITOR: DMON
    + PMON
    + "    0       5021     C     40     30      -      -   9000    a b\n",
    Form.DCGM_MONITOR: DCGM_DMON + "GPU-I 3   0.9 0.8 0.3 0.2 0.6 0.05 0.3 241.3 18 61 97\n",
    Form.DCGM_PAGE: "# scrape_unix_ms 1700000000000\n" + PAGE + PAGE,
    Form.DCGM_VALUES: VALUES,
}
INSERTED = (
    *(b"\0", b"\n", b'"', b",", b", ", b";", b"\xff\xfe", b"\xef\xbb\xbf", b"\r", b"\t", b"|"),
    *(b"9" * 400, b"-", b"1e308", b"0x", b"[N/A]", b"nan", b"inf", b" : ", b"</gpu>", b"<gpu>"),
    *("²".encode(), "٣".encode(), b"{", b"}", b"GPU 00000000:01:00.0\n", b"    " * 300, b"#"),
)


def damaged(content: bytes, rng: random.Random) -> bytes:
    """Return the content after one to four accidents, cut to what is allowed."""
    for _ in range(rng.randint(1, 4)):
        at, to = sorted(rng.randrange(len(content) + 1) for _ in range(2))
        accident = rng.randrange(6)
        if accident == 0:
            content = content[:at]
        elif accident == 1:
            content = content[:at] + content[to:]
        elif accident == 2:
            content = content[:to] + content[at:to] * rng.randint(1, 3) + content[to:]
        elif accident == 3:
            content = content[:at] + bytes([rng.randrange(256)]) + content[at + 1 :]
        elif accident == 4:
            content = content[:at] + rng.choice(INSERTED) + content[at:]
        else:
            lines = content.splitlines(keepends=True)
            rng.shuffle(lines)
            content = b"".join(lines)
    return content[:MOST_BYTES]


def is_sound(read: Callable[[], Capture]) -> bool:
    """Tell whether something was read; what is refused must be so in one line."""
    try:
        capture = read()
    except (InputError, CaptureError) as error:
        said = str(error)
    else:
        check(capture)
        return bool(capture.device_samples)
    assert said
    assert "\n" not in said
    return False


def check(capture: Capture) -> None:
    """Hold a capture to what every capture is."""
    assert all(math.isfinite(s.value) for s in capture.device_samples)
    assert all(-(2**63) <= s.t_ns < 2**63 for s in capture.device_samples)
    times = [s.t_ns for s in capture.device_samples]
    assert times == sorted(times)


@pytest.mark.parametrize("form", list(Form))
def test_damage_is_a_capture_or_one_line(tmp_path: Path, form: Form) -> None:
    rng = random.Random(f"telemetry {form.name}")
    content, read, file = TEXTS[form].encode(), 0, tmp_path / "input"
    for _ in range(TIMES):
        broken = damaged(content, rng)
        lines = decoded(broken).splitlines(keepends=True)
        read += is_sound(lambda lines=lines: capture_of(read_form(form, lines), "input"))
        file.write_bytes(broken)
        is_sound(lambda: read_input(file))
    assert read > TIMES / 4  # damage that nothing survives would test nothing


def test_each_text_is_of_its_form_and_reads_whole() -> None:
    for form, text in TEXTS.items():
        assert read_form(form, text.splitlines(keepends=True)).rows, form


LONG = ("a", " ", "1", ",", ", ", '"', "|", ": ", "a ", "1 ", "GPU ", "<a>", "{", 'a="', "é")


@pytest.mark.timeout(20)
@pytest.mark.parametrize("form", list(Form))
def test_long_lines_take_no_time(form: Form) -> None:
    head, *rest = TEXTS[form].splitlines(keepends=True)
    for piece in LONG:
        for before in ("", "    ", "|   0  ", "GPU 0 ", "DCGM_FI_DEV_X{", "a : "):
            line = (before + piece * MOST_BYTES)[:MOST_BYTES] + "\n"
            read_form(form, [head, line, *rest])
