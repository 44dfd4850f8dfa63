"""Several exports as the ranks of one run, each read and reduced in a process of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_nsys_refusals import export

from stallscope.errors import InputError
from stallscope.profiler.in_processes import in_processes
from stallscope.profiler.reading import read_inputs


def test_ranks_keep_the_order_given(tmp_path: Path) -> None:
    """Of 30, 40 and 50 kernels of 50 ns; none says which rank it is, so they count from 0."""
    paths = [export(tmp_path / f"{count}.sqlite", count) for count in (40, 30, 50)]
    capture = read_inputs(paths)
    assert [source.path for source in capture.sources] == [str(path) for path in paths]
    assert {(k.rank, k.launches, k.busy_ns) for k in capture.kernels} == {
        (0, 40, 2_000),
        (1, 30, 1_500),
        (2, 50, 2_500),
    }
    assert capture.meta["trace"]["ranks"] == [0, 1, 2]


def test_the_one_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    paths = [export(tmp_path / "good.sqlite", 4), tmp_path / "bad.sqlite"]
    paths[1].write_bytes(paths[0].read_bytes()[:5000])
    with pytest.raises(InputError, match=r"bad\.sqlite"):
        read_inputs(paths)


def name_of(path: Path) -> str:
    if path.name == "missing":
        raise InputError(f"{path} is not there")
    return path.name


def test_results_come_in_order_and_the_first_error_ends_it() -> None:
    assert in_processes(name_of, [Path("b"), Path("a"), Path("c")]) == ("b", "a", "c")
    assert in_processes(name_of, [Path("alone")]) == ("alone",)
    with pytest.raises(InputError, match="missing is not there"):
        in_processes(name_of, [Path("a"), Path("missing")])


def test_a_trace_that_holds_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"empty\.sqlite: nothing in it can be judged\. The table"):
        read_inputs([export(tmp_path / "empty.sqlite", 0)])
    both = [export(tmp_path / "none.sqlite", 0), export(tmp_path / "some.sqlite", 30)]
    assert [source.path for source in read_inputs(both).sources] == [str(path) for path in both]
