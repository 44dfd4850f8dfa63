"""What is fuzzed."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fuzz_damage import damaged

from stallscope.profiler.capture import Capture


@dataclass(frozen=True, slots=True)
class Parser:
    """A reader, the files that it is tried on, and the damage that these take.

    Of damaged files at least `least_read` must still be read: else only refusals are tested; at
    least `least_refused` must not: else nothing is damaged.
    """

    read: Callable[[Path], Capture]
    seeds: Callable[[], list[bytes]]
    damage: Callable[[bytes, random.Random], bytes] = damaged
    least_read: float = 0.2
    least_refused: float = 0.02
