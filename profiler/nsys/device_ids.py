"""Devices of an export: which they are, across processes, and what the file says of each.

A process numbers its devices itself (CUDA_VISIBLE_DEVICES), so two processes' device 0 may be two
devices; TARGET_INFO_CUDA_DEVICE maps each process's numbers to the machine's.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stallscope.profiler.nsys.database import Database
from stallscope.profiler.nsys.growing import Coded, Columns
from stallscope.profiler.nsys.threads import process_number
from stallscope.profiler.trace.timeline import UNKNOWN, SmallInts, TracedDevice

# The table was TARGET_INFO_CUDA_GPU until early 2021.
_TABLES = (("TARGET_INFO_GPU", "id"), ("TARGET_INFO_CUDA_GPU", "deviceId"))
_FACTS = {
    "memory_bytes": ("totalMemory", "totalGlobalMemory", "memorySize"),
    "bandwidth_bytes_per_s": ("memoryBandwidth", "globalMemoryBandwidth"),
    "sm_count": ("smCount", "numMultiprocessors"),
}


class DeviceIds:
    """The machine's devices met so far, and which number each process gives them."""

    def __init__(self, database: Database) -> None:
        self._met: dict[int, int] = {}
        rows = database.rows("TARGET_INFO_CUDA_DEVICE", ("gpuId", "cudaId", "pid"))
        self._of_process = {(pid, cuda): gpu for gpu, cuda, pid in rows if isinstance(gpu, int)}

    def place(self, gpu: int) -> int:
        """Return the index of the machine's device."""
        return self._met.setdefault(gpu, len(self._met))

    def places(self, columns: Columns) -> SmallInts:
        """Return the index of the device of each row, −1 where the file does not say."""
        numbers = columns.get("deviceId")
        count = len(columns["start"])
        if numbers is None:
            return np.broadcast_to(np.int32(self.place(0)), count) if count else _none()
        if not count:
            return _none()
        coded: Coded | None = columns.get("globalPid")
        if not self._of_process or coded is None:
            return self._of_numbers(numbers, None)
        places = np.empty(count, dtype=np.int32)
        for code in np.unique(coded.code).tolist():
            pid = None if code == UNKNOWN else process_number(int(coded.values[code]))
            mine = coded.code == code
            places[mine] = self._of_numbers(numbers[mine], pid)
        return places

    def _of_numbers(self, numbers: SmallInts, pid: int | None) -> SmallInts:
        if numbers[0] != UNKNOWN and not np.any(numbers != numbers[0]):
            return np.broadcast_to(np.int32(self._one(int(numbers[0]), pid)), len(numbers))
        values, place = np.unique(numbers, return_inverse=True)
        of_values = [self._one(value, pid) for value in values.tolist()]
        return np.array(of_values, dtype=np.int32)[place]

    def _one(self, number: int, pid: int | None) -> int:
        if number == UNKNOWN:
            return UNKNOWN
        return self.place(self._of_process.get((pid, number), number))

    def devices(self, database: Database) -> tuple[TracedDevice, ...]:
        """Describe the devices met, in the order of their indices."""
        described = _described(database)
        return tuple(_device(gpu, described.get(gpu, {})) for gpu in self._met)


def _none() -> SmallInts:
    return np.empty(0, dtype=np.int32)


def _described(database: Database) -> dict[int, dict[str, Any]]:
    for name, key in _TABLES:
        table = database.tables.get(name)
        if table is not None:
            columns = list(table.places)
            rows = [dict(zip(columns, r, strict=True)) for r in database.rows(name, columns)]
            return {row[key]: row for row in rows if isinstance(row.get(key), int)}
    return {}


def _device(gpu: int, row: dict[str, Any]) -> TracedDevice:
    facts = {}
    for fact, columns in _FACTS.items():
        value = next((row[c] for c in columns if row.get(c)), None)
        if isinstance(value, int | float) and 0 < value < math.inf:
            facts[fact] = float(value)
    product = row.get("name")
    return TracedDevice(f"cuda:{gpu}", product if isinstance(product, str) else None, facts)
