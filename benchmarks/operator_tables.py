"""Vidur's A100 operators: interpolated between every tenth row, and by what kernels reach."""

from __future__ import annotations

from pathlib import Path

from table_predictions import error, mape
from table_rows import MLP_OPERATORS, operator_times

from stallscope.analyzers.cost.achievable import DEFAULT
from stallscope.analyzers.cost.expected import kernel_of
from stallscope.analyzers.cost.operators import StepShape, step_operators
from stallscope.analyzers.cost.roofline import CostModel, Machine, interpolate
from stallscope.profiler.devices import load_device
from stallscope.profiler.models import load_model

FILES = {
    "llama-7b": "vidur__a100_Llama-2-7b_mlp.csv",
    "llama-3-8b": "vidur__a100_Llama-3-8B_mlp.csv",
}
_GROUPS = {
    "attn_pre_proj": "qkv",
    "attn_post_proj": "o",
    "mlp_up_proj": "gate_up",
    "mlp_down_proj": "down",
}
_EVERY = 10


def cost_of(model: str, ranks: int) -> CostModel:
    """Return the cost model of the A100 of 80 GB that Vidur measured."""
    device = load_device("a100-sxm4-80gb")
    machine = Machine(
        device.peak_flops["fp16"], device.memory_bytes_per_s, "datasheet", ranks=ranks
    )
    return CostModel(load_model(model), "fp16", "fp16", machine)


def kernel_seconds(cost: CostModel, group: str, rows: int) -> float:
    """Return what a group of linears is expected to take in one layer."""
    shape = StepShape(rows, 0, rows, rows)
    operators = step_operators(cost.spec, shape, dtype=cost.dtype, kv_dtype=cost.kv_dtype)
    kernel = kernel_of([o for o in operators if o.group == group], cost, DEFAULT)
    return kernel.start_s + kernel.busy_s


def operator_errors(
    folder: Path, model: str
) -> dict[tuple[str, int], tuple[list[float], list[float]]]:
    """Return errors by operator and ranks: uncalibrated, and between every tenth measured row."""
    found = {}
    for (name, ranks), points in operator_times(folder, FILES[model]).items():
        cost = cost_of(model, ranks)
        known = tuple(points[::_EVERY])
        rest = [point for i, point in enumerate(points) if i % _EVERY]
        plain = [error(kernel_seconds(cost, _GROUPS[name], n), t) for n, t in rest]
        found[name, ranks] = plain, [error(interpolate(known, n), t) for n, t in rest]
    return found


def print_operators(folder: Path) -> None:
    """Print the mean and the worst error of each operator."""
    for model in FILES:
        print(f"\nOperators of {model} on an A100 of 80 GB (Vidur), calibrated on every tenth row")
        for (name, ranks), (plain, fitted) in sorted(operator_errors(folder, model).items()):
            kind = "MLP" if name in MLP_OPERATORS else "attention's linears"
            print(
                f"  {name:15} TP {ranks}  {len(fitted):3} rows  uncalibrated {mape(plain):6.1%}",
                end="",
            )
            worst = max(fitted, key=abs)
            print(f"  calibrated {mape(fitted):6.1%}, worst {worst:+7.1%}  ({kind})")
