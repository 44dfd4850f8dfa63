"""The time to expect of a step on a measured machine: what its classes of operators take of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from stallscope.analyzers.cost.operators import (
    StepShape,
    activation_bytes_per_element,
    attention_operators,
)
from stallscope.analyzers.cost.roofline import CostModel, StepTime, operator_time
from stallscope.profiler.spec import Calibration

# Small operators of an eager layer (norms, rotation, writes to the cache, activation, residuals and
# views of them), more for each request's attention, and around all layers. How long they take
# together is fitted; these only say how they grow.
LAYER_LAUNCHES = 24
REQUEST_LAUNCHES = 5
STEP_LAUNCHES = 40


@dataclass(frozen=True, slots=True)
class ClassTimes:
    """Seconds of a step by class of operator, before any calibration."""

    products: float
    attention: float
    rows: float
    launch: float

    @property
    def columns(self) -> tuple[float, float, float, float]:
        """The four in the order of a calibration's factors."""
        return self.products, self.attention, self.rows, self.launch


def class_seconds(cost: CostModel, shape: StepShape) -> ClassTimes:
    """Return a step's seconds by class on a machine whose products and launches were measured."""
    spec, machine = cost.spec, cost.machine
    attention = attention_operators(spec, shape, dtype=cost.dtype, kv_dtype=cost.kv_dtype)
    heads = (spec.num_heads + spec.num_kv_heads) * spec.head_dim
    width = 8 * spec.hidden_size + 3 * spec.intermediate_size + 2 * heads
    element = activation_bytes_per_element(cost.dtype)
    moved = shape.tokens * spec.num_layers * width * element
    moved += shape.logit_rows * spec.vocab_size * (element + 4.0)  # read, and as fp32
    requests = max(1, shape.logit_rows)
    launches = STEP_LAUNCHES + spec.num_layers * (LAYER_LAUNCHES + REQUEST_LAUNCHES * requests)
    return ClassTimes(
        products=cost.products_s(shape),
        attention=math.fsum(operator_time(o, machine, 1.0).time_s for o in attention),
        rows=moved / machine.bytes_per_s,
        launch=launches * (machine.launch_s or 0.0),
    )


@dataclass(frozen=True)
class CalibratedModel(CostModel):
    """A model on a measured machine; `excess` is what bytes and FLOPs do not explain."""

    fitted: Calibration | None = None

    def step_time(self, shape: StepShape) -> StepTime:
        """Time a step, by part."""
        plain = super().step_time(shape)
        if self.fitted is None:
            return plain
        seconds = class_seconds(self, shape)
        factors = factors_of(self.fitted)
        total = math.fsum(f * s for f, s in zip(factors, seconds.columns, strict=True))
        explained = plain.weights + plain.kv + plain.compute
        return replace(plain, excess=max(0.0, total - explained))


def factors_of(fitted: Calibration) -> tuple[float, float, float, float]:
    """Return the factors in the order of the classes."""
    return fitted.products, fitted.attention, fitted.rows, fitted.launch


def calibrated_model(cost: CostModel) -> CalibratedModel | None:
    """Return what to expect where steps were measured on a measured machine; else None."""
    fitted = cost.machine.calibration
    if fitted is None or cost.machine.kind == "datasheet" or not cost.machine.linear_times:
        return None
    return CalibratedModel(cost.spec, cost.dtype, cost.kv_dtype, cost.machine, fitted=fitted)
