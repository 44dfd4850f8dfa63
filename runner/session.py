"""One instrumented run from the first probe to the last."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass

from stallscope.analyzers.schedule import SchedulerConfig, Scheduling
from stallscope.analyzers.static_schedule import scheduler_for
from stallscope.profiler.recorder import Recorder
from stallscope.profiler.spec import Subject
from stallscope.runner.batch import Executor
from stallscope.runner.calibration import (
    Readings,
    describe_device,
    is_unstable,
    record_unprobed,
    take_readings,
)
from stallscope.runner.decoder import Decoder, build_decoder
from stallscope.runner.engine import Engine, Generation, Hooks, record_oom
from stallscope.runner.engine_log import EngineLog
from stallscope.runner.executor import TorchExecutor
from stallscope.runner.isolated_phases import IsolatedPhases
from stallscope.runner.job import Job, describe
from stallscope.runner.kv_pool import KvPool
from stallscope.runner.load_log import LoadLog
from stallscope.runner.out_of_memory import AllocationFailed, out_of_memory
from stallscope.runner.probe_linears import HasLinears, LinearProber
from stallscope.runner.probe_rows import StepTimes, grid_rows, observed_rows
from stallscope.runner.room import check_room, weight_bytes
from stallscope.runner.token_sampling import Sampling
from stallscope.runner.workload import ClosedLoop, RequestSize

WARMUP_OUTPUT_TOKENS = 4
# Timing the linears takes this share of the run's own time, within these limits: once at the rows
# that the run had, and as long again at a grid for what-if.
PROBE_SHARE = 0.12
PROBE_LEAST_S = 0.6
PROBE_MOST_S = 4.0


@dataclass(frozen=True, slots=True)
class Session:
    """Executes a job; everything it sees goes to the recorder."""

    job: Job
    config: SchedulerConfig
    recorder: Recorder
    device: str
    hooks: Hooks

    def execute(self) -> tuple[str, ...]:
        """Probe, run, probe again; return the run's flags."""
        self._tell("probing the machine's bandwidth and arithmetic")
        before = take_readings(self.job, self.device, self.recorder, "before")
        self._describe(before)
        try:
            self._run()
        except AllocationFailed as failure:
            record_oom(self.recorder, failure)
        gc.collect()
        self._tell("probing the machine again")
        after = take_readings(self.job, self.device, self.recorder, "after")
        self._describe(before, after)
        return ("unstable",) if is_unstable(r for r in (before, after) if r is not None) else ()

    def _run(self) -> None:
        decoder, pool = self._load()
        executor = TorchExecutor(decoder, pool, self._sampling())

        def new_log(warmup: bool) -> LoadLog:
            token_bytes = executor.kv_bytes_per_token
            return EngineLog(self.recorder, self.config, token_bytes=token_bytes, warmup=warmup)

        self._serve(executor, decoder, new_log)

    def _sampling(self) -> Sampling:
        options = self.job.options
        return Sampling(options.temperature, options.top_k, options.top_p, options.seed)

    def _serve(
        self, executor: Executor, model: HasLinears, new_log: Callable[[bool], LoadLog]
    ) -> None:
        """Warm up, serve the load, time the linears; `new_log` takes whether it is a warm-up."""
        options = self.job.options
        generation = Generation(self.job.spec.vocab_size, options.seed, frozenset(options.eos))
        warm = Engine(scheduler_for(self.config), executor, generation=generation, hooks=self.hooks)
        if not self._warm_up(warm, new_log(True)):
            return
        self._tell(f"running {describe(self.job)}")
        log = new_log(False)
        engine = Engine(self._scheduler(), executor, generation=generation, hooks=self.hooks)
        outcome = engine.run(self.job.load, log)
        if not outcome.out_of_memory:
            self._probe_linears(model, log.step_times)

    def _scheduler(self) -> Scheduling:
        if self.job.options.isolate_phases:
            return IsolatedPhases(self.config, clock=self.hooks.clock)
        return scheduler_for(self.config)

    def _load(self) -> tuple[Decoder, KvPool]:
        job, spec = self.job, self.job.spec
        size = weight_bytes(spec, job.options.dtype)
        self._tell(f"building {spec.name} in {job.options.dtype} ({size / 1e9:.2f} GB)")
        check_room("weights", size, self.device)
        decoder = build_decoder(
            spec,
            dtype=job.options.dtype,
            device=self.device,
            folder=job.weights,
            seed=job.options.seed,
        )
        check_room("kv", self.config.num_blocks * job.block_bytes, self.device)
        config = self.config
        pool = KvPool(spec, config.num_blocks, config.block_size, job.kv_dtype, self.device)
        self.recorder.event(
            "kv_pool", bytes=pool.nbytes, tokens=config.num_blocks * config.block_size
        )
        return decoder, pool

    def _warm_up(self, engine: Engine, log: LoadLog) -> bool:
        """Run a few requests of the load; return whether there was memory for them."""
        count = self.job.options.warmup
        self._tell("warming up")
        given = self.job.load.sizes
        sizes = [
            RequestSize(size.input_tokens, min(size.output_tokens, WARMUP_OUTPUT_TOKENS))
            for size in (given[i % len(given)] for i in range(count))
        ]
        load = ClosedLoop(sizes, min(count, self.job.concurrency))
        return not engine.run(load, log).out_of_memory

    def _probe_linears(self, model: HasLinears, times: StepTimes) -> None:
        self._tell("timing the model's linears at the run's batch sizes")
        observed = observed_rows(times)
        grid = grid_rows(times, self.job.concurrency)
        few_passes_s = 3 * sum(kind.expected_s or 0.0 for kind in observed)
        budget_s = max(PROBE_SHARE * sum(times.seconds.values()), PROBE_LEAST_S, few_passes_s)
        budget_s = min(budget_s, PROBE_MOST_S)
        prober = LinearProber(self.job.spec, model.linears(), dtype=model.dtype, device=self.device)
        try:
            with out_of_memory("probe"):
                probes = prober.probe(observed, budget_s=budget_s)
                probes += prober.probe(grid, budget_s=budget_s)
        except AllocationFailed as failure:
            record_unprobed(self.recorder, "the linears' own times", failure)
            return
        for probe in probes:
            self.recorder.event(
                "probe",
                probe="linear",
                op=probe.op,
                rows=probe.rows,
                time_s=probe.time_s,
                instances=probe.instances,
            )

    def _describe(self, *readings: Readings | None) -> None:
        options = self.job.options
        taken = tuple(r for r in readings if r is not None)
        self.recorder.set_subject(
            Subject(
                model=self.job.spec,
                device=describe_device(self.job, self.device, taken),
                dtype=options.dtype,
                kv_dtype=self.job.kv_dtype,
                engine=options.engine,
                workload=describe(self.job),
                max_num_seqs=self.config.max_num_seqs,
                max_num_batched_tokens=self.config.max_num_batched_tokens,
                chunked_prefill=self.config.chunked_prefill,
                static_batching=self.config.static,
                kv_budget_bytes=self._kv_budget_bytes(),
                block_size=None if self.config.static else self.config.block_size,
                concurrency=options.concurrency,
                rate_per_s=options.rate,
                isolated_phases=options.isolate_phases,
            )
        )

    def _kv_budget_bytes(self) -> int | None:
        """A static batch's tensors are bounded by nothing but the memory there is."""
        return None if self.config.static else self.config.num_blocks * self.job.block_bytes

    def _tell(self, text: str) -> None:
        if self.hooks.progress is not None:
            self.hooks.progress(text)
