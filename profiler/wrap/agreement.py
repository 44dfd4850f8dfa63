"""What the comparison of a record with its trace has to tell, in sentences for the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from stallscope.profiler.doctor.nsys import judge_ranges
from stallscope.profiler.wrap.compare import SAME_SHARE, Agreement, Offset

_INSTALL = "pip install 'nvtx<0.2.12'"


def agreement_sentences(
    agreement: Agreement, clock: Offset | None, *, nsys: str, nvtx: str | None
) -> Iterator[str]:
    """Say how the trace holds the recorder's steps, and by what its kernels find theirs.

    `clock` is the offset of the wall clocks, `nsys` and `nvtx` the versions of those two.
    """
    expected = agreement.expected.total()
    found = agreement.found.total()
    if not expected:
        yield "None of the recorded steps lies in the window that nsys traced."
    elif not found:
        yield _lost(clock, nsys, nvtx)
    elif not agreement.is_whole:
        yield (
            f"nsys traced {found} of the {expected} ranges that the run recorded meanwhile "
            f"({_missing(agreement)} missing); kernels are told by the steps' own times."
        )
    else:
        yield (
            f"nsys traced all of the run's {expected} recorded steps ({_counts(agreement.found)}); "
            f"the largest difference in length is {agreement.worst_ns / 1e6:.2f} ms."
        )
    if agreement.differing:
        yield (
            f"{agreement.differing} of {found} steps differ in length by more than "
            f"{SAME_SHARE * 100:.0f} % and 1 ms between the trace and the run's own record; the "
            "record stands."
        )


def _lost(clock: Offset | None, nsys: str, nvtx: str | None) -> str:
    pair = None if nvtx is None else judge_ranges(nsys, nvtx)
    if pair is None:
        why, fix = "nvtx is not installed where the command ran", _INSTALL
    elif pair.status == "limited":
        why, fix = pair.reason, f"{_INSTALL}, or use a newer nsys"
    else:
        why, fix = f"nsys {nsys} with nvtx {nvtx}", f"try another nsys, or {_INSTALL}"
    lost = f"The trace holds no range of the recorded steps ({why})"
    return f"{lost}: {_how(clock)}. To get them: {fix}."


def _how(clock: Offset | None) -> str:
    if clock is None:
        return "it does not say when it began either, so it is left out"
    error_ms = clock.error_ns / 1e6
    return f"the wall clock tells which kernels belong to which step, within {error_ms:.0f} ms"


def _counts(found: Counter[str]) -> str:
    return ", ".join(f"{number} {name}" for name, number in sorted(found.items()))


def _missing(agreement: Agreement) -> str:
    return _counts(agreement.expected - agreement.found)
