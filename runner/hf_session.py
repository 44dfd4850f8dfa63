"""One instrumented run on a model of transformers, in static batches."""

from __future__ import annotations

from stallscope.runner.hf_executor import HfExecutor
from stallscope.runner.hf_model import HfModel, load_hf_model
from stallscope.runner.load_log import LoadLog
from stallscope.runner.room import check_room, weight_bytes
from stallscope.runner.session import Session
from stallscope.runner.static_log import StaticLog


class HfSession(Session):
    """A session with another engine: the same load, probes and capture."""

    def _run(self) -> None:
        executor = HfExecutor(self._load_model(), self._sampling(), clock=self.hooks.clock)

        def new_log(warmup: bool) -> LoadLog:
            return StaticLog(self.recorder, executor, warmup=warmup)

        self._serve(executor, executor.model, new_log)

    def _load_model(self) -> HfModel:
        job, options = self.job, self.job.options
        size = weight_bytes(job.spec, options.dtype)
        self._tell(f"loading {job.spec.name} in {options.dtype} ({size / 1e9:.2f} GB)")
        check_room("weights", size, self.device)
        model = load_hf_model(
            options.model,
            job.spec,
            folder=job.weights,
            dtype=options.dtype,
            device=self.device,
            seed=options.seed,
        )
        # What the largest batch grows to, padding included: nothing else would ask for it at once.
        check_room("kv", self.config.num_blocks * job.block_bytes, self.device)
        return model
