"""The run over time as JSON."""

from __future__ import annotations

from dataclasses import asdict

from stallscope.analyzers.result import Change, Figure, State, Window


def window_fields(window: Window) -> dict[str, object]:
    """Return a window, with what its phases got."""
    return {
        "from_s": window.from_s,
        "to_s": window.to_s,
        "class": window.bottleneck,
        "load": window.load,
        "limit": window.limit,
        "preemptions_inferred": window.put_back,
        "phases": [
            {"phase": p.phase, "class": p.bottleneck, "share": p.share} for p in window.phases
        ],
    }


def change_fields(change: Change) -> dict[str, object]:
    """Return a change of what limits, with the figures that moved."""
    return {
        "at_s": change.at_s,
        "error_s": change.error_s,
        "phase": change.phase,
        "from": _state(change.before),
        "to": _state(change.after),
        "figures": [_figure(figure) for figure in change.figures],
    }


def _state(state: State) -> dict[str, object]:
    fields = asdict(state)
    return {"class": fields.pop("bottleneck"), **fields}


def _figure(figure: Figure) -> dict[str, object]:
    fields = asdict(figure)
    before, after = fields.pop("before"), fields.pop("after")
    return {**fields, "from": before, "to": after}
