"""Read whatever a run was recorded with: the one way in for files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from stallscope.errors import InputError
from stallscope.profiler.broken_gzip import noting_break
from stallscope.profiler.broken_json import why_broken
from stallscope.profiler.capture import Capture
from stallscope.profiler.file_kinds import TRACES, InputKind, input_kind, kind_of

if TYPE_CHECKING:
    from stallscope.profiler.paste.split import Piece
    from stallscope.profiler.trace.reduce import Reduced
    from stallscope.profiler.trace.timeline import Trace

READ = (
    "diagnose reads captures of stallscope, nsys reports (.nsys-rep), their SQLite exports and "
    "nsys stats, traces of the PyTorch profiler, what ncu, nvidia-smi and DCGM print, logs and "
    "pages of /metrics of inference servers, and results of benchmarks"
)

_OWN = (
    "; runs that a script of your own measured: set them in a table, CSV or Markdown, and "
    "stallscope compare reads it"
)


def read_input(path: Path) -> Capture:
    """Read one file of any kind that InputKind lists, told by its content.

    A text may hold what several tools printed below each other. Raises InputError or CaptureError
    in one line for anything else, or what is damaged.
    """
    kind = input_kind(path)
    pieces = pieces_in(path, kind)
    if pieces:
        from stallscope.profiler.paste.read import read_pieces

        return read_pieces(pieces, path, read_other).capture
    if known(path, kind) in TRACES:
        return read_traces([path], [known(path, kind)])
    return read_other(path, known(path, kind))


def read_inputs(paths: Sequence[Path], offsets: Mapping[Path, float] | None = None) -> Capture:
    """Read one file, several traces as the ranks of one run, or several sources of one run.

    Results of benchmarks alone are the loads of one sweep.

    `offsets` are seconds to add to the clocks of sources that are joined.
    """
    if len(paths) == 1:
        return read_input(paths[0])
    from stallscope.profiler.several import read_several

    return read_several(paths, offsets or {})


def pieces_in(path: Path, kind: InputKind | None) -> list[Piece]:
    """Return the pieces of a text that several tools printed; nothing of any other file."""
    if kind not in _PASTED:
        return []
    from stallscope.profiler.paste.read import pieces_of

    return pieces_of(path)


_PASTED = (
    InputKind.METRICS,
    InputKind.TELEMETRY,
    InputKind.SERVER_LOG,
    InputKind.BENCHMARK,
    None,  # what begins with many words of the user's own
)


def read_traces(paths: Sequence[Path], kinds: Sequence[InputKind]) -> Capture:
    """Read traces as those of the ranks of one run."""
    _check_one_tool(paths, kinds)
    from stallscope.profiler.in_processes import in_processes
    from stallscope.profiler.trace.to_capture import capture_of_ranks

    ranks = in_processes(reduced, paths)
    if not any(one.holds for one in ranks):
        told = " ".join(check.sentence for check in ranks[0].checks)
        raise InputError(f"{paths[0]}: nothing in it can be judged. {told}")
    return capture_of_ranks(ranks)


def known(path: Path, kind: InputKind | None) -> InputKind:
    """Return the kind; raise InputError where it is none."""
    if kind is None:
        found = kind_of(path)
        own = _OWN if found == "a JSON file" else ""
        broken = why_broken(path) if found == "a JSON file" else None
        if broken is not None:
            found, own = broken, ""
        raise InputError(f"{path}: {found}; {READ}{own}")
    return kind


def _check_one_tool(paths: Sequence[Path], kinds: Sequence[InputKind]) -> None:
    """Refuse traces of different tools: their clocks differ, and they are no ranks of one run."""
    by_torch = [kind is InputKind.KINETO for kind in kinds]
    if any(by_torch) and not all(by_torch):
        path = paths[by_torch.index(True)]
        raise InputError(
            f"{path}: is {InputKind.KINETO}, others are of nsys; ranks of one run are traced with "
            "one tool: give the files of each alone"
        )


def read_other(path: Path, kind: InputKind) -> Capture:
    """Read what is no trace of a timeline; a gzip stream that ends early is noted."""
    return noting_break(path, _of_kind(path, kind))


def _of_kind(path: Path, kind: InputKind) -> Capture:
    if kind is InputKind.NSYS_STATS:
        from stallscope.profiler.nsys.stats_csv import read_nsys_stats

        return read_nsys_stats(path)
    if kind is InputKind.NCU_PAGE:
        from stallscope.profiler.ncu.reader import read_ncu_csv

        return read_ncu_csv(path)
    if kind is InputKind.METRICS:
        from stallscope.profiler.metrics_page.reader import read_metrics

        return read_metrics(path)
    if kind is InputKind.SERVER_LOG:
        from stallscope.profiler.server_log.reader import read_server_log

        return read_server_log(path)
    if kind is InputKind.BENCHMARK:
        from stallscope.profiler.benchmark.reader import read_benchmarks

        return read_benchmarks([path])
    if kind is InputKind.NCU_REPORT:
        from stallscope.profiler.ncu.report_file import read_ncu_report

        return read_ncu_report(path)
    if kind is InputKind.PROFILER_TEXT:
        from stallscope.profiler.profiler_text import read_profiler_text

        return read_profiler_text(path)
    if kind is InputKind.TELEMETRY:
        from stallscope.profiler.telemetry.reader import read_telemetry

        return read_telemetry(path)
    from stallscope.profiler.capture_file import read_capture

    return read_capture(path)


def reduced(path: Path) -> Reduced:
    """Read a trace and reduce it: what a process of its own hands back is small."""
    from stallscope.profiler.trace.reduce import reduce_trace

    return reduce_trace(read_trace(path, known(path, input_kind(path))))


def read_trace(path: Path, kind: InputKind) -> Trace:
    """Read one trace of a kind in TRACES; an nsys report goes through the installed nsys."""
    if kind is InputKind.KINETO:
        from stallscope.profiler.kineto.reader import read_kineto

        trace: Trace = read_kineto(path)
        return trace
    from stallscope.profiler.nsys.sqlite_reader import read_nsys_sqlite

    if kind is InputKind.NSYS_SQLITE:
        trace = read_nsys_sqlite(path)
        return trace
    from stallscope.profiler.nsys.export import exported

    with exported(path) as database:
        trace = read_nsys_sqlite(database)
        return replace(trace, path=str(path))
