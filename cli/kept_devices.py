"""Device files that are kept for the user, one a device: what calibrations were saved for it."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from stallscope.errors import InputError
from stallscope.output import note

if TYPE_CHECKING:
    from stallscope.profiler.spec import DeviceSpec


def folder() -> Path:
    """Return $XDG_DATA_HOME/stallscope/devices, by default ~/.local/share/stallscope/devices.

    A setting that is no absolute path does not count (XDG Base Directory Specification).
    """
    given = Path(os.environ.get("XDG_DATA_HOME", ""))
    try:
        base = given if given.is_absolute() else Path.home() / ".local" / "share"
    except RuntimeError:
        raise InputError("no home folder is known; set XDG_DATA_HOME to a folder") from None
    return base / "stallscope" / "devices"


def short_name(name: str) -> str:
    """Return a device's name in letters that files and shells take, the table's own where it is."""
    from stallscope.profiler.known_devices import table_name

    plain = re.sub(r"\((?:r|tm)\)", " ", name, flags=re.IGNORECASE)
    return re.sub(r"[^a-z0-9]+", "-", (table_name(name) or plain).lower()).strip("-")


def find_kept(name: str) -> DeviceSpec | None:
    """Return what is kept of a device; None where nothing is, or, with a line, nothing sound."""
    from stallscope.profiler.devices import load_device_file

    try:
        path = folder() / f"{short_name(name)}.json"
        if not path.exists():
            return None
        device = load_device_file(path)
    except (InputError, OSError) as error:
        note(f"{error}; it is left out: save it again with --save-calibration, or remove it")
        return None
    if short_name(device.name) != short_name(name):
        note(f"{path} is of {device.name}, not of {name}; it is left out: remove it")
        return None
    return device


def keep_device(device: DeviceSpec) -> Path:
    """Keep a device as a file that --gpu finds by its name."""
    from stallscope.files import write_text
    from stallscope.profiler.device_products import device_text

    path = folder() / f"{short_name(device.name)}.json"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path.parent}: cannot be made: {error.strerror}") from error
    write_text(path, device_text(device))
    note(f"kept in {path}: plan and diagnose use it with --gpu {short_name(device.name)}")
    return path
