"""The walk: from what was found back to its first causes, and from those on to their effects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from stallscope.analyzers.coupling.edges import EDGES, Condition, Edge

Facts = Mapping[str, float]


def holds(edge: Edge, facts: Facts) -> bool:
    """Tell whether all that an edge needs was observed."""
    return all(_is_met(condition, facts) for condition in edge.when)


def _is_met(condition: Condition, facts: Facts) -> bool:
    value = facts.get(condition.fact)
    if value is None:
        return False
    match condition.sign:
        case ">":
            return value > condition.value
        case "≥":
            return value >= condition.value
        case _:
            return value < condition.value


def first_causes(node: str, facts: Facts, edges: Sequence[Edge] = EDGES) -> tuple[str, ...]:
    """Go back from an effect as far as the evidence does; only edges that need any are gone.

    A node that merely leads to others (as room does to a full pool) is no cause by itself.
    """
    found: dict[str, None] = {}
    _back(node, facts, edges, {node}, found)
    return tuple(found) or (node,)


def _back(
    node: str, facts: Facts, edges: Sequence[Edge], seen: set[str], found: dict[str, None]
) -> None:
    for edge in edges:
        if edge.effect != node or edge.cause in seen or not holds(edge, facts):
            continue
        seen.add(edge.cause)
        before = len(found)
        _back(edge.cause, facts, edges, seen, found)
        if edge.when and len(found) == before:
            found[edge.cause] = None


def effects(starts: Sequence[str], facts: Facts, edges: Sequence[Edge] = EDGES) -> list[Edge]:
    """List the edges that hold from the first causes on, each once, depth first."""
    walked: dict[Edge, None] = {}
    for start in starts:
        for edge in _on(start, facts, edges, set()):
            walked[edge] = None
    return list(walked)


def _on(node: str, facts: Facts, edges: Sequence[Edge], seen: set[str]) -> Iterator[Edge]:
    if node in seen:
        return
    seen.add(node)
    for edge in edges:
        if edge.cause == node and holds(edge, facts):
            yield edge
            yield from _on(edge.effect, facts, edges, seen)
