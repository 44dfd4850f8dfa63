"""The limits of the control group this process runs in, version 1 or 2."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class _Names:
    """What a version calls its files, and its statistic of file cache that can be dropped."""

    limit: str
    usage: str
    inactive: str


_V1 = _Names("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
_V2 = _Names("memory.max", "memory.current", "inactive_file")


@dataclass(frozen=True, slots=True)
class MemoryLimit:
    """A group's limit, and where its use can be read."""

    limit_bytes: int
    folder: Path
    names: _Names

    def available_bytes(self) -> int:
        """Return what is left, counting cached file pages that the kernel would drop."""
        usage, stat = (file.read_bytes() for file in self.files)
        return self.left_bytes(usage, stat)

    @property
    def files(self) -> tuple[Path, Path]:
        """Return the files of the group's use and of what it is made of."""
        return self.folder / self.names.usage, self.folder / "memory.stat"

    def left_bytes(self, usage: bytes, stat: bytes) -> int:
        """Return what is left by the texts of `files`."""
        _, found, rest = (b"\n" + stat).partition(f"\n{self.names.inactive} ".encode())
        inactive = int(rest.split(None, 1)[0]) if found else 0
        return max(0, self.limit_bytes - int(usage) + inactive)


def tightest_memory_limit(
    groups: Path = Path("/proc/self/cgroup"), mount: Path = Path("/sys/fs/cgroup")
) -> MemoryLimit | None:
    """Return the lowest limit on the way from this process's group up to the root, if any."""
    limits = [
        limit
        for folder, is_v2 in _folders(groups, mount, "memory")
        if (limit := _limit(folder, _V2 if is_v2 else _V1))
    ]
    return min(limits, key=lambda limit: limit.limit_bytes, default=None)


def tightest_cpu_quota(
    groups: Path = Path("/proc/self/cgroup"), mount: Path = Path("/sys/fs/cgroup")
) -> float | None:
    """Return the lowest quota, in cores, on the way from this process's group up, if any."""
    quotas = (_quota(folder, is_v2) for folder, is_v2 in _folders(groups, mount, "cpu"))
    return min((quota for quota in quotas if quota is not None), default=None)


def _folders(groups: Path, mount: Path, controller: str) -> Iterator[tuple[Path, bool]]:
    try:
        lines = groups.read_text().splitlines()
    except OSError:  # not Linux
        return
    for line in lines:
        _, controllers, group = line.split(":", 2)
        if controllers == "":
            root, is_v2 = mount, True
        elif controller in controllers.split(","):
            root, is_v2 = mount / controller, False
        else:
            continue
        # A container may see its own group mounted as the root and yet read the host's path here;
        # the walk then meets folders that are not there, and ends at the root all the same.
        folder = root / group.lstrip("/")
        while folder != root:
            yield folder, is_v2
            folder = folder.parent
        yield root, is_v2


def _limit(folder: Path, names: _Names) -> MemoryLimit | None:
    try:
        text = (folder / names.limit).read_text().strip()
        return None if text == "max" else MemoryLimit(int(text), folder, names)
    except (OSError, ValueError):
        return None


def _quota(folder: Path, is_v2: bool) -> float | None:
    try:
        if is_v2:
            quota, period = (folder / "cpu.max").read_text().split()
        else:
            quota = (folder / "cpu.cfs_quota_us").read_text()
            period = (folder / "cpu.cfs_period_us").read_text()
        return float(quota) / float(period) if float(quota) > 0 else None
    except (OSError, ValueError, ZeroDivisionError):  # not there, or "max"
        return None
