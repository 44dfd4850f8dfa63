"""Whether traces are the ranks of one run, and how their clocks stand to each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from stallscope.errors import InputError
from stallscope.profiler.trace.reduce import Origin, Reduced

_MOST_NAMED = 64  # ranks that are missing


def rank_numbers(origins: Sequence[Origin]) -> tuple[int, ...]:
    """Return the ranks that the traces state; the order given where one does not, or two agree."""
    known = [origin.rank for origin in origins if origin.rank is not None]
    if len(known) == len(origins) and len(set(known)) == len(known):
        return tuple(known)
    return tuple(range(len(origins)))


def clock_offsets(origins: Sequence[Origin]) -> tuple[int, ...]:
    """Return what is added to each trace's times to stand on the first one's clock.

    By the wall clock; 0 where one of them does not tell it, as then nothing puts them together.
    """
    clocks = [origin.unix_ns for origin in origins if origin.unix_ns is not None]
    if len(clocks) < len(origins):
        return (0,) * len(origins)
    return tuple(clock - clocks[0] for clock in clocks)


def check_ranks(reduced: Sequence[Reduced]) -> None:
    """Raise InputError for traces that cannot be ranks of one run."""
    for place, one in enumerate(reduced):
        for other in reduced[:place]:
            why = _why_apart(other, one)
            if why is not None:
                raise InputError(
                    f"{one.origin.path}: {why} {other.origin.path}, so they are no ranks of one "
                    "run; diagnose each alone"
                )


def _why_apart(one: Reduced, other: Reduced) -> str | None:
    if one.kernels and (one.kernels, one.steps, one.samples) == (
        other.kernels,
        other.steps,
        other.samples,
    ):
        return "holds the same trace as"
    products = [{d.product for d in r.devices if d.product} for r in (one, other)]
    if all(products) and products[0].isdisjoint(products[1]):
        return f"is of {', '.join(sorted(products[1]))}, unlike"
    offset = clock_offsets((one.origin, other.origin))[1]
    spans = one.origin.span_ns, other.origin.span_ns
    if None in (one.origin.unix_ns, other.origin.unix_ns) or spans[0] is None or spans[1] is None:
        return None
    later, earlier = max(spans[0][0], spans[1][0] + offset), min(spans[0][1], spans[1][1] + offset)
    return "was traced at another time than" if later > earlier else None


def missing_ranks(origins: Sequence[Origin], ranks: Sequence[int]) -> Iterator[str]:
    """Name the ranks of the run that no trace is of, where the traces say how many there were."""
    size = max((origin.world_size or 0 for origin in origins), default=0)
    if size <= len(origins):
        return
    if any(origin.rank is None for origin in origins):
        yield f"The run had {size} ranks; {len(origins)} of them were given."
        return
    given = set(ranks)
    missing = ", ".join(islice((str(r) for r in range(size) if r not in given), _MOST_NAMED))
    if size - len(origins) > _MOST_NAMED:
        missing += ", …"
    yield (
        f"The run had {size} ranks; {len(origins)} of them were given. Missing: {missing}. "
        "How the given ones wait for those cannot be told."
    )
