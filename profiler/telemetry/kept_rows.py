"""Rows of telemetry as they come: all of them, or of a very long file one of every so many."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from stallscope.profiler.telemetry.rows import Row, Telemetry

MOST_VALUES = 1_000_000  # they take up to 250 bytes each until they are judged: 250 MB
_OF_ROW = 3  # a row itself takes as much as so many values
_JUMP_NS = 1_000_000_000


class KeptRows:
    """Gathers rows; where they are more than `most` values, one of every k is drawn.

    k doubles whenever there are too many again. Which of the k is left to chance, since what
    repeats every k rows would else be seen always or never; the same file gives the same draw.
    """

    def __init__(self, most: int = MOST_VALUES) -> None:
        self._most, self._rng = most, random.Random(0)
        self._rows: list[Row] = []
        self._values, self._k, self._total = 0, 1, 0
        self._place, self._drawn = 0, 0  # in the stretch of k rows
        self._last_ns: dict[object, int] = {}
        self._jumps_back = False
        self._missing: dict[str, str] = {}

    def __bool__(self) -> bool:
        return bool(self._rows)

    def draws(self) -> bool:
        """Tell whether the next row is one to keep: others need not even be read."""
        self._total += 1
        if self._k == 1:
            return True
        if self._place == self._k:
            self._place, self._drawn = 0, self._rng.randrange(self._k)
        self._place += 1
        return self._place - 1 == self._drawn

    def append(self, row: Row) -> None:
        """Keep a row that was drawn."""
        self._rows.append(row)
        self._values += _OF_ROW + len(row.values)
        for name, word in row.missing.items():
            self._missing.setdefault(name, word)
        if row.t_ns is not None:
            self._follow(row.t_ns, (row.device, *row.values))
        if self._values > self._most:
            self._thin()

    def draw_from(self, rows: Iterable[Row]) -> None:
        """Keep of some rows those that are drawn."""
        for row in rows:
            if self.draws():
                self.append(row)

    def _follow(self, t_ns: int, key: object) -> None:
        """See whether a device's row of the same counters is older than the one before it."""
        if t_ns < self._last_ns.get(key, t_ns) - _JUMP_NS:
            self._jumps_back = True
        self._last_ns[key] = t_ns

    def _thin(self) -> None:
        """Draw one of two of what is kept."""
        pairs = zip(self._rows[::2], self._rows[1::2], strict=False)
        self._rows = [self._rng.choice(pair) for pair in pairs]
        self._values = sum(_OF_ROW + len(row.values) for row in self._rows)
        self._k *= 2
        self._place = self._k  # the next row begins a stretch

    def telemetry(self, tool: str, *, notes: Sequence[str] = (), **about: Any) -> Telemetry:
        """Return what was kept, with what else the file says."""
        return Telemetry(
            tool,
            tuple(self._rows),
            notes=(*notes, *self._note()),
            missing=self._missing,
            jumps_back=self._jumps_back,
            **about,
        )

    def _note(self) -> Iterator[str]:
        if self._k > 1:
            yield (
                f"Of {self._total:,} rows one in {self._k} was read, drawn by chance; to have "
                "every row of the time in question, cut the file to it."
            )
