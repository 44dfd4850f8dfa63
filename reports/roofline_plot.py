"""The roofline: what the device allows at each arithmetic intensity, and where the run stands."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from stallscope.analyzers.result import Roofline, RooflinePoint
from stallscope.reports import format as fmt
from stallscope.reports.plot_marks import mark_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SIZE_IN = (9.0, 4.8)
_ROOF_COLOR = "#222222"
_HEADROOM = 0.22  # room above the roof for its figures, of the axis' height below
_NAME_WIDTH, _NAME_HEIGHT = 0.15, 0.055  # room for a point's name, of the axes


def is_drawable(roofline: Roofline) -> bool:
    """Say whether the roof has a place on logarithmic axes."""
    return all(
        math.isfinite(peak) and peak > 0
        for peak in (roofline.peak_flops, roofline.peak_bytes_per_s)
    )


def draw_roofline(roofline: Roofline) -> Figure:
    """Draw roof, ridge and points; a point without a place on logarithmic axes is left out."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=_SIZE_IN, layout="constrained")
    ax = figure.subplots()
    points = tuple(p for p in roofline.points if _is_positive(p))
    _axes(ax, roofline, points)
    _roof(ax, roofline)
    for point in points:
        _point(ax, point)
    _names(ax, points)
    ax.set_title(f"Roofline ({roofline.kind} peaks)")
    if points:
        legend = figure.legend(loc="outside lower center", ncols=min(2, len(points)))
        for text in legend.get_texts():
            text.set_parse_math(False)
    return figure


def _is_positive(point: RooflinePoint) -> bool:
    values = (point.intensity, point.flops_per_s)
    return all(math.isfinite(value) and value > 0 for value in values)


def _axes(ax: Axes, roofline: Roofline, points: Sequence[RooflinePoint]) -> None:
    from matplotlib.ticker import EngFormatter, FuncFormatter, NullFormatter

    intensities = [roofline.ridge, *(p.intensity for p in points)]
    rates = [roofline.peak_flops, *(p.flops_per_s for p in points)]
    left, right = min(intensities) / 10, max(intensities) * 10
    low, high = min(*rates, roofline.peak_bytes_per_s * left) / 3, max(rates)
    top = high * (high / low) ** _HEADROOM
    ax.set(xscale="log", yscale="log", xlim=(left, right), ylim=(low, top))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    ax.yaxis.set_major_formatter(EngFormatter(unit="FLOP/s"))
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_minor_formatter(NullFormatter())
    ax.set_xlabel("arithmetic intensity (FLOP per byte)")
    ax.grid(which="major", color="#e5e5e5", linewidth=0.7)
    ax.set_axisbelow(True)


def _roof(ax: Axes, roofline: Roofline) -> None:
    left, right = ax.get_xlim()
    ridge, peak = roofline.ridge, roofline.peak_flops
    (roof,) = ax.plot(
        [left, ridge, right],
        [roofline.peak_bytes_per_s * left, peak, peak],
        color=_ROOF_COLOR,
        linewidth=1.8,
    )
    roof.set_gid("roof")
    ax.plot([ridge, ridge], [ax.get_ylim()[0], peak], color="#888888", linestyle=":", linewidth=1.2)
    for text, x, align in (
        (f"memory: {fmt.si(roofline.peak_bytes_per_s, 'B/s')}", 0.01, "left"),
        (f"compute: {fmt.si(peak, 'FLOP/s')}", 0.99, "right"),
    ):
        _note(ax, text, (x, 0.97), align)
    ax.annotate(
        f"ridge {fmt.intensity(ridge)} FLOP/B",
        (ridge, peak),
        xytext=(0, 8),
        textcoords="offset points",
        ha="center",
        va="bottom",
        color="#444444",
    )


def _note(ax: Axes, text: str, place: tuple[float, float], align: str) -> None:
    ax.text(*place, text, transform=ax.transAxes, ha=align, va="top", color=_ROOF_COLOR)


def _point(ax: Axes, point: RooflinePoint) -> None:
    mark = mark_of(point.label)
    rate = fmt.si(point.flops_per_s, "FLOP/s")
    (dot,) = ax.plot(
        [point.intensity],
        [point.flops_per_s],
        marker=mark.marker,
        color=mark.color,
        markersize=9,
        markeredgecolor="white",
        linestyle="none",
        zorder=5,
        label=f"{point.label}: {fmt.intensity(point.intensity)} FLOP/B, {rate}",
    )
    dot.set_gid(f"point-{point.label}")


def _names(ax: Axes, points: Sequence[RooflinePoint]) -> None:
    """Write each point's name to its right, below the names of close points above it."""
    to_axes = ax.transScale + ax.transLimits
    place = {p: to_axes.transform((p.intensity, p.flops_per_s)) for p in points}
    placed: list[tuple[float, float]] = []
    for point in sorted(place, key=lambda p: -float(place[p][1])):
        x, y = (float(value) for value in place[point])
        for other_x, other_y in placed:
            if abs(x - other_x) < _NAME_WIDTH and other_y - y < _NAME_HEIGHT:
                y = other_y - _NAME_HEIGHT
        placed.append((x, y))
        ax.text(
            x + 0.015,
            y,
            point.label,
            transform=ax.transAxes,
            va="center",
            color=mark_of(point.label).color,
            parse_math=False,
        )
