"""The tightest memory limit of both versions of control groups, on trees laid out by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from stallscope.profiler.cgroup import tightest_memory_limit

GIB = 2**30


@pytest.fixture
def mount(tmp_path: Path) -> Path:
    return tmp_path / "mount"


def groups(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "cgroup"
    file.write_text(text)
    return file


def lay_out(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(f"{text}\n")


def test_version_2_takes_the_lowest_limit_on_the_way_up(tmp_path: Path, mount: Path) -> None:
    lay_out(mount / "a", memory__max=str(2 * GIB), memory__current=str(GIB))
    lay_out(mount / "a", memory__stat=f"anon 5\ninactive_file {GIB // 4}")
    lay_out(mount / "a" / "b", memory__max=str(8 * GIB), memory__current="0", memory__stat="anon 0")
    limit = tightest_memory_limit(groups(tmp_path, "0::/a/b\n"), mount)
    assert limit is not None
    assert limit.limit_bytes == 2 * GIB
    assert limit.available_bytes() == GIB + GIB // 4  # 2 GiB - 1 GiB used, 1/4 GiB of it droppable


def test_version_1(tmp_path: Path, mount: Path) -> None:
    lay_out(
        mount / "memory" / "a",
        memory__limit_in_bytes=str(4 * GIB),
        memory__usage_in_bytes=str(3 * GIB),
        memory__stat="inactive_file 7\ntotal_inactive_file 100",
    )
    lay_out(mount / "memory", memory__limit_in_bytes="9223372036854771712")
    limit = tightest_memory_limit(groups(tmp_path, "8:pids:/\n4:cpu,memory:/a\n0::/\n"), mount)
    assert limit is not None
    assert limit.limit_bytes == 4 * GIB
    assert limit.available_bytes() == GIB + 100


def test_a_container_that_sees_its_own_group_as_the_root(tmp_path: Path, mount: Path) -> None:
    lay_out(mount, memory__max=str(GIB), memory__current="10", memory__stat="inactive_file 0")
    limit = tightest_memory_limit(groups(tmp_path, "0::/docker/0123\n"), mount)
    assert limit is not None
    assert limit.available_bytes() == GIB - 10


def test_no_limit_and_no_control_groups(tmp_path: Path, mount: Path) -> None:
    lay_out(mount, memory__max="max")
    assert tightest_memory_limit(groups(tmp_path, "0::/\n"), mount) is None
    assert tightest_memory_limit(tmp_path / "nowhere", mount) is None
