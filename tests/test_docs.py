"""The documentation says what the code says."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path

import pytest
from typer.testing import CliRunner

from stallscope.analyzers.classes import CLASSES, LOADS, PARTS
from stallscope.analyzers.experiment.settings import SETTINGS
from stallscope.analyzers.findings import FINDINGS
from stallscope.analyzers.measures import MEASURES
from stallscope.analyzers.over_time.figures import FIGURES
from stallscope.analyzers.thresholds import Thresholds
from stallscope.app import application
from stallscope.profiler.capture_schema import TABLES
from stallscope.profiler.nvml import pcie, sampler
from stallscope.profiler.telemetry.rows import UNITS

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])


def page(name: str) -> str:
    return (ROOT / name).read_text()


def test_capture_tables_are_those_of_the_file() -> None:
    described = {
        name: re.split(r",\s+", columns)
        for name, columns in re.findall(r"^(\w+)\(([\w,\s]+)\)$", page("docs/capture.md"), re.M)
    }
    written = {t.name: [column.name for column in t.columns] for t in TABLES.values()}
    assert described == written | {"meta": ["key", "value_json"]}


def test_measure_names_are_the_closed_list() -> None:
    section = page("docs/metrics.md").split("## Measure names")[1]
    rows = re.findall(r"^\| `(\w+)` \| (\S+) \| (.+) \|$", section, re.M)
    assert rows == [(name, unit, meaning) for name, (unit, meaning) in MEASURES.items()]


def test_figures_of_a_change_are_the_closed_list() -> None:
    section = page("docs/metrics.md").split("## Figures of a change")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| (\S+) \| (.+) \|$", section, re.M)
    assert rows == [(name, unit, what) for name, (unit, what) in FIGURES.items()]


def test_gpu_counters_are_those_that_are_sampled() -> None:
    section = page("docs/metrics.md").split("## GPU counters")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| (\S+) \| .+ \|$", section, re.M)
    assert rows == [*sampler.UNITS.items(), *pcie.UNITS.items()]


def test_counters_of_telemetry_are_those_that_are_read() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\S+) \| .+ \|$", page("docs/telemetry.md"), re.M)
    more = {name: unit for name, unit in UNITS.items() if name not in sampler.UNITS}
    assert dict(rows) == {name: unit for name, unit in more.items() if name not in pcie.UNITS}


def test_every_threshold_is_explained_with_its_default() -> None:
    text = page("docs/verdict.md")
    defaults = asdict(Thresholds())
    assert [name for name in defaults if f"`{name}`" not in text] == []
    stated = re.findall(r"`(\w+)` \(([−\d.]+)( %)?\)", text)
    for name, number, percent in stated:
        value = float(number.replace("−", "-")) / (100 if percent else 1)
        assert (name, value) == (name, defaults[name])
    assert len(stated) >= 12


@pytest.mark.parametrize("name", [*CLASSES, *LOADS])
def test_every_class_and_load_is_explained(name: str) -> None:
    assert re.search(rf"^\| .*`{name}`.* \|", page("docs/verdict.md"), re.M)


def test_budget_parts_are_explained_in_order() -> None:
    section = page("docs/verdict.md").split("## The step budget")[1].split("\n## ")[0]
    assert tuple(re.findall(r"^\| (\w+) \|", section, re.M))[1:] == PARTS


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    for link in re.findall(r"\]\(([^)#\s]+)", path.read_text()):
        assert link.startswith("https://") or (path.parent / link).exists(), link


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_commands_shown_have_the_options_shown(path: Path) -> None:
    lines = re.findall(r"stallscope (run|attach|diagnose|plan|doctor) ([^`\n#]*)", path.read_text())
    for command, rest in lines:
        offered = CliRunner().invoke(application(), [command, "--help"]).stdout
        for option in re.findall(r"(?<!\S)--?[a-z][\w-]*", rest.split(" -- ")[0]):
            assert re.search(rf"{option}\b", offered), f"{command} {option}"


def test_readme_opens_with_the_two_commands() -> None:
    block = page("README.md").split("```")[1]
    assert re.findall(r"^make \w+", block, re.M) == ["make demo", "make test"]


def test_settings_that_compare_knows() -> None:
    names = re.findall(r"^\| (`.+?`) \| (\w+) \| .+ \|$", page("docs/compare.md"), re.M)
    told = [(tuple(re.findall(r"`(\w+)`", cell)), kind) for cell, kind in names]
    assert told == [(row.names, row.kind) for row in SETTINGS]


def test_every_finding_is_explained_and_none_else() -> None:
    text = page("docs/findings.md")
    assert sorted(re.findall(r"^### `([\w-]+)`$", text, re.M)) == sorted(FINDINGS)
    for entry in text.split("\n### ")[1:]:
        told = re.findall(r"^- ([\w ]+): \S", entry.split("\n## ")[0], re.M)
        assert told == ["Means", "Computed", "Lies when", "Do", "Check"], entry[:30]


def test_what_findings_name_is_known() -> None:
    named = set(re.findall(r"`([a-z]+(?:_[a-z0-9]+)+)`", page("docs/findings.md")))
    settings = {"max_num_seqs", "max_num_batched_tokens"}
    assert named <= set(MEASURES) | set(asdict(Thresholds())) | settings


def test_links_within_a_page_lead_to_a_heading() -> None:
    text = page("docs/findings.md")
    for anchor in re.findall(r"\]\(#([\w-]+)\)", text):
        assert f"### `{anchor}`" in text
