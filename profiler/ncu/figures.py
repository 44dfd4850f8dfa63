"""What a launch's metrics say: its time, throughputs and occupancy, under ncu's changing names.

The SpeedOfLight section shows sm__throughput as "Compute (SM) Throughput" ("SOL SM" before 2021)
and gpu__dram_throughput as "DRAM Throughput" ("SOL DRAM"). Its "Memory Throughput" is the maximum
over L1, L2 and DRAM: a kernel that runs from the cache has much of it, and DRAM idles. A metric of
one name may stand in several sections with other units, so that the unit must fit as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from stallscope.profiler.ncu.pages import Launch

_ELAPSED, _ACTIVE = ".avg.pct_of_peak_sustained_elapsed", ".avg.pct_of_peak_sustained_active"
FRACTIONS: Mapping[str, tuple[str, ...]] = {
    "ncu_sm_throughput": (f"sm__throughput{_ELAPSED}", "Compute (SM) Throughput", "SOL SM"),
    "ncu_dram_throughput": (
        f"dram__throughput{_ELAPSED}",
        f"gpu__dram_throughput{_ELAPSED}",
        "DRAM Throughput",
        "SOL DRAM",
    ),
    "ncu_occupancy": (f"sm__warps_active{_ACTIVE}", "Achieved Occupancy"),
}
_DURATION = ("gpu__time_duration.sum", "gpu__time_duration.avg", "Duration")
_CYCLES = ("gpc__cycles_elapsed.max", "Elapsed Cycles")
_FREQUENCY = ("gpc__cycles_elapsed.avg.per_second", "SM Frequency")
_NS = {"n": 1.0, "u": 1e3, "m": 1e6, "": 1e9}
_SECONDS = {prefix + word: ns for prefix, ns in _NS.items() for word in ("s", "sec", "second")}
_HERTZ = {
    f"{prefix}{word}": factor
    for factor, prefixes in ((1e9, "Gg"), (1e6, "Mm"), (1e3, "Kk"), (1.0, ("",)))
    for prefix in prefixes
    for word in ("hz", "Hz")
} | {"cycle/nsecond": 1e9, "cycle/usecond": 1e6, "cycle/msecond": 1e3, "cycle/second": 1.0}
# Where a script dropped the unit of a clock, one of a GPU below this is in GHz: none runs at 10 Hz,
# and none at 10 GHz.
_GHZ_BELOW = 10.0
_MOST_NS = 1e15  # no kernel runs for eleven days
_MOST_OF_PEAK = 1.2  # counters of several passes may come to a little over all


def fraction(launch: Launch, figure: str) -> float | None:
    """Return one of FRACTIONS, 0 to 1; None where the launch was not profiled for it."""
    found = _find(launch, FRACTIONS[figure], {"%": 0.01, "": 0.01})
    if found is None or not 0.0 <= found <= _MOST_OF_PEAK:
        return None
    return min(found, 1.0)


def duration_ns(launch: Launch) -> float | None:
    """Return how long the launch ran: its duration, else its cycles ÷ the clock they ran at."""
    time_ns = _find(launch, _DURATION, _SECONDS)
    if time_ns is None:
        cycles, hertz = _find(launch, _CYCLES, {"cycle": 1.0, "": 1.0}), _clock_hz(launch)
        time_ns = cycles / hertz * 1e9 if cycles is not None and hertz else None
    return time_ns if time_ns is not None and 0.0 <= time_ns <= _MOST_NS else None


def _clock_hz(launch: Launch) -> float | None:
    stated = _find(launch, _FREQUENCY, _HERTZ)
    bare = _find(launch, _FREQUENCY, {"": 1.0})
    if stated is not None or bare is None or bare >= _GHZ_BELOW:
        return stated
    return bare * 1e9


def _find(launch: Launch, names: Sequence[str], units: Mapping[str, float]) -> float | None:
    """Return the first of `names` that has one of `units`, times what the unit stands for."""
    for name in names:
        for unit, factor in units.items():
            value = launch.metrics.get((name, unit))
            if value is not None:
                return value * factor
    return None


def weighted_mean(pairs: Iterable[tuple[float, float]]) -> float | None:
    """Return the mean of (value, weight) pairs; None where no weight is."""
    pairs = list(pairs)
    total = sum(weight for _, weight in pairs)
    return sum(value * weight for value, weight in pairs) / total if total else None
