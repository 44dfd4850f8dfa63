"""At which stage an allocation was refused, by the frames of its traceback.

A pasted failure often holds nothing of the start before it. Names: vLLM's worker and model runner
(version 0 profiles through execute_model, so a frame of the start goes before one of serving) and
SGLang's model runner and scheduler.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from stallscope.profiler.server_log.lines import Line

_FRAME = re.compile(r'File "[^"]{1,400}", line \d{1,7}, in (\w{1,80})\s*$')
_BEGIN = "Traceback (most recent"
_MOST = 120  # frames of one traceback are fewer
_OF_A_START = {
    "load_model": "weights",
    "load_weights": "weights",
    "from_pretrained": "weights",
    "profile_run": "profile",
    "profile_cudagraph_memory": "profile",
    "determine_available_memory": "profile",
    "determine_num_available_blocks": "profile",
    "initialize_kv_cache": "kv",
    "initialize_kv_cache_tensors": "kv",
    "_allocate_kv_cache": "kv",
    "_init_cache_engine": "kv",
    "init_memory_pool": "kv",
    "capture_model": "graphs",
    "init_cuda_graphs": "graphs",
    "init_device_graphs": "graphs",
    "compile_or_warm_up_model": "warmup",
    "warm_up_model": "warmup",
}
_OF_SERVING = ("execute_model", "_process_engine_step", "event_loop_normal", "event_loop_overlap")
MARKS = (", line ", _BEGIN)


def stage_of_traceback(lines: Sequence[Line], place: int) -> str | None:
    """Name the stage that the innermost telling frame above a line is of; None without one."""
    serves = False
    for line in reversed(lines[max(0, place - _MOST) : place]):
        if _BEGIN in line.text:
            break
        frame = _FRAME.search(line.text)
        if frame is None:
            continue
        if frame[1] in _OF_A_START:
            return _OF_A_START[frame[1]]
        serves = serves or frame[1] in _OF_SERVING
    return "serving" if serves else None
