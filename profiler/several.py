"""Read several files as the sources of one run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from stallscope.profiler.capture import Capture
from stallscope.profiler.file_kinds import TRACES, InputKind, input_kind
from stallscope.profiler.joining.join import Given
from stallscope.profiler.joining.parts import check_joinable, short_names
from stallscope.profiler.joining.together import together
from stallscope.profiler.paste.read import read_pieces
from stallscope.profiler.paste.split import Piece
from stallscope.profiler.reading import known, pieces_in, read_other, read_traces


class _File(NamedTuple):
    """A file with its short name, what it is, and its pieces if several tools printed it."""

    path: Path
    name: str
    kind: InputKind | None
    pieces: Sequence[Piece]
    offset_s: float | None


def read_several(paths: Sequence[Path], offsets: Mapping[Path, float]) -> Capture:
    """Join sources of different kinds; all traces among them are the ranks of one run, and all
    results of benchmarks the loads of one sweep, of which the judged one is joined."""
    names = short_names(paths)
    files = [_file(p, name, offsets) for p, name in zip(paths, names, strict=True)]
    whole = [f for f in files if not f.pieces and known(f.path, f.kind)]
    traces = [f for f in whole if f.kind in TRACES]
    loads = [f for f in whole if f.kind is InputKind.BENCHMARK]
    if len(traces) == len(files):
        return _of_ranks(traces)
    if len(loads) == len(files):
        from stallscope.profiler.benchmark.reader import read_benchmarks

        return read_benchmarks(paths)
    check_joinable(paths, [f.kind or InputKind.SERVER_LOG for f in files])
    given = [_given(f) for f in files if f not in traces and f not in loads]
    return together([*given, *_of_loads(loads), *_ranks_given(traces)])


def _file(path: Path, name: str, offsets: Mapping[Path, float]) -> _File:
    kind = input_kind(path)
    return _File(path, name, kind, pieces_in(path, kind), offsets.get(path))


def _given(file: _File) -> Given:
    if file.pieces:
        read = read_pieces(file.pieces, file.path, read_other)
        return Given(file.name, read.kind, read.capture, file.offset_s)
    kind = known(file.path, file.kind)
    return Given(file.name, kind, read_other(file.path, kind), file.offset_s)


def _of_loads(files: Sequence[_File]) -> Iterator[Given]:
    if not files:
        return
    from stallscope.profiler.benchmark.reader import judged_path, read_benchmarks

    paths = [f.path for f in files]
    results = read_benchmarks(paths)
    judged = files[paths.index(judged_path(results, paths))]
    yield Given(judged.name, InputKind.BENCHMARK, results, judged.offset_s)


def _ranks_given(files: Sequence[_File]) -> Iterator[Given]:
    if not files:
        return
    stated = next((f.offset_s for f in files if f.offset_s is not None), None)
    kind = known(files[0].path, files[0].kind)
    yield Given(files[0].name, kind, _of_ranks(files), stated)


def _of_ranks(files: Sequence[_File]) -> Capture:
    return read_traces([f.path for f in files], [known(f.path, f.kind) for f in files])
