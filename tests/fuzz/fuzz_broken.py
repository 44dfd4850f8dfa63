"""Readers that do what none may, for the test of the driver."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Never

from fuzz_parser import Parser

from stallscope.errors import InputError
from stallscope.profiler.capture import Capture, DeviceSample


def _raises(path: Path) -> Never:
    raise ZeroDivisionError(path.name)


def _hangs(path: Path) -> Never:
    while True:
        pass


def _dies(path: Path) -> Never:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def _takes_memory(path: Path) -> Capture:
    return Capture(meta={"size": len(bytearray(600 << 20))})


def _says_nothing(path: Path) -> Never:
    raise InputError("")


def _reads_what_is_no_number(path: Path) -> Capture:
    sample = DeviceSample(0, "gpu0", "power_mw", float("nan"), "mW")
    return Capture(device_samples=(sample,))


def _on_damage(read: Callable[[Path], Capture]) -> Parser:
    """Return a parser that does so with damaged files only: sound ones are read before."""

    def careful(path: Path) -> Capture:
        return read(path) if path.read_bytes() == b"damaged" else Capture()

    return Parser(careful, lambda: [b"sound"], lambda content, rng: b"damaged")


BROKEN = {
    "raises": _on_damage(_raises),
    "hangs": _on_damage(_hangs),
    "dies": _on_damage(_dies),
    "takes memory": _on_damage(_takes_memory),
    "says nothing": _on_damage(_says_nothing),
    "no number": _on_damage(_reads_what_is_no_number),
}
