"""The layers hold: every import, however it is spelled, is on the list of allowed edges."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = {
    "cli": "stallscope",
    "profiler": "stallscope.profiler",
    "runner": "stallscope.runner",
    "analyzers": "stallscope.analyzers",
    "reports": "stallscope.reports",
}
EVERYONE = ("stallscope.errors", "stallscope.__version__")
ALLOWED = {
    "profiler": ("stallscope.profiler",),
    "runner": (
        "stallscope.runner",
        "stallscope.profiler",
        "stallscope.analyzers.schedule",
        "stallscope.analyzers.static_schedule",
    ),
    "analyzers": (
        "stallscope.analyzers",
        "stallscope.profiler.evidence",
        "stallscope.profiler.spec",
        "stallscope.profiler.model_parts",
        "stallscope.profiler.capture",
        "stallscope.profiler.trial",
        "stallscope.profiler.wording",
    ),
    "reports": (
        "stallscope.reports",
        "stallscope.analyzers.result",
        "stallscope.analyzers.experiment.result",
        "stallscope.analyzers.explain.result",
        "stallscope.analyzers.thresholds",
        "stallscope.analyzers.plan",
        "stallscope.analyzers.cost.speculation",
        "stallscope.profiler.evidence",
        "stallscope.profiler.spec",
        "stallscope.profiler.wording",
    ),
    "cli": ("stallscope",),
}
# The judges are pure functions: no device, no framework, no file, no process.
IMPURE = {"torch", "pynvml", "nvtx", "pandas", "matplotlib", "psutil", "sqlite3", "subprocess"}
IMPURE |= {"socket", "rich", "typer", "transformers"}


def module_name(path: Path, folder: str) -> str:
    """Return the import name of a file of one of our folders."""
    parts = list(path.relative_to(ROOT / folder).with_suffix("").parts)
    return ".".join([FOLDERS[folder], *(parts[:-1] if parts[-1] == "__init__" else parts)])


MODULES = {
    module_name(path, folder): path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")
}


def absolute(module: str, package: str) -> str:
    """Resolve a module name with leading dots against the package it is used in."""
    name = module.lstrip(".")
    level = len(module) - len(name)
    if level == 0:
        return name
    base = package.split(".")[: len(package.split(".")) - level + 1]
    return ".".join([*base, name] if name else base)


def imported(tree: ast.AST, package: str) -> Iterator[tuple[int, str]]:
    """Yield line and name of everything that a file imports, at any depth."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            module = absolute("." * node.level + (node.module or ""), package)
            for alias in node.names:
                name = f"{module}.{alias.name}"
                is_known = name in MODULES or name in EVERYONE
                yield node.lineno, name if is_known else module
        elif isinstance(node, ast.Call) and is_dynamic_import(node.func):
            for argument in node.args[:1]:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    yield node.lineno, absolute(argument.value, package)


def is_dynamic_import(function: ast.expr) -> bool:
    """Say whether a call is importlib.import_module or __import__, by its last name."""
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name in ("import_module", "__import__")


def is_within(name: str, prefixes: tuple[str, ...]) -> bool:
    """Say whether a dotted name is one of the prefixes or below one."""
    return any(name == prefix or name.startswith(f"{prefix}.") for prefix in prefixes)


def violations(source: str, folder: str, package: str) -> list[str]:
    """Name each import of a file that its layer does not allow."""
    found = []
    for line, name in imported(ast.parse(source), package):
        top = name.split(".")[0]
        ours = top == "stallscope" or top in FOLDERS
        if ours and not is_within(name, ALLOWED[folder] + EVERYONE):
            found.append(f"line {line}: {folder} imports {name}")
        if folder == "analyzers" and top in IMPURE:
            found.append(f"line {line}: analyzers import {name}")
    return found


@pytest.mark.parametrize("module", sorted(MODULES))
def test_module_imports_only_what_its_layer_allows(module: str) -> None:
    path = MODULES[module]
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    assert violations(path.read_text(), path.relative_to(ROOT).parts[0], package) == []


@pytest.mark.parametrize(
    ("folder", "source"),
    [
        ("profiler", "import stallscope.analyzers.result"),
        ("profiler", "import stallscope"),
        ("profiler", "from stallscope import diagnose"),
        ("profiler", "import runner.engine"),
        ("analyzers", "from stallscope.profiler.capture_file import read_capture"),
        ("analyzers", "from stallscope.profiler import capture_file"),
        ("analyzers", "from ..profiler import capture_file"),
        ("analyzers", "from ..runner.batch import Chunk"),
        ("analyzers", "def late():\n    import torch.nn"),
        ("analyzers", "if TYPE_CHECKING:\n    from stallscope.reports import terminal"),
        ("runner", "from stallscope.analyzers.result import Diagnosis"),
        ("runner", "def late():\n    from stallscope import app"),
        ("reports", "from stallscope.analyzers.diagnose import diagnose"),
        ("reports", "from stallscope.profiler.capture import Capture"),
        ("reports", "importlib.import_module('stallscope.runner.run')"),
        ("reports", "import_module('..runner.run', __package__)"),
        ("reports", "__import__('stallscope.runner')"),
    ],
)
def test_planted_violation_is_found(folder: str, source: str) -> None:
    assert len(violations(source, folder, FOLDERS[folder])) == 1


@pytest.mark.parametrize(
    ("folder", "source"),
    [
        ("profiler", "from stallscope.errors import InputError"),
        ("profiler", "from stallscope import __version__, errors"),
        ("analyzers", "from .result import Diagnosis\nfrom . import thresholds"),
        ("analyzers", "from ..profiler.spec import ModelSpec"),
        ("runner", "from stallscope.analyzers.schedule import Scheduler\nimport torch"),
        ("reports", "from stallscope.analyzers.result import Diagnosis\nimport rich"),
        ("cli", "from stallscope.runner.run import run\nfrom stallscope import options"),
    ],
)
def test_allowed_import_is_let_through(folder: str, source: str) -> None:
    assert violations(source, folder, FOLDERS[folder]) == []


def test_every_folder_is_walked() -> None:
    assert {name.split(".")[1] for name in MODULES if "." in name} >= set(FOLDERS) - {"cli"}


def test_root_package_holds_only_the_version_and_lazy_names() -> None:
    tree = ast.parse((ROOT / "cli" / "__init__.py").read_text())
    imports = [ast.unparse(n) for n in tree.body if isinstance(n, ast.Import | ast.ImportFrom)]
    functions = [n.name for n in tree.body if isinstance(n, ast.FunctionDef)]
    names = [ast.unparse(n.targets[0]) for n in tree.body if isinstance(n, ast.Assign)]
    docstrings = [n for n in tree.body if isinstance(n, ast.Expr)]
    assert imports == ["from __future__ import annotations", "import importlib"]
    assert functions == ["__getattr__"]
    assert names == ["__version__", "_PUBLIC", "__all__"]
    assert len(docstrings) == 1
    assert len(tree.body) == 7
