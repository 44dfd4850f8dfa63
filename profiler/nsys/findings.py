"""What an nsys export cannot say, in plain words, and what to do about it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stallscope.profiler.nsys.database import Database
from stallscope.profiler.nsys.kernels import GRAPH_TRACE, KERNEL, KernelRows
from stallscope.profiler.nsys.nvtx import Nvtx
from stallscope.profiler.nsys.schema import changed_schema, kernels_lost
from stallscope.profiler.trace.far_times import lost_kernels
from stallscope.profiler.trace.timeline import Finding
from stallscope.profiler.wording import counted, were

DIAGNOSTICS = "DIAGNOSTIC_EVENT"
# ENUM_DIAGNOSTIC_SEVERITY_LEVEL. As a warning, nsys says of each process that did nothing that
# "not all events might have been collected", so that of warnings only plainer words count.
_WARNING, _ERROR = 2, 3
_LOST = re.compile(
    r"drop|\blost\b|overflow|may be missing|might be missing|couldn.t allocate|discarded",
    re.IGNORECASE,
)
_ERROR_LOST = re.compile(_LOST.pattern + r"|not all .* collected|missing", re.IGNORECASE)
_MOST_SAID = 3


def findings(
    database: Database, kernels: KernelRows, nvtx: Nvtx, damaged: int
) -> Iterator[Finding]:
    """Yield what is wrong with the file. `damaged` rows of devices and calls were left out."""
    yield from _kernels(database, kernels)
    yield from changed_schema(database)
    yield from _ranges(nvtx)
    yield from _diagnostics(database)
    if damaged:
        rows = were(damaged, "row")
        reason = f"{rows} left out: without a start or an end, or ending before the start"
        if kernels.damaged:
            of = kernels.damaged + len(kernels.kernels)
            reason += f"; {lost_kernels(kernels.damaged, of)}"
        yield Finding("damaged_rows", reason)


def _ranges(nvtx: Nvtx) -> Iterator[Finding]:
    left_out = nvtx.still_open + nvtx.damaged
    if nvtx.domains and not left_out and not any(len(r) for r in (nvtx.marks, nvtx.operators)):
        yield Finding(
            "nvtx_lost",
            "The program set up NVTX domains, but no range of it arrived: older nsys (2022.4 is "
            "known for it) loses the ranges of the Python package nvtx from version 0.2.12 on",
            "Trace again with a newer nsys or with: pip install 'nvtx<0.2.12'.",
        )
    if nvtx.still_open:
        ranges = were(nvtx.still_open, "range")
        yield Finding(
            "open_ranges",
            f"{ranges} still open when the trace ended, and left out: their length is not known",
        )
    if nvtx.damaged:
        ranges = were(nvtx.damaged, "range")
        yield Finding("damaged_ranges", f"{ranges} left out: ending before the start")


def _kernels(database: Database, kernels: KernelRows) -> Iterator[Finding]:
    lost = kernels_lost(database)
    if kernels.whole_graphs:
        yield Finding(
            "graphs_whole",
            f"CUDA graphs were traced as a whole ({counted(kernels.whole_graphs, 'launch')}): "
            "what kernels ran inside, and whether the device idled between them, is not known",
            "Trace again with --cuda-graph-trace=node.",
        )
    elif KERNEL not in database.tables:
        yield Finding(
            "no_kernel_table",
            "The file has no table of kernels: CUDA was not traced, or nothing ran on the device",
            "Trace with nsys profile -t cuda,nvtx and make sure that the traced process is the one "
            "that uses the device.",
        )
    elif lost is not None:
        yield lost
    elif kernels.damaged and not len(kernels.kernels):
        yield Finding(
            "no_kernels",
            f"No row of the table of kernels can be used ({kernels.damaged:,} read)",
            "Export the report again.",
        )
    elif not len(kernels.kernels) and GRAPH_TRACE not in database.tables:
        yield Finding(
            "no_kernels",
            "The table of kernels is empty: nothing ran on the device while nsys recorded",
            "Trace while requests are served.",
        )


def _diagnostics(database: Database) -> Iterator[Finding]:
    """Yield what nsys itself says about data that it lost, each text once."""
    said: dict[str, int] = {}
    for severity, text in database.rows(DIAGNOSTICS, ("severity", "text")):
        pattern = {_WARNING: _LOST, _ERROR: _ERROR_LOST}.get(severity)
        if pattern is not None and pattern.search(str(text)):
            line = " ".join(str(text).split())
            said[line] = said.get(line, 0) + 1
    for line in list(said)[:_MOST_SAID]:
        yield Finding(
            "data_dropped",
            f"nsys says that it lost data: {line}",
            "Trace for a shorter time, or with fewer kinds of events.",
        )
