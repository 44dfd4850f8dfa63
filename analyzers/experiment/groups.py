"""Runs that differ in nothing but the setting: the only ones that a response can be read from."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace

from stallscope.analyzers.experiment.result import Group, Run, Value
from stallscope.analyzers.experiment.settings import setting_of
from stallscope.profiler.wording import figure


def groups_of(runs: Sequence[Run], setting: str, figure: str) -> tuple[Group, ...]:
    """Group runs that state the setting and have the figure; a group has two values or more.

    A setting that only some runs state does not set them apart; nor does one that proves the same
    class and changed in step with it.
    """
    usable = [run for run in runs if setting in run.settings and figure in run.figures]
    common = [
        name
        for name in (usable[0].settings if usable else {})
        if name != setting and all(name in run.settings for run in usable)
    ]
    apart = [name for name in common if len({run.settings[name] for run in usable}) > 1]
    together = tuple(name for name in apart if _goes_along(usable, setting, name))
    apart = [name for name in apart if name not in together]
    found: dict[tuple[Value, ...], list[Run]] = {}
    for run in usable:
        found.setdefault(tuple(run.settings[name] for name in apart), []).append(run)
    groups = (_group(apart, key, rows, setting, figure) for key, rows in found.items())
    return tuple(
        replace(group, together=together) for group in groups if len(set(group.values)) > 1
    )


def _goes_along(runs: Sequence[Run], setting: str, other: str) -> bool:
    """Tell whether another setting of the same class had one value for each of this one's."""
    one, two = setting_of(setting), setting_of(other)
    if one is None or two is None or one.responds is None or one.responds != two.responds:
        return False
    pairs = {(run.settings[setting], run.settings[other]) for run in runs}
    return len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})


def _group(
    apart: Sequence[str], key: Sequence[Value], rows: Sequence[Run], setting: str, figure: str
) -> Group:
    """Make a group; runs repeated with the same value count once, by their median."""
    by_value: dict[Value, list[float]] = {}
    for run in rows:
        by_value.setdefault(run.settings[setting], []).append(run.figures[figure].value)
    shown = tuple(statistics.median(values) for values in by_value.values())
    is_rate = rows[0].figures[figure].unit != "s"
    return Group(
        label=", ".join(f"{n} {spelled(v)}" for n, v in zip(apart, key, strict=True)),
        values=tuple(by_value),
        times=tuple(1.0 / value if is_rate else value for value in shown),
        shown=shown,
    )


def spelled(value: Value) -> str:
    """Write a setting's value for a sentence."""
    if isinstance(value, str):
        return value
    return figure(value, 6)
