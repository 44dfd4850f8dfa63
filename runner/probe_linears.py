"""How long each linear of the loaded model takes at the run's own row counts."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from stallscope.profiler.spec import ModelSpec
from stallscope.runner.probe_rows import ProbeRows
from stallscope.runner.stopwatch import stopwatch

Linear = Callable[[torch.Tensor], torch.Tensor]

LAYER_GROUPS = ("qkv", "o", "gate_up", "down")
MOST_PASSES = 8
MIN_PASSES = 2  # the first meets new shapes and cold code


@dataclass(frozen=True, slots=True)
class LinearProbe:
    """Seconds of one instance of a group at this many rows: best pass, mean over the layers."""

    op: str
    rows: int
    time_s: float
    instances: int


class HasLinears(Protocol):
    """A model that gives its linears by group, in layer order."""

    dtype: torch.dtype

    def linears(self) -> Mapping[str, Sequence[Linear]]: ...


class LinearProber:
    """Runs the model's linears in forward order, so that each finds the caches as in a step."""

    def __init__(
        self,
        spec: ModelSpec,
        linears: Mapping[str, Sequence[Linear]],
        *,
        dtype: torch.dtype,
        device: str,
    ) -> None:
        self._linears = linears
        self._dtype = dtype
        self._device = device
        self._inputs = {
            "qkv": spec.hidden_size,
            "o": spec.num_heads * spec.head_dim,
            "gate_up": spec.hidden_size,
            "down": spec.intermediate_size,
            "lm_head": spec.hidden_size,
        }
        self._pass_s: dict[int, float] = {}  # rows → the best pass so far

    @torch.inference_mode()
    def probe(self, kinds: Sequence[ProbeRows], *, budget_s: float) -> tuple[LinearProbe, ...]:
        """Time the kinds in order, each a few passes; leave out those the budget cannot hold.

        The very first kind, the one that the run spent most time in, is always timed.
        """
        deadline = time.perf_counter() + budget_s
        share_s = budget_s / max(1, len(kinds))
        best: dict[tuple[str, int], float] = {}
        for kind in kinds:
            ends = time.perf_counter() + MIN_PASSES * _expected_s(kind, self._pass_s)
            if self._pass_s and ends > deadline:
                continue
            passes = self._passes(kind, within_s=share_s)
            for times in passes:
                for op, rows, seconds in times:
                    best[op, rows] = min(seconds, best.get((op, rows), seconds))
            self._pass_s[kind.rows] = min(
                sum(seconds * len(self._linears[op]) for op, _, seconds in times)
                for times in passes
            )
        return tuple(
            LinearProbe(op, rows, seconds, len(self._linears[op]))
            for (op, rows), seconds in sorted(best.items())
        )

    def _passes(self, kind: ProbeRows, *, within_s: float) -> list[list[tuple[str, int, float]]]:
        inputs = {op: self._input(op, kind.rows) for op in LAYER_GROUPS}
        inputs["lm_head"] = self._input("lm_head", kind.logit_rows)
        started = time.perf_counter()
        passes = [self._pass(kind, inputs) for _ in range(MIN_PASSES)]
        while len(passes) < MOST_PASSES and time.perf_counter() - started < within_s:
            passes.append(self._pass(kind, inputs))
        return passes

    def _pass(
        self, kind: ProbeRows, inputs: Mapping[str, torch.Tensor]
    ) -> list[tuple[str, int, float]]:
        layers = range(len(self._linears[LAYER_GROUPS[0]]))
        order = [(op, layer) for layer in layers for op in LAYER_GROUPS]
        if kind.logit_rows:
            order.append(("lm_head", 0))
        watch = stopwatch(self._device)
        watch.mark()
        for op, layer in order:
            self._linears[op][layer](inputs[op])
            watch.mark()
        sums: dict[str, float] = dict.fromkeys((op for op, _ in order), 0.0)
        for (op, _), seconds in zip(order, watch.intervals_s(), strict=True):
            sums[op] += seconds
        return [
            (op, kind.logit_rows if op == "lm_head" else kind.rows, s / len(self._linears[op]))
            for op, s in sums.items()
        ]

    def _input(self, op: str, rows: int) -> torch.Tensor:
        shape = (rows, self._inputs[op])
        return torch.full(shape, 0.01, dtype=self._dtype, device=self._device)


def _expected_s(kind: ProbeRows, pass_s: Mapping[int, float]) -> float:
    """Bound a pass's time by the run's own steps, or by passes at other row counts."""
    if kind.expected_s is not None:
        return kind.expected_s
    return min((s * max(1.0, kind.rows / rows) for rows, s in pass_s.items()), default=0.0)
