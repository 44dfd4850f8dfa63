"""Rows of public tables of measurements: whole runs and single operators."""

from __future__ import annotations

import csv
import statistics
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stallscope.profiler.models import load_model
from stallscope.profiler.spec import ModelSpec

# The inference benchmark's A100 is the 40 GB part.
_DEVICES = {"Nvidia A100 GPU": "a100-sxm4-40gb", "Nvidia H100 GPU": "h100-sxm"}
_MODELS = {
    "meta-llama/Llama-2-7b-hf": "llama-7b",
    "meta-llama/Meta-Llama-3-8B": "llama-3-8b",
}
_DTYPES = {"fp16": "fp16", "fp8": "fp8", "int8": "int8"}
FIGURE_3 = "argonne__Fig_3_A100_H100_quant_all_results.csv"
FIGURE_16 = "argonne__Fig_16_a_power_results.csv"
ATTENTION_OPERATORS = ("attn_pre_proj", "attn_post_proj")
MLP_OPERATORS = ("mlp_up_proj", "mlp_down_proj")


@dataclass(frozen=True, slots=True)
class Run:
    """A batch of equal requests, `tokens` in and out, all sent at once; seconds until the last."""

    model: ModelSpec
    device: str
    dtype: str
    kv_dtype: str
    tokens: int
    batch: int
    seconds: float

    @property
    def tpot_s(self) -> float:
        """Seconds per output token, as the table means it: latency over output length."""
        return self.seconds / self.tokens

    @property
    def name(self) -> str:
        """Device, model, dtypes, length and batch."""
        kinds = f"{self.dtype}/{self.kv_dtype}"
        return f"{self.device} {self.model.name} {kinds} {self.tokens} x {self.batch}"


def vllm_runs(folder: Path, file: str) -> list[Run]:
    """Read the runs of vLLM on devices and models that are known here."""
    with (folder / file).open(newline="") as lines:
        rows = [row for row in csv.DictReader(lines) if row["Framework"] == "vLLM"]
    return [_run(row) for row in rows if row["Hardware"] in _DEVICES and row["Model"] in _MODELS]


def _run(row: dict[str, str]) -> Run:
    kinds = row.get("kv_cache_dtype") or "Weight = fp16, KV Cache = fp16"
    weights, cache = (_DTYPES[part.split("=")[1].strip()] for part in kinds.split(","))
    return Run(
        model=load_model(_MODELS[row["Model"]]),
        device=_DEVICES[row["Hardware"]],
        dtype=weights,
        kv_dtype=cache,
        tokens=int(row["Input Output Length"]),
        batch=int(row["Batch Size"]),
        seconds=float(row.get("latency") or row["Latency"]),
    )


def operator_times(folder: Path, file: str) -> dict[tuple[str, int], list[tuple[int, float]]]:
    """Read Vidur's medians: (rows, seconds) by operator and tensor-parallel size, in order."""
    found: dict[tuple[str, int], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    with (folder / file).open(newline="") as lines:
        for row in csv.DictReader(lines):
            ranks = int(row["num_tensor_parallel_workers"])
            for name in ATTENTION_OPERATORS + MLP_OPERATORS:
                seconds = float(row[f"time_stats.{name}.median"]) * 1e-3
                found[name, ranks][int(row["num_tokens"])].append(seconds)
    return {
        key: [(n, statistics.median(times)) for n, times in sorted(rows.items())]
        for key, rows in found.items()
    }


def kernel_table(folder: Path, device: str, kind: str) -> Any:
    """Read a table of kernels as a frame; ImportError says that pandas needs fastparquet."""
    import pandas as pd

    frame = pd.read_parquet(folder / f"aiconfigurator__{device}_sxm_vllm0.14.0_{kind}_perf.parquet")
    column = "gemm_dtype" if kind == "gemm" else "kv_cache_dtype"
    return frame[frame[column] == "bfloat16"].reset_index(drop=True)
