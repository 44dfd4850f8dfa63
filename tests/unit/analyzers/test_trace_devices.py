"""A trace of a run that lacks some of its devices cannot say what the run waits for."""

from __future__ import annotations

from typing import Any

import pytest

from stallscope.analyzers.diagnose import diagnose
from stallscope.profiler.capture import Capture, KernelSummary, Source
from stallscope.profiler.spec import Subject

MS = 1_000_000


def traced(seen: int, stated: int, **changed: Any) -> Capture:
    """Return the kernels of some devices, of a run on so many."""
    kind, sources = changed.get("kind", "nsys"), changed.get("sources", 1)
    return Capture(
        subject=Subject(num_devices=stated),
        kernels=tuple(
            KernelSummary(f"cuda:{i}", 0, "other", "gemm", "k", 100, 50 * MS, None)
            for i in range(seen)
        ),
        sources=tuple(Source(i, kind, f"{i}.sqlite", "trace", 0, 0) for i in range(sources)),
        meta={"ended": {}, "trace": {"of_one_rank": changed.get("of_one_rank", False)}},
    )


@pytest.mark.parametrize(
    ("capture", "is_lacking"),
    [
        (traced(1, 8), True),
        (traced(7, 8), True),
        (traced(8, 8), False),
        (traced(8, 1), False),  # nobody stated more
        (traced(0, 8), False),  # without a kernel something else is said
        (traced(1, 8, of_one_rank=True), False),
        (traced(1, 8, of_one_rank=None), False),  # a capture of an earlier version
        (traced(1, 8, kind="kineto"), False),  # always of one process
        (traced(1, 8, sources=2), False),
    ],
)
def test_fewer_devices_than_the_run_has(capture: Capture, is_lacking: bool) -> None:
    verdict = diagnose(capture).verdict
    assert (verdict.bottleneck == "profiler") is is_lacking
    if is_lacking:
        assert "--trace-fork-before-exec=true" in verdict.sentence
        assert verdict.confidence <= 0.9
