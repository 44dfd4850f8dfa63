"""What an experiment says of the limit: the class that responded, or the one it excludes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stallscope.analyzers.experiment.groups import spelled
from stallscope.analyzers.experiment.response import NOISE, Law, Response, respond
from stallscope.analyzers.experiment.result import Finding, Group
from stallscope.analyzers.experiment.settings import FORMAT_BYTES, Setting
from stallscope.analyzers.words import both, percent
from stallscope.profiler.wording import figure

DEFAULT = "default"  # how a table spells an option that was not given
DIFFERS = 1.25  # two alternatives are that far apart, or closer
_LIMITS = 0.40  # the share that decides, as in the verdict of a single run
_LEAST_POINTS = 3  # from which on the law itself is tested


def finding_of(group: Group, setting: Setting, *, is_step: bool = False) -> Finding:
    """Read one group of runs by what the setting is.

    `is_step` says that the times are of a decode step: what a burden adds to it is then a speed.
    """
    found = _read(group, setting, is_step=is_step)
    if not group.together:
        return found
    return replace(found, says=f"{found.says} ({both(group.together)} changed with it)")


def _read(group: Group, setting: Setting, *, is_step: bool) -> Finding:
    if setting.kind == "choice":
        return _of_choice(group, setting)
    if setting.kind == "format":
        return _of_format(group)
    values = [setting.default if v == DEFAULT else v for v in group.values]
    if setting.speeds is not None:
        values = [setting.speeds.get(v) if isinstance(v, float) else v for v in values]
    numbers = [v for v in values if isinstance(v, float)]
    if len(numbers) < len(values):
        if setting.responds is not None and setting.responds == setting.worse:
            return _of_choice(group, setting)  # whichever way it went, it proves one class
        return Finding(group.label, f"values of {setting.what} are not numbers", None)
    law: Law = "resource" if setting.kind == "resource" else "burden"
    response = respond(law, numbers, group.times)
    if response is None:
        return Finding(group.label, f"{setting.what} must be above zero to be compared", None)
    if setting.is_speed and _exceeds(numbers, group.times):
        slow = f"{max(group.times) / min(group.times):.1f} × as long"
        says = (
            f"{slow} at {figure(max(numbers) / min(numbers), 2)} × less of "
            f"{setting.what}: it cannot "
        )
        says += "explain that, so something else changed too"
        return Finding(group.label, says, None, share=response.share)
    turn = _best(numbers, group.times)
    if law == "resource" and setting.worse and turn is not None:
        return _worse(group, setting, turn, response)
    at = min(numbers) if law == "resource" else max(numbers)
    where = spelled(group.values[numbers.index(at)])
    told = f"{percent(response.share)} of the time follows {setting.what} where that is {where}"
    return _of_response(group, setting, response, told, is_step=is_step)


def _exceeds(values: Sequence[float], times: Sequence[float]) -> bool:
    """Tell whether time grew by more than the speed shrank: no part of it can follow so much."""
    by_value = dict(zip(values, times, strict=True))
    least, most = min(values), max(values)
    return by_value[least] / by_value[most] > (1 + 2 * NOISE) * most / least


def _of_response(
    group: Group, setting: Setting, response: Response, told: str, *, is_step: bool
) -> Finding:
    share = response.share
    if not response.seen:
        says = f"{setting.what} was varied too little to tell: vary it by a quarter at least"
        return Finding(group.label, says, None, share=share)
    if share >= _LIMITS:
        return _responding(group, setting, response, told, is_step=is_step)
    if response.is_flat:
        says = f"nothing follows {setting.what} ({percent(share)} of the time)"
        strength = _strength(1.0, response)
        excluded = setting.responds
        return Finding(group.label, says, setting.flat, (), excluded, share, strength)
    if share < 0:
        says = f"more of it costs time: {percent(-share)} for {setting.what}"
        return Finding(group.label, says, setting.worse, (), setting.responds, share, 0.6)
    return Finding(group.label, f"{told}: not the largest part for certain", None, share=share)


def _responding(
    group: Group, setting: Setting, response: Response, told: str, *, is_step: bool
) -> Finding:
    margin = min(1.0, 0.6 + (response.share - _LIMITS) / 0.5)
    implied = None
    if is_step and setting.unit_bytes is not None and response.slope > 0:
        implied = setting.unit_bytes / response.slope
    return Finding(
        group=group.label,
        says=told,
        bottleneck=setting.responds,
        share=response.share,
        strength=_strength(margin, response),
        implied_bytes_per_s=implied,
    )


def _strength(margin: float, response: Response) -> float:
    if response.points < _LEAST_POINTS:
        return 0.8 * margin
    return margin if response.misfit <= 2 * NOISE else 0.7 * margin


def _best(values: Sequence[float], times: Sequence[float]) -> float | None:
    """Return the value after which more costs time: beyond noise, and more than ever again."""
    ordered = sorted(zip(values, times, strict=True))
    best_time, best = min((t, v) for v, t in ordered)
    last_time = ordered[-1][1]
    return best if last_time > best_time * DIFFERS else None


def _worse(group: Group, setting: Setting, best: float, response: Response) -> Finding:
    most, least = max(group.times), min(group.times)
    more = f"with more than {spelled(best)} of {setting.what}"
    says = f"{more} it takes up to {most / least:.1f} × as long"
    return Finding(group.label, says, setting.worse, share=response.share, strength=0.8)


def _of_choice(group: Group, setting: Setting) -> Finding:
    slow, fast = max(group.times), min(group.times)
    by = dict(zip(group.times, group.values, strict=True))
    if slow >= DIFFERS * fast:
        says = f"with {spelled(by[slow])} it takes {slow / fast:.1f} × as long as with "
        says += spelled(by[fast])
        strength = min(1.0, 0.6 + (slow / fast - DIFFERS) / 2)
        share = 1.0 - fast / slow
        return Finding(group.label, says, setting.responds, share=share, strength=strength)
    if slow <= (1 + 2 * NOISE) * fast:
        says = f"{setting.what} makes no difference"
        return Finding(group.label, says, None, excluded=setting.responds, strength=0.8)
    says = f"{setting.what} makes a difference of {percent(slow / fast - 1)}: too little to decide"
    return Finding(group.label, says, None)


def _of_format(group: Group) -> Finding:
    """Compare two formats: time that follows the bytes is bandwidth, time that does not is not."""
    sizes = [FORMAT_BYTES.get(str(v).lower().replace("-", "")) for v in group.values]
    known = [(b, t) for b, t in zip(sizes, group.times, strict=True) if b is not None]
    if len(known) < len(sizes):
        return Finding(group.label, "the bytes of these formats are not known", None)
    (most, slow), (least, fast) = max(known), min(known)
    odd = _slower_with_less(known)
    if odd is not None:
        says = f"fewer bytes take {odd:.1f} × as long: the kernels of the format do"
        return Finding(group.label, says, None, ("host", "compute"), "bandwidth", strength=0.8)
    if most < DIFFERS * least:
        return Finding(group.label, "these formats are of one size", None)
    share = (1.0 - fast / slow) / (1.0 - least / most)
    told = f"{percent(share)} of the time follows the bytes of the weights"
    if share >= _LIMITS:
        return Finding(group.label, told, "bandwidth", share=min(1.0, share), strength=0.8)
    if share < 2 * NOISE:
        return Finding(group.label, told, None, excluded="bandwidth", share=share, strength=0.8)
    return Finding(group.label, f"{told}: not the largest part for certain", None, share=share)


def _slower_with_less(known: Sequence[tuple[float, float]]) -> float | None:
    """Return how much longer a smaller format takes than a larger one, at the most; else None."""
    found = [
        slow / fast
        for more, fast in known
        for less, slow in known
        if more >= DIFFERS * less and slow > (1 + 2 * NOISE) * fast
    ]
    return max(found, default=None)
