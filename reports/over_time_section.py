"""The run over time: a strip for every verdict that some window got, and where that changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from stallscope.analyzers.result import Change, Diagnosis, Figure, Window
from stallscope.reports import format as fmt
from stallscope.reports.blocks import Column, Item, Items, Section, Strip, Table
from stallscope.reports.verdict_sections import tells_load

_LIMITS = {
    "kv": "KV full",
    "seqs": "sequence cap",
    "tokens": "token budget",
    "prefill": "prompts",
    "batch": "static batch",
    "stalled": "stalled",
    "imbalance": "imbalance",
    "deferred": "deferred",
    "front": "in front",
}
_TOLD = 3  # figures of a change; JSON has all
_PHASES = ("prefill", "mixed", "decode")


def over_time(diagnosis: Diagnosis) -> Section:
    """Strips of the run's windows and of each phase's own, marks where what limits changes."""
    found = diagnosis.windows
    if len(found) < 2:
        return Section("", ())
    start, end = min(w.from_s for w in found), max(w.to_s for w in found)
    has_load = tells_load(diagnosis)
    named = [(_kind(w, has_load=has_load), w) for w in found]
    marks = [(c.at_s, c.at_s) for c in diagnosis.changes if c.phase == "all"]
    changes = (("changes", _strip(marks, start, end)),) if marks else ()
    rows = (*_strips(named, start, end), *changes, *_strips(_of_phases(found), start, end))
    span = f"{fmt.seconds(start)} to {fmt.seconds(end)}, {len(found)} windows"
    table = Table((Column(""), Column("")), rows, caption=span)
    return Section("Over time", (table, Items(tuple(map(_change, diagnosis.changes)))))


def _of_phases(windows: Sequence[Window]) -> Iterator[tuple[str, Window]]:
    """Yield what the steps of each phase got, where there are several phases."""
    for phase in _PHASES if len({p.phase for w in windows for p in w.phases}) > 1 else ():
        for window in windows:
            for own in window.phases:
                if own.phase == phase:
                    yield f"{phase} steps: {own.bottleneck}", window


def _strips(
    named: Iterable[tuple[str, Window]], start: float, end: float
) -> Iterator[tuple[str, Strip]]:
    spans: dict[str, list[tuple[float, float]]] = {}
    for kind, window in named:
        spans.setdefault(kind, []).append((window.from_s, window.to_s))
    for kind, found in spans.items():
        yield kind, _strip(found, start, end)


def _kind(window: Window, *, has_load: bool) -> str:
    """Name what a window got; its load only where something told it."""
    limit = f" ({_LIMITS[window.limit]})" if window.limit is not None else ""
    load = f", {window.load}" if has_load else ""
    return f"{window.bottleneck}{limit}{load}"


def _strip(spans: Sequence[tuple[float, float]], start: float, end: float) -> Strip:
    # Where a window lies on the line is drawing, not evidence: hence the division here.
    length = (end - start) or 1.0
    return Strip(tuple(((a - start) / length, (b - start) / length) for a, b in spans))


def _change(change: Change) -> Item:
    whose = "" if change.phase == "all" else f", {change.phase} steps"
    at = f"At {fmt.seconds(change.at_s)} (± {fmt.seconds(change.error_s)}){whose}"
    told = "; ".join(map(_figure, change.figures[:_TOLD]))
    return Item(f"{at}: {change.before.text} → {change.after.text}", (told,))


def _figure(figure: Figure) -> str:
    verb = "rose" if figure.after > figure.before else "fell"
    unit = "" if figure.unit == "requests" else figure.unit  # the words before say it
    old, new = (fmt.quantity(value, unit) for value in (figure.before, figure.after))
    return f"{figure.what} {verb} from {old} to {new} ({figure.provenance})"
