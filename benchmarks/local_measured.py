"""Runs of the built-in engine on this machine in one process, each step's work and time."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from stallscope.analyzers.schedule import Scheduler, SchedulerConfig
from stallscope.profiler.capture import Step
from stallscope.profiler.capture_file import read_capture
from stallscope.profiler.device_products import device_text
from stallscope.profiler.host_fields import other_cores
from stallscope.profiler.models import load_model
from stallscope.profiler.recorder import Recorder
from stallscope.profiler.spec import DeviceSpec, ModelSpec
from stallscope.runner.run import prepare_process
from stallscope.runner.workload import ClosedLoop, RequestSize

# Between the two presets in size, and with shapes that neither has.
MIDDLE = ModelSpec("middle-66m", 640, 1728, 10, 10, 5, 64, 16000, 4096)
MODELS = (load_model("tiny-26m"), MIDDLE, load_model("llama-125m"))
DTYPES = ("fp32", "bf16")
LOADS = ((1, 64), (1, 768), (4, 256), (8, 128), (16, 256))  # requests at once, prompt tokens
OUTPUT_TOKENS = 24
ROUNDS = 2
BLOCK = 16


@dataclass(frozen=True, slots=True)
class Key:
    """Which run."""

    model: str
    dtype: str
    requests: int
    tokens: int


def measure(target: Path) -> None:
    """Probe the machine, run everything twice, probe it again, and write it all down.

    As `run` does: a machine that others share is another one a minute later.
    """
    prepare_process()
    from stallscope.runner.machine_probe import probe_machine

    first = probe_machine("cpu", DTYPES)
    runs = [run for _ in range(ROUNDS) for run in _runs()]
    last = probe_machine("cpu", DTYPES)
    target.write_text(
        json.dumps(
            {
                "at": time.strftime("%H:%M:%S"),
                "device": json.loads(device_text(_between(first.device, last.device))),
                "probe_s": [first.seconds, last.seconds],
                "probe_other_cores": max(first.other_cores or 0.0, last.other_cores or 0.0),
                "runs": runs,
            }
        )
    )


def _between(first: DeviceSpec, last: DeviceSpec) -> DeviceSpec:
    """Describe a machine by the mean of what it reached before and after its runs."""

    def mean(a: float, b: float) -> float:
        return (a + b) / 2

    pairs = zip(first.products, last.products, strict=True)
    return replace(
        first,
        peak_flops={d: mean(flops, last.peak_flops[d]) for d, flops in first.peak_flops.items()},
        memory_bytes_per_s=mean(first.memory_bytes_per_s, last.memory_bytes_per_s),
        products=tuple(replace(a, time_s=mean(a.time_s, b.time_s)) for a, b in pairs),
        launch_s=mean(first.launch_s or 0.0, last.launch_s or 0.0),
    )


def _runs() -> Iterator[dict[str, object]]:
    from stallscope.runner.decoder import build_decoder

    for spec in MODELS:
        for dtype in DTYPES:
            decoder = build_decoder(spec, dtype=dtype)
            for requests, tokens in LOADS:
                key, others = Key(spec.name, dtype, requests, tokens), other_cores()
                steps = _steps(spec, decoder, key)
                yield {
                    **asdict(key),
                    "other_cores": others(),
                    "steps": [step._asdict() for step in steps],
                }


def _steps(spec: ModelSpec, decoder: object, key: Key) -> tuple[Step, ...]:
    """Serve one load as `run` does, recorded as `run` is; return its steps."""
    from stallscope.runner.engine import Engine, Generation
    from stallscope.runner.engine_log import EngineLog
    from stallscope.runner.executor import TorchExecutor
    from stallscope.runner.kv_pool import KvPool

    blocks = key.requests * -(-(key.tokens + OUTPUT_TOKENS) // BLOCK)
    config = SchedulerConfig(16, 2048, blocks, BLOCK)
    pool = KvPool(spec, blocks, BLOCK, key.dtype, "cpu")
    executor = TorchExecutor(decoder, pool)  # type: ignore[arg-type]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.sqlite"
        with Recorder(path, device="cpu") as recorder:
            for warmup in (True, False):
                engine = Engine(Scheduler(config), executor, generation=Generation(spec.vocab_size))
                log = EngineLog(recorder, config, token_bytes=pool.bytes_per_token, warmup=warmup)
                size = RequestSize(key.tokens, 4 if warmup else OUTPUT_TOKENS)
                engine.run(ClosedLoop([size] * key.requests, key.requests), log)
        return tuple(step for step in read_capture(path).steps if not step.warmup)
