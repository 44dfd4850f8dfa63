"""A model's linears timed by a machine's measured products: between shapes, rows and sizes."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from stallscope.analyzers.cost.arithmetic import linears_of
from stallscope.analyzers.cost.linears import Linear
from stallscope.profiler.spec import DTYPE_BYTES, ModelSpec, ProductTime

Points = tuple[tuple[int, float], ...]
# By rows, by what the matrices of a shape took together, by a matrix's elements, sorted: seconds.
_Table = dict[int, list[tuple[float, list[tuple[float, float]]]]]


def class_times(
    spec: ModelSpec, dtype: str, products: Iterable[ProductTime]
) -> Mapping[str, Points]:
    """Return seconds of one instance by group and rows; {} where this dtype was not measured.

    What an engine runs as one product is timed as one. Experts are left out: their rows are not
    the step's. Where products were measured over several amounts of weights, a model that has more
    than a cache holds is timed by those that did not fit either.
    """
    table = _by_rows(p for p in products if p.dtype == dtype)
    if not table:
        return {}
    linears = linears_of(spec)
    total = weight_bytes(linears, dtype)
    groups: dict[str, list[Linear]] = defaultdict(list)
    for linear in linears:
        groups[linear.group].append(linear)
    return {
        group: tuple(
            (rows, _seconds(amounts, total, _elements(members))) for rows, amounts in table.items()
        )
        for group, members in groups.items()
        if all(linear.copies == 1 for linear in members)
    }


def weight_bytes(linears: Iterable[Linear], dtype: str) -> float:
    """Return the bytes of weights that a step of one row passes: of experts the active ones."""
    return DTYPE_BYTES[dtype] * sum(
        linear.elements * linear.active / linear.copies for linear in linears
    )


def _elements(linears: Sequence[Linear]) -> float:
    return float(sum(linear.inputs * linear.outputs for linear in linears))


def _by_rows(products: Iterable[ProductTime]) -> _Table:
    """Sort products; of shapes with as many elements the mean."""
    seen: dict[int, dict[float, dict[float, list[float]]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(list))
    )
    for product in products:
        by_size = seen[product.rows][float(product.weight_bytes)]
        by_size[float(product.inputs * product.outputs)].append(product.time_s)
    return {
        rows: [
            (amount, sorted((size, sum(times) / len(times)) for size, times in sizes.items()))
            for amount, sizes in sorted(seen[rows].items())
        ]
        for rows in sorted(seen)
    }


def _seconds(
    amounts: Sequence[tuple[float, Sequence[tuple[float, float]]]], total: float, elements: float
) -> float:
    """Interpolate by the logarithm of the amount of weights; past either end nothing changes."""
    points = [(amount, _between(sizes, elements)) for amount, sizes in amounts]
    if total <= points[0][0]:
        return points[0][1]
    if total >= points[-1][0]:
        return points[-1][1]
    upper = next(i for i, (amount, _) in enumerate(points) if amount >= total)
    (a0, t0), (a1, t1) = points[upper - 1], points[upper]
    if not a0:  # a file that does not say: nothing is between
        return t1
    part = math.log(total / a0) / math.log(a1 / a0)
    return t0 + part * (t1 - t0)


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
