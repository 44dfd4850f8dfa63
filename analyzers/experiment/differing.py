"""Which settings tell runs apart."""

from __future__ import annotations

from collections.abc import Sequence

from stallscope.analyzers.experiment.figures import STATED
from stallscope.analyzers.experiment.result import Run
from stallscope.analyzers.experiment.settings import setting_of


def differing(runs: Sequence[Run]) -> tuple[str, ...]:
    """Name the settings that every run states and that are not the same in all."""
    names = [n for n in runs[0].settings if all(n in run.settings for run in runs)]
    return tuple(n for n in names if len({run.settings[n] for run in runs}) > 1)


def doubted(runs: Sequence[Run], names: Sequence[str]) -> tuple[str, ...]:
    """Name those of the settings that may be results: numbers under a name not known here."""
    return tuple(
        n
        for n in names
        if n not in STATED
        and setting_of(n) is None
        and all(isinstance(run.settings.get(n), float) for run in runs)
    )
