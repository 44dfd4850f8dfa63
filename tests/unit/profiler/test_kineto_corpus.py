"""Real PyTorch profiler traces against a plain pass over their JSON with exact decimals."""

from __future__ import annotations

import gzip
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from stallscope.profiler.kineto.reader import read_kineto
from stallscope.profiler.trace.marks import StepMark, step_mark
from stallscope.profiler.trace.timeline import Trace

FILES = (
    "hta__alexnet_inference_like.json.gz",
    "hta__cupti_profiler.json.gz",
    "hta__mtia_inference_rank0.json.gz",
    "hta__ns_resolution_rank0.pt.trace.json.gz",
    "hta__rank_non_gpu.json.gz",
    "tracelens__b200_eager.json.gz",
    "tracelens__h100_Qwen1.5-0.5B-Chat.json.gz",
    "tracelens__mi210_gpu_only_trace.json.gz",
    "tracelens__sglang_Qwen3-8B_decode.json.gz",
    "tracelens__sglang_Qwen3-8B_decode_capture_bs32.json.gz",
    "tracelens__torch_compile_triton.json.gz",
)
MTIA_KERNELS = ("pe_exe", "remote", "merge")
RUNTIMES = ("cuda_runtime", "cuda_driver", "mtia_runtime")


def plain(path: Path) -> list[dict[str, Any]]:
    """Return the complete events, times as decimals of microseconds."""
    with gzip.open(path) as file:
        events = json.load(file, parse_float=Decimal)["traceEvents"]
    return [e for e in events if e["ph"] == "X"]


def is_kernel(event: dict[str, Any]) -> bool:
    if event["cat"] == "mtia_ccp_events":
        return event["name"] in MTIA_KERNELS
    return bool(event["cat"] == "kernel")


@pytest.fixture(scope="module", params=FILES)
def both(request: pytest.FixtureRequest, corpus: Path) -> tuple[list[dict[str, Any]], Trace]:
    path = corpus / "torch" / request.param
    return plain(path), read_kineto(path)


def ns(us: Decimal | int) -> int:
    return int((us * 1000).to_integral_value()) if isinstance(us, Decimal) else us * 1000


def test_every_file_of_the_corpus_is_named_here(corpus: Path) -> None:
    assert sorted(FILES) == sorted(path.name for path in (corpus / "torch").iterdir())


def test_kernels_are_all_there_at_their_times(both: tuple[list[dict[str, Any]], Trace]) -> None:
    events, trace = both
    rows = [e for e in events if is_kernel(e)]
    kernels = trace.kernels
    assert len(kernels) == len(rows)
    assert int((kernels.end_ns - kernels.start_ns).sum()) == sum(ns(e["dur"]) for e in rows)
    if rows:
        fine = trace.facts["resolution_ns"] / 2 if trace.facts["resolution_ns"] == 250 else 0
        first, last = min(ns(e["ts"]) for e in rows), max(ns(e["ts"] + e["dur"]) for e in rows)
        assert int(kernels.start_ns.min()) == pytest.approx(first, rel=0, abs=fine)
        assert int(kernels.end_ns.max()) == pytest.approx(last, rel=0, abs=fine)


def test_launches_are_the_calls_with_the_same_id(
    both: tuple[list[dict[str, Any]], Trace],
) -> None:
    events, trace = both
    calls: dict[int, int] = {}
    for call in (e for e in events if e["cat"] in RUNTIMES and "correlation" in e["args"]):
        key, start = call["args"]["correlation"], ns(call["ts"])
        calls[key] = min(start, calls.get(key, start))
    fine = trace.facts["resolution_ns"] if trace.facts["resolution_ns"] == 250 else 0
    rows = [e for e in events if is_kernel(e)]
    expected = [calls.get(e["args"].get("correlation", 0), -1) for e in rows]
    assert trace.kernels.launch_ns.tolist() == pytest.approx(expected, rel=0, abs=fine)


def test_host_rows_are_all_there(both: tuple[list[dict[str, Any]], Trace]) -> None:
    events, trace = both
    counts = {
        kind: sum(e["cat"] in kinds for e in events)
        for kind, kinds in {
            "calls": RUNTIMES,
            "marks": ("user_annotation",),
            "operators": ("cpu_op",),
        }.items()
    }
    assert {kind: len(getattr(trace, kind)) for kind in counts} == counts
    assert trace.facts.get("python_calls", 0) == sum(e["cat"] == "python_function" for e in events)
    assert not [f for f in trace.findings if f.what in ("cut", "unreadable")]


def test_copies_are_all_there(both: tuple[list[dict[str, Any]], Trace]) -> None:
    events, trace = both
    rows = [
        e
        for e in events
        if e["cat"] in ("gpu_memcpy", "gpu_memset") or e.get("name") == "dma_request"
    ]
    assert len(trace.copies) == len(rows)
    moved = sum(e["args"].get("bytes", e["args"].get("size", 0)) for e in rows)
    assert int(trace.copies.bytes.sum()) == moved


def test_what_single_files_are_known_to_hold(corpus: Path) -> None:
    folder = corpus / "torch"
    b200 = read_kineto(folder / "tracelens__b200_eager.json.gz")
    assert (b200.rank, b200.facts["world_size"], b200.devices[0].product) == (0, 8, "NVIDIA B200")
    assert b200.unix_ns == 1767189312000000000
    [step] = [m for m in map(_mark, b200.texts) if m is not None]
    assert (step.phase, step.prefill_requests, step.prefill_tokens) == ("prefill", 1, 888)

    sglang = read_kineto(folder / "tracelens__sglang_Qwen3-8B_decode.json.gz")
    assert int((sglang.kernels.graph == 0).sum()) == 544  # of one hipGraphLaunch
    assert {m.engine for m in map(_mark, sglang.texts) if m is not None} == {"vllm", "sglang"}

    ranged = read_kineto(folder / "hta__cupti_profiler.json.gz")
    assert not ranged.traces_kernels
    assert [f.what for f in ranged.findings] == ["kernels_not_timed"]

    assert not read_kineto(folder / "hta__rank_non_gpu.json.gz").traces_kernels
    mtia = read_kineto(folder / "hta__mtia_inference_rank0.json.gz")
    assert [d.label for d in mtia.devices] == ["mtia:17"]


def _mark(text: str) -> StepMark | None:
    return step_mark(text, None)
