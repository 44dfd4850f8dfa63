"""Which settings tell runs apart."""

from __future__ import annotations

from stallscope.analyzers.experiment.result import Run


def differing(runs: tuple[Run, ...]) -> tuple[str, ...]:
    """Name the settings that every run states and that are not the same in all."""
    names = [n for n in runs[0].settings if all(n in run.settings for run in runs)]
    return tuple(n for n in names if len({run.settings[n] for run in runs}) > 1)
