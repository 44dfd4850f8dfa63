"""How often a thread of this process was put off its core although it had work."""

from __future__ import annotations

import time


class Switches:
    """Involuntary context switches a second since the last reading, of all threads together."""

    def __init__(self) -> None:
        self._read_ns, self._count = time.perf_counter_ns(), _involuntary() or 0

    def __call__(self) -> float:
        now_ns, count = time.perf_counter_ns(), _involuntary()
        if count is None:
            raise OSError("this system does not count context switches")
        rate = (count - self._count) / max(1e-9, (now_ns - self._read_ns) * 1e-9)
        self._read_ns, self._count = now_ns, count
        return rate


def _involuntary() -> int | None:
    try:
        import resource
    except ImportError:  # Windows
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
