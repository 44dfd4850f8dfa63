"""Read a trace of PyTorch's profiler (Kineto): .json or .json.gz, of CUDA, ROCm, MTIA or a CPU."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from stallscope.errors import InputError
from stallscope.profiler.kineto.chunks import chunks_of
from stallscope.profiler.kineto.header import devices_of, facts_of, rank_of, tool_of, unix_of
from stallscope.profiler.kineto.pieces import NoTrace, Surroundings, events_of
from stallscope.profiler.kineto.rows import Rows, add
from stallscope.profiler.kineto.tables import Tables, tables_of
from stallscope.profiler.trace.far_times import DAY_NS, far_finding, lost_kernels
from stallscope.profiler.trace.intervals import union
from stallscope.profiler.trace.timeline import Finding, Ranges, Trace, empty
from stallscope.profiler.wording import were

_ADVICE = "Export it again if what is missing matters; the profiler writes it when it stops."


def read_kineto(path: str | PathLike[str]) -> Trace:
    """Read a Chrome trace as torch.profiler exports it, in one pass and little memory.

    Times become integer nanoseconds on the file's own clock (microseconds with fractions in the
    file; `facts["resolution_ns"]` says how fine they are). `Kernels.graph` is 0 for a kernel of a
    graph whose id the file lacks. Of a file that was cut, what is whole is read, with a finding
    "cut". Raises InputError where the file cannot be read or holds no trace.
    """
    path = Path(path)
    rows, around = Rows(), Surroundings()
    try:
        for events in events_of(chunks_of(path), around):
            add(events, rows)
    except NoTrace as error:
        raise InputError(
            f"{path} {error}; give a trace exported by torch.profiler (.json or .json.gz)"
        ) from None
    if not rows.count and rows.lost:
        raise InputError(
            f"{path} holds no event whose times can be read; record and export the trace again"
        )
    if not rows.count:
        raise InputError(f"{path} holds no trace events; record and export the trace again")
    return _trace(path, rows, around)


def _trace(path: Path, rows: Rows, around: Surroundings) -> Trace:
    tables = tables_of(rows)
    header = around.header
    first_ns, last_ns = _span(tables)
    has_range_profiler = rows.counts.get("cuda_profiler_range", 0) > 0
    return Trace(
        kind="kineto",
        tool=tool_of(header),
        path=str(path),
        devices=devices_of(header, list(rows.devices), _maker(rows)),
        threads=_threads(rows),
        names=tables.names,
        texts=tables.texts,
        kernels=tables.kernels,
        copies=tables.copies,
        calls=tables.calls,
        marks=tables.marks,
        operators=tables.operators,
        waits=empty(Ranges),
        rank=rank_of(header),
        window_ns=_window(rows),
        unix_ns=unix_of(header, first_ns),
        traces_kernels=_traces_kernels(tables, has_range_profiler),
        findings=(*_findings(rows, around, first_ns, last_ns), *far_finding(tables.near)),
        facts=_facts(rows, header, last_ns),
    )


def _traces_kernels(tables: Tables, has_range_profiler: bool) -> bool:
    """Tell whether kernels would be here had any run: device rows or calls were recorded."""
    if has_range_profiler:
        return False
    return len(tables.kernels) + len(tables.copies) + len(tables.calls) > 0


def _maker(rows: Rows) -> str:
    if "mtia_ccp_events" in rows.counts:
        return "mtia"
    names = (str(name) for name in rows.host_names)
    return "hip" if any(name.startswith("hip") for name in names) else "cuda"


def _threads(rows: Rows) -> tuple[str, ...]:
    several = len({pid for pid, _ in rows.threads.known}) > 1
    return tuple(
        rows.thread_names.get((pid, tid), f"thread {tid}")
        + (f" of {rows.process_names.get(pid, 'process')} {pid}" if several else "")
        for pid, tid in rows.threads.known
    )


def _span(tables: Tables) -> tuple[int | None, int | None]:
    everything = (tables.kernels, tables.copies, tables.calls, tables.marks, tables.operators)
    filled = [table for table in everything if len(table)]
    if not filled:
        return None, None
    return min(int(t.start_ns.min()) for t in filled), max(int(t.end_ns.max()) for t in filled)


def _window(rows: Rows) -> tuple[int, int] | None:
    start_ns, end_ns = rows.windows.start.whole(), rows.windows.end.whole()
    if not len(start_ns) or end_ns.max() - start_ns.min() > DAY_NS:
        return None
    return int(start_ns.min()), int(end_ns.max())


def _facts(rows: Rows, header: dict[str, Any], last_ns: int | None) -> dict[str, Any]:
    facts = facts_of(header)
    facts["events"] = rows.count
    frames = rows.counts.get("python_function", 0)
    if frames:
        facts["with_stack"] = True
        facts["python_calls"] = frames
    overheads = union(rows.overheads.start.whole(), rows.overheads.end.whole())
    if len(overheads):
        facts["profiler_overhead_ns"] = overheads.total_ns
    if last_ns is not None:
        facts["resolution_ns"] = _resolution_ns(rows, last_ns)
    return facts


def _resolution_ns(rows: Rows, last_ns: int) -> int:
    """Return how fine times are: whole microseconds, or what a float of that size still tells."""
    if not rows.has_fractions:
        return 1000
    return max(1, round(float(np.spacing(last_ns / 1e3)) * 1e3))


def _findings(
    rows: Rows, around: Surroundings, first_ns: int | None, last_ns: int | None
) -> list[Finding]:
    findings = []
    if not around.is_whole:
        reason = f"The file ends in the middle: {were(rows.count, 'event')} read"
        if first_ns is not None and last_ns is not None:
            reason += f", which span {(last_ns - first_ns) / 1e9:.3f} s"
        findings.append(Finding("cut", reason, _ADVICE))
    unreadable = around.unreadable + sum(rows.lost.values())
    if unreadable:
        reason = f"Left out as damaged: {unreadable:,} of the file's events"
        lost = rows.lost.get("kernel", 0)
        if lost:
            reason += f", {lost_kernels(lost, lost + rows.counts.get('kernel', 0))}"
        findings.append(Finding("unreadable", reason, _ADVICE))
    if around.bytes_behind:
        findings.append(
            Finding(
                "more_behind",
                f"The file goes on behind the end of its trace ({around.bytes_behind:,} bytes), "
                "which was not read: it may be several traces put together",
                "Give each trace in a file of its own.",
            )
        )
    if rows.counts.get("cuda_profiler_range"):
        findings.append(
            Finding(
                "kernels_not_timed",
                "CUPTI's range profiler recorded counters instead of kernels' times",
                "Record again without profiler metrics in experimental_config.",
            )
        )
    return findings
