"""The timeline: every step's duration by phase, with KV use and the queue below."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from stallscope.analyzers.result import StepPoint
from stallscope.reports.plot_marks import PHASE_MARKS, mark_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH_IN = 9.0
_LOG_ABOVE = 20.0  # longest over shortest step: beyond this a linear axis hides the short ones
_GAP = float("nan")  # an unknown value breaks the line instead of drawing zero


def draw_timeline(points: Sequence[StepPoint]) -> Figure:
    """Draw the panels that there is something to show in, over one time axis."""
    from matplotlib.figure import Figure

    panels = [_durations]
    if any(p.kv_used is not None for p in points):
        panels.append(_kv)
    if any(p.running is not None or p.waiting is not None for p in points):
        panels.append(_queue)
    figure = Figure(figsize=(WIDTH_IN, 1.4 + 1.45 * len(panels)), layout="constrained")
    heights = [2.0, *[1.0] * (len(panels) - 1)]
    grid = figure.subplots(
        len(panels), 1, sharex=True, squeeze=False, gridspec_kw={"height_ratios": heights}
    )
    axes: list[Axes] = list(grid[:, 0])
    for draw, ax in zip(panels, axes, strict=True):
        draw(ax, points)
        ax.grid(axis="y", color="#e5e5e5", linewidth=0.7)
        ax.set_axisbelow(True)
    axes[-1].set_xlabel("time since the first step (s)")
    figure.align_ylabels(axes)
    return figure


def _durations(ax: Axes, points: Sequence[StepPoint]) -> None:
    phases = [phase for phase in PHASE_MARKS if any(_phase(p) == phase for p in points)]
    for phase in phases:
        mark = mark_of(phase)
        chosen = [p for p in points if _phase(p) == phase]
        (line,) = ax.plot(
            [p.t_s for p in chosen],
            [p.duration_s * 1e3 for p in chosen],
            linestyle="none",
            marker=mark.marker,
            color=mark.color,
            markersize=_size(len(points)),
            markeredgewidth=0,
            alpha=0.85,
            label=phase,
        )
        line.set_gid(f"steps-{phase}")
    _duration_axis(ax, points)
    ax.set_title("Duration of each step")
    _legend(ax, len(phases))


def _duration_axis(ax: Axes, points: Sequence[StepPoint]) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    ax.set_ylabel("step (ms)")
    lengths = [p.duration_s for p in points if p.duration_s > 0]
    if not lengths or max(lengths) <= _LOG_ABOVE * min(lengths):
        ax.set_ylim(bottom=0)
        return
    ax.set_yscale("log")
    ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.yaxis.set_minor_formatter(NullFormatter())


def _kv(ax: Axes, points: Sequence[StepPoint]) -> None:
    used = [_GAP if p.kv_used is None else p.kv_used * 100 for p in points]
    edges = _edges(points)
    ax.stairs(used, edges, fill=True, color="#0072B2", alpha=0.15)
    line = ax.stairs(used, edges, baseline=None, color="#0072B2", linewidth=1.4)
    line.set_gid("kv-used")
    ax.set_ylim(0, 105)
    ax.set_yticks([0, 50, 100])
    ax.set_title("KV cache in use")
    ax.set_ylabel("of pool (%)")


def _queue(ax: Axes, points: Sequence[StepPoint]) -> None:
    from matplotlib.ticker import MaxNLocator

    for name, color, style in (("running", "#009E73", "-"), ("waiting", "#D55E00", "--")):
        values = [p.running if name == "running" else p.waiting for p in points]
        if all(value is None for value in values):
            continue
        counts = [_GAP if value is None else float(value) for value in values]
        line = ax.stairs(
            counts,
            _edges(points),
            baseline=None,
            color=color,
            linestyle=style,
            linewidth=1.4,
            label=name,
        )
        line.set_gid(name)
    ax.margins(y=0.15)
    ax.set_ylim(bottom=0)
    ax.yaxis.set_major_locator(MaxNLocator(nbins=4, integer=True, min_n_ticks=2))
    ax.set_title("Requests")
    ax.set_ylabel("requests")
    _legend(ax, 2)


def _edges(points: Sequence[StepPoint]) -> list[float]:
    """Each step's start and the last one's end: a value holds until the next step begins."""
    return [*(p.t_s for p in points), points[-1].t_s + points[-1].duration_s]


def _legend(ax: Axes, columns: int) -> None:
    ax.legend(
        loc="lower right",
        bbox_to_anchor=(1.0, 1.0),
        ncols=columns,
        borderaxespad=0.2,
        handletextpad=0.4,
        columnspacing=1.2,
    )


def _phase(point: StepPoint) -> str:
    return point.phase if point.phase in PHASE_MARKS else "other"


def _size(count: int) -> float:
    return 6.0 if count <= 300 else 3.5 if count <= 1500 else 2.5
