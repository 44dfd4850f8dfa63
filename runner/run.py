"""Run a model under instrumentation and leave a capture: `stallscope run` below its options."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from stallscope.errors import CaptureError, InputError, MissingDependency, UsageError
from stallscope.profiler.recorder import Recorder
from stallscope.runner.devices import choose_device
from stallscope.runner.engine import Hooks
from stallscope.runner.job import prepare
from stallscope.runner.machine import device_memory_bytes
from stallscope.runner.options import RunOptions

if TYPE_CHECKING:
    from stallscope.runner.session import Session

__all__ = ["RunOptions", "run"]


def run(
    options: RunOptions,
    *,
    progress: Callable[[str], None] | None = None,
    hooks: Hooks | None = None,
) -> Path:
    """Run, record, and return the capture's path.

    Memory that is refused ends the run early but not in an error: the capture tells. An interrupt
    leaves what ran, flagged `interrupted`, and passes on. Raises UsageError or InputError before
    any work for options that cannot be met.
    """
    job = prepare(options)
    prepare_process()
    try:
        device = choose_device(options.device)
        session_type = _session_type(options.engine)
    except ModuleNotFoundError as error:
        extra = "transformers" if options.engine == "transformers" else "runner"
        raise MissingDependency(error.name or "torch", extra=extra) from None
    config = job.scheduler_config(device_memory_bytes(device)[1])
    hooks = replace(hooks or Hooks(), progress=progress)
    recorder = Recorder(
        options.capture,
        clock=hooks.clock,
        device="cuda:0" if device == "cuda" else device,
        force=options.force,
    )
    recorder.set_meta("load_generator", "stallscope run")
    _record(session_type(job, config, recorder, device, hooks))
    return options.capture


def _session_type(engine: str) -> type[Session]:
    if engine == "transformers":
        os.environ["HF_HUB_OFFLINE"] = "1"  # read once, as it loads: nothing is ever fetched
        from stallscope.runner.hf_session import HfSession

        return HfSession
    from stallscope.runner.session import Session

    return Session


def prepare_process() -> None:
    """Set what torch and its OpenMP library read once, as they load; the user's own setting wins.

    Without huge pages a CPU reads memory a third slower. A thread that waits for the others spins
    long enough for the next operator to come, and no longer: with the default count one other
    process on two cores made a step 20 times slower, with this one 4 times, and a quiet step takes
    2 % more.
    """
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "10000")


def _record(session: Session) -> None:
    recorder = session.recorder
    try:
        flags = session.execute()
    except KeyboardInterrupt:
        recorder.set_meta("flags", ["interrupted"])
        recorder.close()
        raise
    except (InputError, UsageError):  # weights that do not fit: nothing ran, so nothing is left
        recorder.close()
        session.job.options.capture.unlink(missing_ok=True)
        raise
    except BaseException as error:
        with suppress(CaptureError):  # the first error is the one to see
            recorder.note_error(error)
            recorder.close()
        raise
    recorder.set_meta("flags", flags)
    recorder.close()
