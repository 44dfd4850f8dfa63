"""The sections that `trtllm-bench throughput` prints at its end, as its JSON report has them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from stallscope.profiler.benchmark.figures import Row, number
from stallscope.profiler.benchmark.printed import BEFORE, Block, plain

HEADER = re.compile(rf"^{BEFORE}(?:\[.{{1,60}}\] )?= PERFORMANCE OVERVIEW\s*$", re.MULTILINE)
_SECTION = re.compile(r"= ([A-Z][A-Z +]{3,60})")
_OVERVIEW = "PERFORMANCE OVERVIEW"
_SECTIONS = (
    *("PYTORCH BACKEND", "TENSORRT BACKEND", "ENGINE DETAILS", "REQUEST DETAILS"),
    *("WORLD + RUNTIME INFORMATION", _OVERVIEW),
)
_RULE = re.compile(r"[=-]{20,}|-- .{1,80}")
_FIGURE = re.compile(r"(?P<label>[A-Za-z\[][^:]{0,70}?)\s*:\s*(?P<value>\S.*)?")
_PERCENTILE = re.compile(r"\[(?P<of>TTFT|TPOT|Latency)\] (?P<figure>\w{2,8})", re.IGNORECASE)
_OF = {
    "ttft": ("streaming_metrics", "ttft_percentiles"),
    "tpot": ("streaming_metrics", "tpot_percentiles"),
    "latency": ("performance", "request_latency_percentiles_ms"),
}
_CALLED: dict[str, tuple[str, ...]] = {
    "model": ("engine", "model"),
    "dtype": ("engine", "dtype"),
    "kv cache dtype": ("engine", "kv_cache_dtype"),
    "quantization": ("engine", "quantization"),
    "tp size": ("world_info", "tp"),
    "pp size": ("world_info", "pp"),
    "max runtime batch size": ("world_info", "max_batch_size"),
    "max runtime tokens": ("world_info", "max_num_tokens"),
    "number of requests": ("request_info", "num_requests"),
    "number of concurrent requests": ("request_info", "avg_num_concurrent_requests"),
    "average input length (tokens)": ("request_info", "avg_input_length"),
    "average output length (tokens)": ("request_info", "avg_output_length"),
    "request throughput (req/sec)": ("performance", "request_throughput_req_s"),
    "total output throughput (tokens/sec)": ("performance", "system_output_throughput_tok_s"),
    "total token throughput (tokens/sec)": ("performance", "system_total_throughput_tok_s"),
    "total latency (ms)": ("performance", "total_latency_ms"),
    "average request latency (ms)": ("performance", "avg_request_latency_ms"),
    "average time-to-first-token [ttft] (ms)": ("streaming_metrics", "avg_ttft_ms"),
    "average time-per-output-token [tpot] (ms)": ("streaming_metrics", "avg_tpot_ms"),
}


def has_printed(text: str) -> bool:
    """Tell whether text holds such sections."""
    return HEADER.search(text) is not None


def blocks_of(lines: Iterable[str]) -> Iterator[Block]:
    """Yield a block for each overview, with the sections above it since the last one."""
    row: dict[str, Any] = {}
    places: list[int] = []
    is_inside = has_overview = False
    for place, line in enumerate(lines):
        text = plain(line)
        section = _SECTION.search(text)
        if section is not None:
            name = section.group(1).strip()
            if has_overview:
                yield _block(row, places)
                row, places, has_overview = {}, [], False
            is_inside = name in _SECTIONS
            has_overview = name == _OVERVIEW
        elif is_inside and text and _RULE.fullmatch(text) is None:
            is_inside = _take(text, row)
        if is_inside:
            places.append(place)
    if has_overview:
        yield _block(row, places)


def _take(text: str, row: dict[str, Any]) -> bool:
    """Take a line's figure, and tell whether it is one."""
    found = _FIGURE.fullmatch(text)
    if found is None:
        return False
    label, value = " ".join(found["label"].lower().split()), (found["value"] or "").split()
    percentile = _PERCENTILE.fullmatch(label)
    if percentile is not None:
        path: tuple[str, ...] | None = (*_OF[percentile["of"].lower()], percentile["figure"])
    else:
        path = _CALLED.get(label)
    if path is not None and value and value[0] not in ("None", "N/A"):
        inner = row
        for name in path[:-1]:
            inner = inner.setdefault(name, {})
        inner[path[-1]] = value[0]
    return True


def _block(row: Row, places: Iterable[int]) -> Block:
    """Name what the report has and the sections do not: how many devices, and that it is one."""
    world = row.get("world_info", {})
    devices = (number(world, "tp") or 1.0) * (number(world, "pp") or 1.0)
    whole = {
        **row,
        "world_info": {**world, "world_size": int(devices)},
        "request_info": {"printed": True, **row.get("request_info", {})},
    }
    return Block(whole, tuple(places))
