"""Each form is told and read, and long lines in it take no time; tests/fuzz damages them."""

from __future__ import annotations

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
    TRANSFER,
    XML,
)

from stallscope.profiler.telemetry.formats import Form, read_form

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
    Form.TRANSFER_CSV: TRANSFER * 2,
}


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
