"""Engine samples of several sources: each engine counted once, by the best that tells of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stallscope.profiler.capture import EngineSample
from stallscope.profiler.joining.parts import Part

_SAME = 0.9  # of the looks at which two records of one server say the same


@dataclass(frozen=True, slots=True)
class Engines:
    """The samples kept, and what is said of those that were not.

    `twins` are the sources that say what another one says: nothing of them counts again.
    """

    samples: tuple[EngineSample, ...]
    sentences: tuple[str, ...]
    twins: frozenset[str] = frozenset()

    @property
    def names(self) -> frozenset[str]:
        """What is told of the engines."""
        return frozenset(sample.name for sample in self.samples)


def joined_engines(parts: Sequence[Part]) -> Engines:
    """Join the engine samples of sources that stand on one clock, the best source first.

    Sources of different kinds tell of the same server: what the first one does not tell of an
    engine is taken from the next. Several of one kind are servers side by side, and their engines
    keep apart, unless they say the same: then the first one counts.
    """
    telling = [p for p in parts if p.capture.engine_samples]
    if not telling:
        return Engines((), ())
    best = telling[0].kind
    sentences: list[str] = []
    servers: list[Part] = []
    twins: set[str] = set()
    for part in (p for p in telling if p.kind == best):
        twin = next((s for s in servers if _is_same(s, part)), None)
        if twin is None:
            servers.append(part)
        else:
            twins.add(part.name)
            sentences.append(f"{part.name} says the same as {twin.name} and is not counted again.")
    found = [s for part in servers for s in _labelled(part, is_alone=len(servers) == 1)]
    for part in (p for p in telling if p.kind != best):
        if len(servers) > 1:
            sentences.append(f"{part.name} tells of none of {len(servers)} servers by name.")
            continue
        more, left_out = _added(found, part)
        found += more
        if left_out:
            names = ", ".join(left_out)
            sentences.append(f"{part.name} tells of engine {names}, {servers[0].name} does not.")
    found.sort(key=lambda s: (s.t_ns, s.engine))
    return Engines(tuple(found), tuple(sentences), frozenset(twins))


def _labelled(part: Part, *, is_alone: bool) -> Iterator[EngineSample]:
    for sample in part.capture.engine_samples:
        yield sample if is_alone else sample._replace(engine=f"{part.name} {sample.engine}")


def _added(have: Sequence[EngineSample], part: Part) -> tuple[list[EngineSample], list[str]]:
    """Return what a source adds to engines that are known, and the engines that are not."""
    engines = {s.engine for s in have}
    theirs = {s.engine for s in part.capture.engine_samples}
    if len(engines) == 1 and len(theirs) == 1:
        names = dict.fromkeys(theirs, next(iter(engines)))
    else:
        names = {engine: engine for engine in theirs & engines}
    told = {(s.engine, s.name) for s in have}
    more = [
        s._replace(engine=names[s.engine])
        for s in part.capture.engine_samples
        if s.engine in names and (names[s.engine], s.name) not in told
    ]
    return more, sorted(theirs - names.keys())


def _is_same(one: Part, other: Part) -> bool:
    """Tell whether two records are of one server: they say the same at nearly all looks."""
    looks = [_looks(p) for p in (one, other)]
    shared = looks[0].keys() & looks[1].keys()
    if not shared or len(shared) < _SAME * min(map(len, looks)):
        return False
    equal = sum(looks[0][key] == looks[1][key] for key in shared)
    return equal >= _SAME * len(shared)


def _looks(part: Part) -> dict[tuple[int, str, str], float]:
    seconds = 1_000_000_000
    return {(s.t_ns // seconds, s.engine, s.name): s.value for s in part.capture.engine_samples}
