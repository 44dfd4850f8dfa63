"""What launching a step's kernels costs: one by one by the host, or replayed from CUDA graphs."""

from __future__ import annotations

from stallscope.analyzers.cost.expected import ExpectedModel
from stallscope.analyzers.cost.operators import StepShape
from stallscope.analyzers.plan.result import Interval, Launches
from stallscope.analyzers.whatif.simulate import Overhead

# Seconds a kernel. The runs behind both are in docs/metrics.md, Launching kernels.
# One by one from an engine's Python: 26 (a bare loop) to 97 µs (vLLM) in four public runs.
EAGER_S: Interval = (25e-6, 100e-6)
# Replayed: 70 µs for 80 kernels (CUDA.jl), 1.1 to 1.3 µs with a tiny addition (PyTorch).
GRAPH_S: Interval = (0.9e-6, 1.3e-6)


def launches(model: ExpectedModel, shape: StepShape, overhead: Overhead) -> Launches:
    """Return what launching the kernels of a decode step costs either way."""
    kernels, device_s = model.kernels(shape), model.step_time(shape).floor
    host_s = overhead.per_step + overhead.per_request * shape.logit_rows
    least, most = (kernels * each for each in EAGER_S)
    return Launches(
        kernels=kernels,
        step_s=device_s + host_s,
        graph_s=(kernels * GRAPH_S[0], kernels * GRAPH_S[1]),
        eager_s=(least, most),
        eager_step_s=(max(device_s, least) + host_s, max(device_s, most) + host_s),
    )
