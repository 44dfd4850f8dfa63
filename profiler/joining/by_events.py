"""Find an offset by begins and ends of work alone, whatever the clocks show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from stallscope.profiler.joining.candidates import Candidate
from stallscope.profiler.joining.fit import MOST_RESIDUAL_NS, Comparison, Fit

UNSET_NS = 900_000_000_000  # a clock that nobody sets goes wrong by minutes
_PART = 0.8  # of the shorter source, and of the moments of both, that must be explained
_RIVAL = 0.8  # of its matched moments at another offset make one ambiguous
_LEAST_MATCHED = 2
_LEAST_AGAINST_CLOCKS = 5  # one stretch of work, or two, are easily as long as some others


def offset_by_events(compared: Comparison, near: Sequence[Candidate] | None) -> Fit | None:
    """Return the one offset that explains nearly all begins and ends; None if none stands out.

    It must lie within a quarter of an hour of one that the clocks allow; None allows any.
    """
    found = list(_explaining(compared, near))
    if not found:
        return None
    best = max(found, key=lambda fit: (fit.matched, -fit.residual_ns))
    far_ns = 2 * MOST_RESIDUAL_NS + compared.edge_ns
    rivals = (fit for fit in found if abs(fit.offset_ns - best.offset_ns) > far_ns)
    is_alone = all(fit.matched < _RIVAL * best.matched for fit in rivals)
    middle_ns = (best.least_ns + best.most_ns) // 2  # no clock says which of these offsets it is
    return replace(best, offset_ns=middle_ns) if is_alone else None


def _explaining(compared: Comparison, near: Sequence[Candidate] | None) -> Iterator[Fit]:
    least = _LEAST_MATCHED if near is None else _LEAST_AGAINST_CLOCKS
    for guess_ns in compared.guesses().tolist():
        if near is not None and min(abs(guess_ns - c.offset_ns) for c in near) > UNSET_NS:
            continue
        if compared.overlap_ns(guess_ns) < _PART * compared.shorter_ns():
            continue
        fits = compared.both_ways(guess_ns)
        fewest = min(fits, key=lambda fit: fit.matched, default=None)
        if fewest is None or fewest.matched < least:
            continue
        if all(fit.agrees and fit.matched >= _PART * fit.looked_at for fit in fits):
            yield fewest
