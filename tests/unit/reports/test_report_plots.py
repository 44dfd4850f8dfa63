"""The pictures, read back as XML."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from stallscope.analyzers.result import Diagnosis, Roofline, RooflinePoint, Series, StepPoint
from stallscope.errors import MissingDependency
from stallscope.reports.plots import save_plots

SVG = "{http://www.w3.org/2000/svg}"


def _with(diagnosis: Diagnosis, series: Series) -> Diagnosis:
    return dataclasses.replace(diagnosis, series=series)


def _groups(path: Path) -> dict[str, ElementTree.Element]:
    root = ElementTree.parse(path).getroot()
    assert root.tag == f"{SVG}svg"
    return {group.attrib["id"]: group for group in root.iter(f"{SVG}g") if "id" in group.attrib}


def _marks(group: ElementTree.Element) -> int:
    return len(list(group.iter(f"{SVG}use")))


def test_timeline_has_a_mark_for_every_step(busy: Diagnosis, tmp_path: Path) -> None:
    assert save_plots(busy, tmp_path, "report") == {
        "Timeline of steps": "report-timeline.svg",
        "Roofline": "report-roofline.svg",
    }
    groups = _groups(tmp_path / "report-timeline.svg")
    marks = {name: _marks(group) for name, group in groups.items() if name.startswith("steps-")}
    assert marks == {"steps-prefill": 1, "steps-decode": 3, "steps-mixed": 1}
    assert {"kv-used", "running", "waiting"} <= set(groups)


def test_roofline_has_the_roof_and_every_point(busy: Diagnosis, tmp_path: Path) -> None:
    save_plots(busy, tmp_path, "report")
    groups = _groups(tmp_path / "report-roofline.svg")
    marks = {name: _marks(group) for name, group in groups.items() if name.startswith("point-")}
    assert marks == {"point-prefill": 1, "point-decode": 1}
    assert "roof" in groups
    # matplotlib writes each drawn text as a comment above its outlines.
    text = (tmp_path / "report-roofline.svg").read_text(encoding="utf-8")
    assert "<!-- ridge 15.0 FLOP/B -->" in text  # 300e9 / 20e9
    assert "<!-- decode: 2.90 FLOP/B, 18.0 GFLOP/s -->" in text


def test_the_same_diagnosis_gives_the_same_bytes(busy: Diagnosis, tmp_path: Path) -> None:
    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        save_plots(busy, folder, "r")
    for name in ("r-timeline.svg", "r-roofline.svg"):
        first = (tmp_path / "a" / name).read_bytes()
        assert first == (tmp_path / "b" / name).read_bytes()
        assert b"<dc:date>" not in first


def test_the_users_matplotlib_settings_do_not_matter(busy: Diagnosis, tmp_path: Path) -> None:
    import matplotlib

    save_plots(busy, tmp_path, "a")
    with matplotlib.rc_context({"axes.facecolor": "black", "font.size": 30}):
        save_plots(busy, tmp_path, "b")
        assert matplotlib.rcParams["font.size"] == 30
    same = [(tmp_path / f"{stem}-timeline.svg").read_bytes() for stem in "ab"]
    assert same[0] == same[1]


def test_nothing_known_nothing_drawn(blind: Diagnosis, tmp_path: Path) -> None:
    assert save_plots(blind, tmp_path, "report") == {}
    assert list(tmp_path.iterdir()) == []


def test_panels_without_a_value_are_left_out(blind: Diagnosis, tmp_path: Path) -> None:
    steps = (
        StepPoint(0.0, 0.5, "prefill", None, None, None),
        StepPoint(0.5, 0.0, "strange", None, None, None),  # no length: kept off a log axis
        StepPoint(0.5, 0.001, "decode", None, None, None),
    )
    names = save_plots(_with(blind, Series(steps)), tmp_path, "r")
    assert list(names) == ["Timeline of steps"]
    groups = _groups(tmp_path / "r-timeline.svg")
    assert {"steps-prefill", "steps-decode", "steps-other"} <= set(groups)
    assert not {"kv-used", "running", "waiting", "axes_2"} & set(groups)


def test_points_that_have_no_place_on_log_axes_are_left_out(
    blind: Diagnosis, tmp_path: Path
) -> None:
    points = (
        RooflinePoint("decode $x$", 1.0, 1e9),  # dollars are not mathematics here
        RooflinePoint("zero", 0.0, 1e9),
        RooflinePoint("nan", 1.0, float("nan")),
    )
    roof = Roofline(300e9, 20e9, "achievable", points)
    assert list(save_plots(_with(blind, Series((), roof)), tmp_path, "r")) == ["Roofline"]
    groups = _groups(tmp_path / "r-roofline.svg")
    assert [name for name in groups if name.startswith("point-")] == ["point-decode $x$"]
    flat = Roofline(0.0, 20e9, "achievable", points)
    assert save_plots(_with(blind, Series((), flat)), tmp_path, "flat") == {}


def test_without_matplotlib_the_extra_is_named(
    busy: Diagnosis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingDependency, match=r"stallscope\[plots\]"):
        save_plots(busy, tmp_path, "report")
