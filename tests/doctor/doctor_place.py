"""The real command, in surroundings made for it: PATH, libraries, packages, /proc and /sys."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stallscope.profiler.doctor.surroundings import Surroundings

HERE = Path(__file__).parent
SCRIPT = str(Path(sys.executable).with_name("stallscope"))
# Importing the real ones takes seconds; only one test needs that.
LIGHT = {
    "torch/__init__.py": (
        "from types import SimpleNamespace as space\n"
        "__version__ = '2.6.0+cpu'\nversion = space(cuda=None, hip=None)\n"
        "cuda = space(is_available=lambda: False)\n"
    ),
    "transformers/__init__.py": "AutoModelForCausalLM = None\n",
    "transformers-4.57.0.dist-info/METADATA": "Name: transformers\nVersion: 4.57.0\n",
    "matplotlib/__init__.py": "__version__ = '3.9.0'\n",
    "matplotlib/figure.py": "",
}


@dataclass
class Place:
    """A folder with a root, a PATH and packages of its own, in which doctor is run."""

    folder: Path
    environ: dict[str, str] = field(default_factory=dict)

    @property
    def root(self) -> Path:
        return self.folder / "root"

    @property
    def bin(self) -> Path:
        return self.folder / "bin"

    @property
    def packages(self) -> Path:
        return self.folder / "packages"

    def program(self, name: str, text: str) -> Path:
        """Put a shell script on PATH."""
        path = write(self.bin / name, f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return path

    def files(self, files: Mapping[str, str]) -> None:
        """Write files below the root."""
        for name, text in files.items():
            write(self.root / name.lstrip("/"), text)

    def install(self, files: Mapping[str, str]) -> None:
        """Write files into a folder that comes before site-packages."""
        for name, text in files.items():
            write(self.packages / name, text)

    @property
    def whole_environ(self) -> dict[str, str]:
        """The environment of the command: nothing but what is said here."""
        environ = {
            "PATH": str(self.bin),
            "PYTHONPATH": str(self.packages),
            "HOME": str(self.folder),
            "LANG": "C.UTF-8",
        }
        return environ | self.environ

    @property
    def surroundings(self) -> Surroundings:
        """The same place for one check alone."""
        return Surroundings(self.root, self.whole_environ)

    def run(self, *options: str) -> subprocess.CompletedProcess[str]:
        """Run the command; the root is not passed where an option names one."""
        rooted = [] if "--root" in options else ["--root", str(self.root)]
        return subprocess.run(
            [SCRIPT, "doctor", *rooted, *options],
            capture_output=True,
            text=True,
            env=self.whole_environ,
            cwd=self.folder,
            timeout=120,
        )

    def checks(self, *options: str) -> dict[str, dict[str, Any]]:
        """Run the command and return its checks by name."""
        done = self.run("--format", "json", *options)
        assert (done.returncode, done.stderr) == (0, "")
        checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
        for check in checks.values():  # whatever is not there, the report says how to get it
            assert (check["status"] == "ok") == (check["fix"] is None) == (check["lost"] is None)
            assert check["reason"]
        return checks


def write(path: Path, text: str) -> Path:
    """Write a file and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def is_running(pid: int) -> bool:
    """Say whether a process is there and not just waiting to be collected."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
