"""Choose among the offsets that wall clocks allow, by begins and ends of work that both saw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stallscope.profiler.joining.candidates import Candidate
from stallscope.profiler.joining.fit import MOST_RESIDUAL_NS, Fit
from stallscope.profiler.joining.parts import Pair
from stallscope.profiler.joining.words import apart


def fits_of(pair: Pair, open_: Sequence[Candidate]) -> dict[Candidate, Fit]:
    """Return the fit near each candidate; those without a begin or end to look at are left out."""
    found = ((c, pair.compared.fit(c.offset_ns)) for c in open_)
    return {candidate: fit for candidate, fit in found if fit is not None}


def agreeing(pair: Pair, fits: Mapping[Candidate, Fit]) -> dict[Candidate, Fit]:
    """Keep the fits that stay as near to their candidate as the clocks are exact."""
    reach_ns = MOST_RESIDUAL_NS + pair.clock_error_ns
    return {
        c: fit
        for c, fit in fits.items()
        if fit.agrees and abs(fit.offset_ns - c.offset_ns) <= reach_ns
    }


def best_explained(pair: Pair, fits: Mapping[Candidate, Fit]) -> Candidate:
    """Choose the candidate that explains most; two local times are of one zone if that does.

    Raises InputError where several explain as much.
    """
    most = max(fit.matched for fit in fits.values())
    same_zone = [c for c in fits if not c.zone_ns and 2 * fits[c].matched >= most]
    if pair.lacks_both_zones and same_zone:
        return same_zone[0]
    best = [c for c, fit in fits.items() if fit.matched == most]
    if len(best) > 1:
        by = apart(best[1].offset_ns - best[0].offset_ns)
        raise pair.refusal(f"fit each other in more than one way, {by} apart")
    return best[0]


def unchecked(pair: Pair, open_: Sequence[Candidate]) -> Candidate:
    """Take the wall clocks' word where they leave one offset; raises InputError else."""
    if pair.candidates is None:
        raise pair.refusal("share no begin or end of work, and one of them tells no wall time")
    same_zone = [c for c in open_ if not c.zone_ns]
    if pair.lacks_both_zones and same_zone:
        return same_zone[0]
    if len(open_) == 1 and not pair.lacks_both_zones:
        return open_[0]
    raise pair.refusal("share no begin or end of work, and a time zone is not stated")
