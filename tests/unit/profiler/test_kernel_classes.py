"""Real names of kernels fall into the class of the work that each does."""

from __future__ import annotations

import csv
import gzip
import json
from collections import Counter
from pathlib import Path

import pytest
from kernel_names import NAMES

from stallscope.profiler.trace.kernel_classes import kernel_class

NAMED = [(name.strip(), kind) for kind, lines in NAMES.items() for name in lines.split("\n")]
NAMED = [(name, kind) for name, kind in NAMED if name]


@pytest.mark.parametrize(("name", "kind"), NAMED)
def test_each_name_has_its_class(name: str, kind: str) -> None:
    assert kernel_class(name) == kind


def test_there_are_many_names() -> None:
    assert len(dict(NAMED)) == len(NAMED) >= 170


def kineto_time(path: Path) -> Counter[str]:
    """Sum kernel time by name from the file itself, not through the reader under test elsewhere."""
    with gzip.open(path) as file:
        content = json.load(file)
    events = content["traceEvents"] if isinstance(content, dict) else content
    time: Counter[str] = Counter()
    for event in events:
        if event.get("ph") == "X" and event.get("cat") == "kernel":
            time[event["name"]] += event["dur"]
    return time


def summary_time(path: Path) -> Counter[str]:
    time: Counter[str] = Counter()
    with path.open() as file:
        for row in csv.DictReader(file):
            time[row["Name"]] += int(row["Total Time (ns)"])
    return time


def sqlite_time(path: Path) -> Counter[str]:
    import sqlite3
    from contextlib import closing

    query = (
        "SELECT s.value, sum(k.end - k.start) FROM CUPTI_ACTIVITY_KIND_KERNEL k "
        "JOIN StringIds s ON s.id = k.demangledName GROUP BY 1"
    )
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)) as db:
        return Counter(dict(db.execute(query)))


def shares(time: Counter[str]) -> dict[str, float]:
    total = sum(time.values())
    by_class: Counter[str] = Counter()
    for name, t in time.items():
        by_class[kernel_class(name)] += t
    return {kind: t / total for kind, t in by_class.items()}


def test_little_kernel_time_of_real_traces_stays_unnamed(corpus: Path) -> None:
    files = {
        **{p: kineto_time(p) for p in sorted((corpus / "torch").glob("*.json.gz"))},
        **{p: summary_time(p) for p in sorted((corpus / "nsys_stats").glob("*_sum.csv"))},
        **{p: sqlite_time(p.resolve()) for p in sorted((corpus / "nsys").glob("*.sqlite"))},
    }
    unnamed = {p.name: shares(time).get("other", 0.0) for p, time in files.items() if time}
    assert len(unnamed) >= 13
    for name, share in unnamed.items():
        # AlexNet's convolutions go by FFT, which is no class of ours: 6 % of its kernel time.
        assert share < (0.07 if "alexnet" in name else 0.01), name


def test_classes_of_whole_traces_are_what_their_names_sum_to(corpus: Path) -> None:
    # Added up from the published summary: two rows of gemvx and one of gemmk1, in 179.07 ms.
    decode = shares(summary_time(corpus / "nsys_stats/dsocr_decode_cuda_gpu_kern_sum.csv"))
    assert decode["gemv"] == pytest.approx((61602133 + 26427871 + 748846) / 179072697, abs=1e-6)
    b200 = shares(kineto_time(corpus / "torch/tracelens__b200_eager.json.gz"))
    # 2119.5 + 22.0 µs of multimem and NCCL in 10,863 µs of kernels (memcpy is no kernel).
    assert b200["communication"] == pytest.approx(2141.5 / 10863, abs=0.002)
