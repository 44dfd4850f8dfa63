"""A model's linears timed by a machine's measured products: between shapes, and between rows."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from stallscope.analyzers.cost.arithmetic import linears_of
from stallscope.analyzers.cost.linears import Linear
from stallscope.profiler.spec import ModelSpec, ProductTime

Points = tuple[tuple[int, float], ...]


def class_times(
    spec: ModelSpec, dtype: str, products: Iterable[ProductTime]
) -> Mapping[str, Points]:
    """Return seconds of one instance by group and rows; {} where this dtype was not measured.

    What an engine runs as one product is timed as one. Experts are left out: their rows are not
    the step's.
    """
    table = _by_rows(p for p in products if p.dtype == dtype)
    if not table:
        return {}
    groups: dict[str, list[Linear]] = defaultdict(list)
    for linear in linears_of(spec):
        groups[linear.group].append(linear)
    return {
        group: tuple((rows, _between(sizes, _elements(linears))) for rows, sizes in table.items())
        for group, linears in groups.items()
        if all(linear.copies == 1 for linear in linears)
    }


def _elements(linears: Sequence[Linear]) -> float:
    return float(sum(linear.inputs * linear.outputs for linear in linears))


def _by_rows(products: Iterable[ProductTime]) -> dict[int, list[tuple[float, float]]]:
    """Return (elements, seconds) by rows, sorted; of shapes with as many elements the mean."""
    seen: dict[int, dict[float, list[float]]] = defaultdict(lambda: defaultdict(list))
    for product in products:
        seen[product.rows][float(product.inputs * product.outputs)].append(product.time_s)
    return {
        rows: sorted((size, sum(times) / len(times)) for size, times in seen[rows].items())
        for rows in sorted(seen)
    }


def _between(points: Sequence[tuple[float, float]], elements: float) -> float:
    """Interpolate between sizes on both logarithms; past either end time goes with the size."""
    first, last = points[0], points[-1]
    if elements <= first[0]:
        return first[1] * elements / first[0]
    if elements >= last[0]:
        return last[1] * elements / last[0]
    upper = next(i for i, (size, _) in enumerate(points) if size >= elements)
    (s0, t0), (s1, t1) = points[upper - 1], points[upper]
    part = math.log(elements / s0) / math.log(s1 / s0)
    return math.exp(math.log(t0) + part * math.log(t1 / t0))
