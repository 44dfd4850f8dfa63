"""Whether a refused allocation names a device of the size that the capture is of."""

from __future__ import annotations

from stallscope.analyzers.event_fields import number
from stallscope.analyzers.refusals import refused_allocations
from stallscope.profiler.capture import Capture

_APART = 0.1  # an 80 GB device shows 79.1 GiB of 80: drivers and ECC hold some back


def other_device_note(capture: Capture) -> tuple[str, ...]:
    """Say where the refusal is of a device of another size than the one named elsewhere."""
    device = capture.subject.device
    event = next(iter(refused_allocations(capture)), None)
    if event is None or device is None or device.memory_bytes is None:
        return ()
    total = number(event, "total_bytes")
    if not total or abs(total / device.memory_bytes - 1) <= _APART:
        return ()
    return (
        f"The refused allocation is of a device of {total / 2**30:.1f} GiB, and {device.name} has "
        f"{device.memory_bytes / 2**30:.1f} GiB: they are different devices, or only a part of "
        "one is visible. Figures of the two do not belong together.",
    )
