"""Runs of the built-in engine on this machine in one process, each step's work and time."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median

from stallscope.analyzers.schedule import Scheduler, SchedulerConfig
from stallscope.profiler.capture import Step
from stallscope.profiler.capture_file import read_capture
from stallscope.profiler.device_products import device_text
from stallscope.profiler.host_fields import other_cores
from stallscope.profiler.models import load_model
from stallscope.profiler.recorder import Recorder
from stallscope.profiler.spec import DeviceSpec, ModelSpec, ProductTime
from stallscope.runner.run import prepare_process
from stallscope.runner.workload import ClosedLoop, RequestSize

# Between the two presets in size, and with shapes that neither has.
MIDDLE = ModelSpec("middle-66m", 640, 1728, 10, 10, 5, 64, 16000, 4096)
MODELS = (load_model("tiny-26m"), MIDDLE, load_model("llama-125m"))
DTYPES = ("fp32", "bf16")
LOADS = ((1, 64), (1, 768), (4, 256), (8, 128), (16, 256))  # requests at once, prompt tokens
OUTPUT_TOKENS = 24
WARMUP = RequestSize(64, 4)
ROUNDS = (
    4  # the same load takes 15 % more or less two minutes later, on a machine that others share
)
BLOCK = 16


@dataclass(frozen=True, slots=True)
class Key:
    """Which run."""

    model: str
    dtype: str
    requests: int
    tokens: int


def measure(target: Path) -> None:
    """Probe the machine and run everything, in turns that begin and end with a probe.

    As `run` does: a machine that others share is another one a minute later.
    """
    prepare_process()
    from stallscope.runner.machine_probe import probe_machine

    probes, runs = [probe_machine("cpu", DTYPES)], []
    for _ in range(ROUNDS):
        runs.extend(_runs())
        probes.append(probe_machine("cpu", DTYPES))
    target.write_text(
        json.dumps(
            {
                "at": time.strftime("%H:%M:%S"),
                "device": json.loads(device_text(_usual([p.device for p in probes]))),
                "probe_s": [p.seconds for p in probes],
                "probe_other_cores": max(p.other_cores or 0.0 for p in probes),
                "runs": runs,
            }
        )
    )


def _usual(found: Sequence[DeviceSpec]) -> DeviceSpec:
    """Describe a machine by the median of what it reached each time: a step's time is one too.

    A probe leaves out what takes too long, as it found it: a product may be of some probes only.
    """
    first, same = found[0], dict[ProductTime, list[float]]()
    for product in (product for device in found for product in device.products):
        same.setdefault(replace(product, time_s=0.0), []).append(product.time_s)
    return replace(
        first,
        peak_flops={d: median(one.peak_flops[d] for one in found) for d in first.peak_flops},
        memory_bytes_per_s=median(one.memory_bytes_per_s for one in found),
        products=tuple(replace(p, time_s=median(times_s)) for p, times_s in same.items()),
        launch_s=median(one.launch_s or 0.0 for one in found),
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
                size = WARMUP if warmup else RequestSize(key.tokens, OUTPUT_TOKENS)
                count = 1 if warmup else key.requests
                engine.run(ClosedLoop([size] * count, count), log)
        return tuple(step for step in read_capture(path).steps if not step.warmup)
