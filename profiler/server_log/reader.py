"""Read an inference server's log as a capture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path

from stallscope.errors import InputError
from stallscope.profiler.broken_gzip import how_broken
from stallscope.profiler.capture import Capture, EngineSample, Event, Source
from stallscope.profiler.sequence_cap import Cap, seen_cap
from stallscope.profiler.server_log import (
    client_block,
    devices,
    failures,
    left_out,
    llama_cpp,
    platform,
    sglang,
    sglang_memory,
    tensorrt,
    vllm,
)
from stallscope.profiler.server_log.clock import LogClock
from stallscope.profiler.server_log.facts import Facts, read_facts
from stallscope.profiler.server_log.iterations import steps
from stallscope.profiler.server_log.lines import Line, all_lines, read_log
from stallscope.profiler.server_log.readings import periodic_samples
from stallscope.profiler.server_log.repeats import Repeats
from stallscope.profiler.server_log.sought import sought
from stallscope.profiler.spec import Subject
from stallscope.profiler.wall_clock import WallClock

ENGINES = {
    "vllm": sought(
        r"Avg (?:prompt|generation) throughput: |Running: \d+ reqs|vLLM API server|vllm: error: "
        r"|Iteration\(\d+\): \d+ context|LLM engine \(v|\(APIServer pid="
        r"|(?:INFO|WARNING|ERROR) \d\d-\d\d \d\d:\d\d:\d\d \[?\w{1,60}\.py:\d+\]",
        *("(APIServer pid=", ".py:", "Running: ", "Avg ", "Iteration(", "vLLM API server"),
        *("LLM engine (v", "vllm: error: "),
        before=90,
    ),
    "sglang": sought(
        r"(?:Prefill|Decode) batch[.,] ?#|new fill batch\. #seq|#running-req: \d|ServerArgs\("
        r"|sglang\.launch_server",
        *(" batch", "#running-req: ", "ServerArgs(", "sglang.launch_server"),
        before=8,
    ),
    "tensorrt-llm": sought(
        r"\[TRT-LLM\]|\[TensorRT-LLM\]|\"Active Request Count\":|\biter = \d+, global_rank",
        *("[TRT-LLM]", "[TensorRT-LLM]", '"Active Request Count":', "iter = "),
    ),
    "llama.cpp": sought(
        r"\beval time\s*=\s*[\d.]+ ms /|llama_model_load", "eval time", "llama_model_load"
    ),
}
_TELLING = 10_000  # lines that tell whose log it is
# What a line must hold to be kept, as plain text: far faster than the patterns themselves.
_MARKS = (
    *("Running: ", "Iteration(", "PreemptionMode", "#running", "#retracted", "iter = "),
    *("Active Request Count", "eval time", "version", "Namespace(", "weights", "Initializing a"),
    *("KV cache", "blocks: ", "concurrency for", "max_total_num_tokens", "max_num_", "fired up"),
    *("vllm: error", "LLM engine (v", "ServerArgs("),
    *("sglang.launch_server", "new fill batch", "batch, #", "batch. #"),
    client_block.MARK,
    *sglang_memory.MARKS,
    *failures.MARKS,
    *platform.MARKS,
    *devices.MARKS,
)


def has_log(lines: Sequence[str]) -> bool:
    """Tell whether an inference server's log begins in these lines."""
    return any(pattern.search(line) for line in lines for pattern in ENGINES.values())


