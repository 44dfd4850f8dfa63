"""Pictures of a diagnosis as SVG files; the same diagnosis always gives the same bytes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from stallscope.analyzers.result import Diagnosis
from stallscope.errors import MissingDependency

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TIMELINE = "Timeline of steps"
ROOFLINE = "Roofline"
# Fixed ids and outlined text: no difference between two runs or between two readers' fonts.
_STYLE = {
    "svg.hashsalt": "stallscope",
    "svg.fonttype": "path",
    "font.size": 10.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#666666",
    "axes.titlelocation": "left",
    "axes.titlesize": 11.0,
    "axes.labelcolor": "#222222",
    "xtick.color": "#444444",
    "ytick.color": "#444444",
    "legend.frameon": False,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
}
_METADATA = {"Date": None, "Creator": "stallscope"}


def save_plots(diagnosis: Diagnosis, folder: Path, stem: str) -> dict[str, str]:
    """Write what can be drawn into `folder`; return titles and file names.

    Raises MissingDependency without matplotlib.
    """
    written: dict[str, str] = {}
    with _style():
        for title, name, figure in _figures(diagnosis, stem):
            figure.savefig(folder / name, format="svg", metadata=_METADATA)
            written[title] = name
    return written


def _figures(diagnosis: Diagnosis, stem: str) -> Iterator[tuple[str, str, Figure]]:
    from stallscope.reports.roofline_plot import draw_roofline, is_drawable
    from stallscope.reports.timeline_plot import draw_timeline

    series = diagnosis.series
    if series.timeline:
        yield TIMELINE, f"{stem}-timeline.svg", draw_timeline(series.timeline)
    if series.roofline is not None and is_drawable(series.roofline):
        yield ROOFLINE, f"{stem}-roofline.svg", draw_roofline(series.roofline)


@contextmanager
def _style() -> Iterator[None]:
    try:
        from matplotlib import style
    except ImportError as error:
        raise MissingDependency("matplotlib", extra="plots") from error
    with style.context(["default", _STYLE]):
        yield
