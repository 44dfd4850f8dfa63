"""The model as the engine stores it: its own figures go before what the config tells."""

from __future__ import annotations

from dataclasses import replace

from stallscope.analyzers.cost.arithmetic import quantised_bytes
from stallscope.analyzers.stated.engine_figures import EngineFigure, engine_figures
from stallscope.profiler.capture import Capture
from stallscope.profiler.model_parts import Stored
from stallscope.profiler.spec import ModelSpec


def as_stored(capture: Capture, spec: ModelSpec) -> ModelSpec:
    """Return the model with the factors that the engine's figures put on our count.

    Figures that agree stay as counted: engines round what they print.
    """
    factors = {f.measure: f for f in engine_figures(capture) if f.is_other}
    kv, weights = factors.get("kv_bytes_per_token_stated"), factors.get("weights_bytes_stated")
    stored = Stored(
        weights=1.0 if weights is None else _of_weights(capture, spec, weights),
        kv=1.0 if kv is None else _of_kv(kv),
    )
    return spec if stored == Stored() else replace(spec, stored=stored)


def _of_kv(figure: EngineFigure) -> float:
    """Return the engine's bytes of a token over ours: what is stored of it is what is read."""
    return figure.engine / figure.counted if figure.counted else 1.0


def _of_weights(capture: Capture, spec: ModelSpec, figure: EngineFigure) -> float:
    """Return the part that the matrices of the blocks take of our count, where less was loaded.

    A step reads nothing that was not loaded. More may be loaded than it reads (a vision tower, a
    draft model, buffers), and of experts it reads some: there our count stays.
    """
    counted, dtype = figure.counted, capture.subject.dtype
    if counted is None or dtype is None or figure.engine >= counted or spec.mixture is not None:
        return 1.0
    matrices = quantised_bytes(spec, dtype, tensor_parallel=figure.ranks)
    left = matrices - (counted - figure.engine)
    return left / matrices if left > 0 else 1.0