def read_server_log(path: str | PathLike[str]) -> Capture:
    """Read a log of vLLM, SGLang, TensorRT-LLM or llama.cpp, whole or an excerpt.

    Time starts at the first stamp and is whole seconds; lines of one second are spread over it.
    Gauges and counters become engine samples (`kv_used_fraction` where no bytes are stated), passes
    that were logged one by one steps; the subject holds what the log states. Raises InputError
    where nothing of an engine's is found.
    """
    path = Path(path)
    clock, repeats = LogClock(), Repeats()
    lines = read_log(path, _MARKS, clock, repeats)
    engine = _engine(lines)
    failed = list(failures.failures(lines, how_broken(path)))
    if engine is None and not any(event.kind == "oom" for event in failed):
        raise InputError(
            f"{path} holds no line of an inference server's; give its log from the start"
        )
    facts = read_facts(lines)
    samples = _without_dead_gauge(_samples(engine, lines))
    passes = [*vllm.iterations(lines), *tensorrt.iterations(lines)]
    cap, seen = _cap(engine, lines, facts, samples)
    wall = clock.wall()
    timings, timed = llama_cpp.read_timings(lines)
    samples += timed
    printed = client_block.NONE
    if any(client_block.MARK in line.text for line in lines):
        printed = client_block.printed_in(all_lines(path), str(path))
    events = [
        *vllm.preemptions(lines),
        *sglang.preemptions(lines),
        *failed,
        *platform.platform_notes(lines),
        *(() if seen is None else _noted([seen.sentence], **seen.facts())),
        *_noted([llama_cpp.sentence(timings), *printed.sentences, repeats.sentence()]),
        *_noted([*left_out.impossible(lines), *left_out.of_others(engine, lines)]),
    ]
    return Capture(
        subject=replace(
            _subject(engine, facts, cap), device=devices.device_of(x.text for x in lines)
        ),
        steps=steps(passes) if passes else (),
        engine_samples=tuple(sorted(samples, key=lambda s: (s.t_ns, s.engine))),
        events=tuple(sorted([*events, *_unstated(samples)], key=lambda e: e.t_ns)),
        sources=(Source(0, f"{engine or 'program'} log", str(path), _clock_name(wall), 0, 0),),
        meta={
            "ended": {},
            "clock": None if wall is None else wall.meta(),
            "server_log": {**facts.names, **facts.numbers},
            **printed.meta,
        },
    )


def _clock_name(wall: WallClock | None) -> str:
    is_unix = wall is not None and wall.has_zone
    return "unix time, in seconds" if is_unix else "server's local time, in seconds"


def _engine(lines: Sequence[Line]) -> str | None:
    """Name the engine whose lines are most, of the first ones if these tell."""
    head = lines[:_TELLING]
    counts = {n: sum(p.search(x.text) is not None for x in head) for n, p in ENGINES.items()}
    if not any(counts.values()) and len(lines) > len(head):
        return _engine(lines[_TELLING:])
    best = max(counts, key=lambda name: counts[name])
    return best if counts[best] else None


def _samples(engine: str | None, lines: Sequence[Line]) -> list[EngineSample]:
    if engine == "sglang":
        return sglang.samples(sglang.batches(lines))
    if engine == "tensorrt-llm":
        return periodic_samples(list(tensorrt.readings(lines)), 1.0)
    period_s = vllm.PERIOD_S["0" if vllm.is_version_0(lines) else "1"]
    return periodic_samples(list(vllm.readings(lines)), period_s)


def _without_dead_gauge(samples: list[EngineSample]) -> list[EngineSample]:
    """Leave out KV use that reads zero throughout while requests ran and waited."""
    busy = any(s.name == "waiting" and s.value for s in samples)
    used = [s.value for s in samples if s.name == "kv_used_fraction"]
    if not busy or any(used):
        return samples
    return [s for s in samples if s.name != "kv_used_fraction"]


def _cap(
    engine: str | None, lines: Sequence[Line], facts: Facts, samples: Sequence[EngineSample]
) -> tuple[int | None, Cap | None]:
    stated = facts.whole("max_num_seqs") or tensorrt.sequence_cap(lines)
    if stated is not None:
        return stated, None
    seen = seen_cap(samples, engine)
    return (None, None) if seen is None else (seen.running, seen)


def _subject(engine: str | None, facts: Facts, cap: int | None) -> Subject:
    chunked = {"True": True, "False": False}.get(facts.names.get("chunked_prefill", ""))
    name = facts.names.get("model")
    return Subject(
        num_devices=facts.devices,
        dtype=facts.dtype,
        kv_dtype=facts.kv_dtype,
        engine=engine,
        workload=f"serving {name}" if name else None,
        max_num_seqs=cap,
        max_num_batched_tokens=facts.whole("max_num_batched_tokens"),
        chunked_prefill=chunked,
        kv_budget_bytes=facts.whole("kv_bytes"),
        block_size=facts.whole("block_size"),
    )


def _noted(sentences: Sequence[str | None], **about: object) -> Iterator[Event]:
    """Yield sentences as checks; `infers` names the field of the subject that one is about."""
    return (Event(0, "check", None, {"sentence": s, **about}) for s in sentences if s)


def _unstated(samples: Sequence[EngineSample]) -> Iterator[Event]:
    names = {s.name for s in samples}
    if "running" in names and "kv_used_fraction" not in names:
        data = {
            "what": "KV cache use",
            "reason": "the log states none, or zero throughout while requests waited",
            "how": "scrape the server's /metrics, or log with a version that prints it",
        }
        yield Event(0, "not_observable", None, data)
