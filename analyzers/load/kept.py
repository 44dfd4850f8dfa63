"""Work on a capture's samples that many rules ask for, done once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import wraps
from typing import TypeVar

from stallscope.profiler.capture import EngineSample

_KEPT = 2  # the run's samples and one window's
_Result = TypeVar("_Result")


def kept(
    work: Callable[[Sequence[EngineSample]], _Result],
) -> Callable[[Sequence[EngineSample]], _Result]:
    """Keep the last results by the very tuple that they are of: what cannot change need not be
    compared, and comparing a day of samples would take as long as the work."""
    known: deque[tuple[tuple[EngineSample, ...], _Result]] = deque(maxlen=_KEPT)

    @wraps(work)
    def ask(samples: Sequence[EngineSample]) -> _Result:
        for seen, result in known:
            if seen is samples:
                return result
        result = work(samples)
        if isinstance(samples, tuple):
            known.append((samples, result))
        return result

    return ask
