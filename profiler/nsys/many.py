"""Several exports at once, one for each rank, read in processes of their own."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from os import PathLike

from stallscope.errors import InputError
from stallscope.profiler.nsys.sqlite_reader import read_nsys_sqlite
from stallscope.profiler.trace.timeline import Trace


def read_nsys_many(paths: Sequence[str | PathLike[str]]) -> tuple[Trace, ...]:
    """Read exports, in the order given. Raises InputError for the first that cannot be read."""
    if len(paths) < 2:
        return tuple(read_nsys_sqlite(path) for path in paths)
    workers = min(len(paths), os.cpu_count() or 1)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        readings = [pool.submit(read_nsys_sqlite, path) for path in paths]
        traces = []
        for path, reading in zip(paths, readings, strict=True):
            try:
                traces.append(reading.result())
            except (BrokenProcessPool, MemoryError) as error:
                pool.shutdown(wait=False, cancel_futures=True)
                raise InputError(
                    f"{path}: the process that read it ended, most likely for want of memory; "
                    "give fewer files at once"
                ) from error
            except InputError:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        return tuple(traces)
