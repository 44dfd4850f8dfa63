"""Read what Nsight Compute measured of single kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path

from stallscope.errors import InputError
from stallscope.profiler.capture import Capture, DeviceSample, Event, KernelSummary, Source
from stallscope.profiler.ncu.figures import FRACTIONS, duration_ns, fraction, weighted_mean
from stallscope.profiler.ncu.pages import Launch, Page, read_page
from stallscope.profiler.trace.kernel_classes import kernel_class

_UNNAMED_DEVICE = "cuda:0"
_AGAIN = "profile again with ncu --set basic"
_WHAT = {
    "ncu_sm_throughput": "SM throughput",
    "ncu_dram_throughput": "DRAM throughput",
    "ncu_occupancy": "occupancy",
}


def read_ncu_csv(path: str | PathLike[str]) -> Capture:
    """Read a page that `ncu --csv` wrote, in any layout of `pages`.

    The capture holds ncu_sm_throughput, ncu_dram_throughput and ncu_occupancy of each device, as
    means over its launches by their durations, and kernel rows by name. ncu runs every kernel
    alone, at a fixed clock and with flushed caches: it knows nothing of the time between kernels,
    and the kernels given need not be those that fill a run. Raises InputError for anything else,
    and where neither a duration nor a throughput was measured.
    """
    path = Path(path)
    page = read_page(path)
    launches = page.launches
    by_device: dict[str, list[Launch]] = {}
    for launch in launches:
        by_device.setdefault(_label(launch.device), []).append(launch)
    samples = [s for device, some in by_device.items() for s in _samples(device, some)]
    kernels = [k for device, some in by_device.items() for k in _kernels(device, some)]
    if not samples and not kernels:
        raise InputError(f"{path} holds neither durations nor throughputs of its kernels; {_AGAIN}")
    return Capture(
        device_samples=tuple(samples),
        events=(*_scope(page), *_missing(samples, kernels)),
        kernels=tuple(kernels),
        sources=(Source(0, "ncu", str(path), "none", 0, 0),),
        meta={"ended": {}, "ncu": {"launches": sum(launch.count for launch in launches)}},
    )


def _label(device: str | None) -> str:
    if device is None:
        return _UNNAMED_DEVICE
    return f"cuda:{device}" if device.isdigit() else device


def _samples(device: str, launches: Sequence[Launch]) -> Iterator[DeviceSample]:
    times = [duration_ns(launch) for launch in launches]
    is_timed = all(times)
    for figure in FRACTIONS:
        pairs = [
            (value, launch.count * (time if is_timed and time else 1.0))
            for launch, time in zip(launches, times, strict=True)
            if (value := fraction(launch, figure)) is not None
        ]
        mean = weighted_mean(pairs)
        if mean is not None:
            yield DeviceSample(0, device, figure, mean, "fraction")


def _kernels(device: str, launches: Sequence[Launch]) -> Iterator[KernelSummary]:
    """Yield one row for each name whose launches all have a duration, longest first."""
    by_name: dict[str, list[Launch]] = {}
    for launch in launches:
        by_name.setdefault(launch.name, []).append(launch)
    rows = []
    for name, some in by_name.items():
        times = [time * launch.count for launch in some if (time := duration_ns(launch))]
        if len(times) == len(some):
            count, busy_ns = sum(launch.count for launch in some), round(sum(times))
            kind = kernel_class(name)
            rows.append(KernelSummary(device, 0, "other", kind, name, count, busy_ns, None))
    yield from sorted(rows, key=lambda row: -row.busy_ns)


def _scope(page: Page) -> Iterator[Event]:
    count = sum(launch.count for launch in page.launches)
    profiles = "a profile of one launch" if count == 1 else f"profiles of {count:,} launches"
    sentence = (
        f"ncu gave {profiles}, not of a run: it runs each kernel alone, at a fixed clock and with "
        "flushed caches, and sees no time between kernels."
    )
    yield Event(0, "check", None, {"sentence": sentence})
    if page.is_cut:
        said = "The page is cut in the middle of a row; what stands before it was read."
        yield Event(0, "check", None, {"sentence": said})


def _missing(samples: Sequence[DeviceSample], kernels: Sequence[KernelSummary]) -> Iterator[Event]:
    """Say what was not measured; a metric that the device lacks stands as n/a in the page."""
    seen = {sample.name for sample in samples}
    lacking = [words for figure, words in _WHAT.items() if figure not in seen]
    if not kernels:
        lacking.append("the duration of each kernel")
    for what in lacking:
        data = {"what": what, "reason": "not in ncu's page, or n/a there", "how": _AGAIN}
        yield Event(0, "not_observable", None, data)
