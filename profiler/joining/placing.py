"""Find the offset of one source's clock against another's, or refuse to join them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stallscope.errors import InputError
from stallscope.profiler.joining.by_clocks import agreeing, best_explained, fits_of, unchecked
from stallscope.profiler.joining.by_events import UNSET_NS, offset_by_events
from stallscope.profiler.joining.candidates import Candidate
from stallscope.profiler.joining.fit import MOST_RESIDUAL_NS, Fit
from stallscope.profiler.joining.parts import Pair, Part, pair_of
from stallscope.profiler.joining.words import apart

_S = 1_000_000_000
_MS = 1_000_000


@dataclass(frozen=True, slots=True)
class Placement:
    """What is added to a source's times, how far off that may be, and what says so.

    `residual_ns` is None where no event checked it.
    """

    offset_ns: int
    error_ns: int
    residual_ns: int | None
    sentence: str


def place(first: Part, second: Part) -> Placement:
    """Place the second source on the first one's clock.

    By the wall clocks as far as both tell them, checked by the begins and ends of work that both
    saw; by these alone where the clocks tell nothing or cannot be right. Raises InputError where
    they do not overlap, where nothing puts them together, and where the residual is too large.
    """
    pair = pair_of(first, second)
    allowed = pair.candidates or ()
    open_ = [c for c in allowed if pair.compared.overlap_ns(c.offset_ns) > 0]
    if pair.is_stated:
        return _stated(pair, open_)
    if allowed and not open_:
        near = [c for c in allowed if pair.compared.overlap_ns(c.offset_ns) > -UNSET_NS]
        found = _by_events(pair, near) if near else None
        if found is None:
            raise pair.refusal("do not overlap in time")
        return found
    if first.kind == second.kind:
        # Servers side by side, and devices, need not work at the same moments.
        return _unchecked(pair, open_)
    fits = fits_of(pair, open_)
    agreed = agreeing(pair, fits)
    if agreed:
        chosen = best_explained(pair, agreed)
        return _placed(pair, chosen, agreed[chosen])
    found = _by_events(pair, open_ if allowed else None)
    if found is None and fits:
        raise _too_far(pair, fits)
    return found or _unchecked(pair, open_)


def _stated(pair: Pair, open_: Sequence[Candidate]) -> Placement:
    """Do as the user says, and say where events do not agree."""
    if not open_:
        raise pair.refusal("do not overlap in time with the --offset given")
    chosen = open_[0]
    fit = pair.compared.fit(chosen.offset_ns)
    how = f"{_joined(pair)} as --offset says"
    if fit is None:
        return _alone(chosen, _S, f"{how}, not checked by events")
    off_ns = max(fit.residual_ns, abs(fit.offset_ns - chosen.offset_ns))
    if off_ns > MOST_RESIDUAL_NS:
        return _alone(chosen, off_ns, f"{how}, but {pair.compared.what.come} {apart(off_ns)} apart")
    return Placement(fit.offset_ns, _error(fit), fit.residual_ns, f"{how}{_agreement(pair, fit)}")


def _placed(pair: Pair, chosen: Candidate, fit: Fit) -> Placement:
    how = f"{_joined(pair)} by their wall clocks{_zone(pair, chosen)}"
    return Placement(fit.offset_ns, _error(fit), fit.residual_ns, f"{how}{_agreement(pair, fit)}")


def _by_events(pair: Pair, near: Sequence[Candidate] | None) -> Placement | None:
    fit = offset_by_events(pair.compared, near)
    if fit is None:
        return None
    how = f"{_joined(pair)} by events"
    if near is not None:
        nearest = min(near, key=lambda c: abs(fit.offset_ns - c.offset_ns))
        off = apart(fit.offset_ns - nearest.offset_ns)
        how += f", as their clocks are {off} apart beyond what a time zone explains"
    return Placement(fit.offset_ns, _error(fit), fit.residual_ns, f"{how}{_agreement(pair, fit)}")


def _unchecked(pair: Pair, open_: Sequence[Candidate]) -> Placement:
    chosen = unchecked(pair, open_)
    zone = ", both taken to be of one time zone" if pair.lacks_both_zones else _zone(pair, chosen)
    how = f"{_joined(pair)} by their wall clocks{zone}, not checked by events"
    return _alone(chosen, max(pair.clock_error_ns, _MS), how)


def _alone(chosen: Candidate, error_ns: int, how: str) -> Placement:
    return Placement(chosen.offset_ns, error_ns, None, f"{how} (within ± {apart(error_ns)}).")


def _joined(pair: Pair) -> str:
    return f"{pair.second.name} is joined with {pair.first.name}"


def _zone(pair: Pair, chosen: Candidate) -> str:
    """Say how far the clocks are apart by their zones alone."""
    if not chosen.zone_ns:
        return ""
    side = "behind" if chosen.zone_ns > 0 else "ahead of"
    by = f"{pair.second.name}'s shows {apart(chosen.zone_ns)} {side} {pair.first.name}'s"
    return f" ({by}, as another time zone does)"


def _agreement(pair: Pair, fit: Fit) -> str:
    count = f"{fit.matched} of {fit.looked_at}"
    is_one = fit.looked_at == 1
    what = pair.compared.what.one if is_one else pair.compared.what.several
    residual, within = apart(fit.residual_ns), apart(_error(fit))
    agree = "agrees" if is_one else "agree"
    return f": {count} {what} {agree} (residual {residual}, offset within ± {within})."


def _error(fit: Fit) -> int:
    """Return how far the true offset may be from the chosen one."""
    reach_ns = max(fit.offset_ns - fit.least_ns, fit.most_ns - fit.offset_ns)
    return max(reach_ns, fit.residual_ns, _MS)


def _too_far(pair: Pair, fits: Mapping[Candidate, Fit]) -> InputError:
    """Say how far apart work begins and ends at the plainest offset that the clocks allow."""
    candidate, fit = next(iter(fits.items()))
    off = apart(max(fit.residual_ns, abs(fit.offset_ns - candidate.offset_ns)))
    most = apart(MOST_RESIDUAL_NS)
    come = pair.compared.what.come
    return pair.refusal(f"do not fit: {come} {off} apart (at most {most} is accepted)")
