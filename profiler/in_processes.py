"""Work on several files at once, in processes of their own."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import TypeVar

from stallscope.errors import InputError

T = TypeVar("T")


def in_processes(work: Callable[[Path], T], paths: Sequence[Path]) -> tuple[T, ...]:
    """Call `work`, a function of a module, on each path; results in the order given.

    The first path whose work raises InputError or CaptureError ends the others with that error. A
    process that the system ends raises InputError.
    """
    if len(paths) < 2:
        return tuple(work(path) for path in paths)
    workers = min(len(paths), os.cpu_count() or 1)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        running = [pool.submit(work, path) for path in paths]
        results = []
        for path, future in zip(paths, running, strict=True):
            try:
                results.append(future.result())
            except (BrokenProcessPool, MemoryError) as error:
                pool.shutdown(wait=False, cancel_futures=True)
                raise InputError(
                    f"{path}: the process that read it ended, most likely for want of memory; "
                    "give fewer files at once"
                ) from error
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        return tuple(results)
