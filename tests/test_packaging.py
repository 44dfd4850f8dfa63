"""What is in the tree is in the wheel, importing the package is light, and the version is one."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import stallscope

ROOT = Path(__file__).resolve().parents[1]
CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text())
SETUPTOOLS = CONFIG["tool"]["setuptools"]
FOLDERS = {
    "stallscope": "cli",
    "stallscope.profiler": "profiler",
    "stallscope.runner": "runner",
    "stallscope.analyzers": "analyzers",
    "stallscope.reports": "reports",
}
TOP_LEVEL = ["profiler", "runner", "analyzers", "reports", "tests"]
HEAVY = ["matplotlib", "numpy", "nvtx", "pandas", "psutil", "pynvml", "rich", "torch", "typer"]


def shipped_files() -> set[str]:
    """Return every file of our folders by the path it has when installed."""
    return {
        "/".join([*package.split("."), *path.relative_to(ROOT / folder).parts])
        for package, folder in FOLDERS.items()
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


@pytest.mark.parametrize("name", ["pyproject.toml", *TOP_LEVEL])
def test_name_stands_at_the_top_level(name: str) -> None:
    assert (ROOT / name).exists()


def test_folders_are_mapped_to_packages() -> None:
    assert SETUPTOOLS["package-dir"] == FOLDERS


def test_every_package_folder_is_listed() -> None:
    found = {
        ".".join([package, *init.parent.relative_to(ROOT / folder).parts])
        for package, folder in FOLDERS.items()
        for init in (ROOT / folder).rglob("__init__.py")
    }
    assert found == set(SETUPTOOLS["packages"])


@pytest.mark.slow
def test_wheel_holds_every_file(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()  # a copy, since setuptools leaves build/ beside what it builds
    for folder in FOLDERS.values():
        shutil.copytree(ROOT / folder, source / folder, ignore=shutil.ignore_patterns("*.pyc"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "-w", str(tmp_path)]
    subprocess.run([sys.executable, "-m", "pip", "wheel", *options, str(source)], check=True)
    (wheel,) = tmp_path.glob("stallscope-*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert shipped_files() <= names
    outside = {name for name in names if not name.startswith(("stallscope/", "stallscope-"))}
    assert outside == set()


@pytest.mark.parametrize(
    ("module", "heavy"),
    [
        ("stallscope", HEAVY),
        ("stallscope.errors", HEAVY),
        ("stallscope.app", [name for name in HEAVY if name != "typer"]),
    ],
)
def test_import_loads_nothing_heavy(module: str, heavy: list[str]) -> None:
    program = f"import sys, {module}; print(sorted(set({heavy}) & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.stderr, done.returncode) == ("[]\n", "", 0)


def test_version_is_the_same_everywhere() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text()
    versions = re.findall(r"^## \[(\d+\.\d+\.\d+)\]", changelog, flags=re.MULTILINE)
    assert stallscope.__version__ == versions[0] == CONFIG["project"]["version"]


def test_every_direct_dependency_is_pinned() -> None:
    pinned = re.findall(r"^([\w-]+)==", (ROOT / "constraints.txt").read_text(), flags=re.MULTILINE)
    wanted = CONFIG["project"]["dependencies"] + [
        requirement
        for extra in CONFIG["project"]["optional-dependencies"].values()
        for requirement in extra
    ]
    names = {re.split(r"[\[<>=;]", requirement)[0] for requirement in wanted}
    assert names - {"stallscope"} <= set(pinned)
