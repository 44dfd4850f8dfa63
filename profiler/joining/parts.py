"""One source among several, and two of them side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from stallscope.errors import InputError
from stallscope.profiler.capture import Capture
from stallscope.profiler.file_kinds import InputKind
from stallscope.profiler.joining.candidates import Candidate, candidates_of
from stallscope.profiler.joining.edges import Work
from stallscope.profiler.joining.fit import Comparison
from stallscope.profiler.joining.words import span_words
from stallscope.profiler.wall_clock import WallClock

_S = 1_000_000_000
# The first of them lends its clock, and what it says of the engine is believed first.
ORDER = (
    InputKind.CAPTURE,
    InputKind.METRICS,
    InputKind.SERVER_LOG,
    InputKind.BENCHMARK,
    InputKind.NSYS_SQLITE,
    InputKind.NSYS_REPORT,
    InputKind.KINETO,
    InputKind.TELEMETRY,
)


def short_names(paths: Sequence[Path]) -> list[str]:
    """Return the files' own names, with their folders where two have the same."""
    seen = Counter(path.name for path in paths)
    return [path.name if seen[path.name] == 1 else str(path) for path in paths]


def check_joinable(paths: Sequence[Path], kinds: Sequence[InputKind]) -> None:
    """Raise InputError for a file given twice, and one without a clock."""
    for path, kind in zip(paths, kinds, strict=True):
        if kind not in ORDER:
            raise InputError(
                f"{path}: is {kind}, which tells no time, so nothing puts it beside other files; "
                "give it alone"
            )
        if sum(path.resolve() == other.resolve() for other in paths) > 1:
            raise InputError(f"{path}: is given twice; name it once")


@dataclass(frozen=True, slots=True)
class Part:
    """A source's capture with what it tells of its clock and of work.

    `is_stated` says that the user set its clock: its zone is settled. `begin_s` is what they said
    of a source that tells no wall time.
    """

    name: str
    kind: InputKind
    capture: Capture
    wall: WallClock | None
    work: Work
    is_stated: bool = False
    begin_s: float = 0.0

    @property
    def words(self) -> str:
        """Say when it was, on its own clock."""
        return f"{self.name} {span_words(self.work.span_ns, self.wall)}"


@dataclass(frozen=True, slots=True)
class Pair:
    """Two sources; an offset is what is added to the second one's times.

    `candidates` are the offsets that their clocks allow, None where one tells no wall time.
    """

    first: Part
    second: Part
    compared: Comparison
    candidates: tuple[Candidate, ...] | None
    clock_error_ns: int

    @property
    def is_stated(self) -> bool:
        """Whether the user said how the clocks stand."""
        return self.first.is_stated or self.second.is_stated

    @property
    def lacks_both_zones(self) -> bool:
        """Whether both show local time: mostly that of one place."""
        walls = (self.first.wall, self.second.wall)
        return all(wall is not None and not wall.has_zone for wall in walls)

    def refusal(self, why: str) -> InputError:
        """Return the error that says why they are not joined, and what to do."""
        first, second = self.first, self.second
        return InputError(
            f"{first.name} and {second.name} {why}: {first.words}; {second.words}. If they are of "
            f"one run, set a clock by hand: --offset {second.name}=±SECONDS"
        )


def pair_of(first: Part, second: Part) -> Pair:
    """Put two sources side by side."""
    errors = (part.wall.error_ns for part in (first, second) if part.wall is not None)
    return Pair(
        first, second, Comparison(first.work, second.work), _candidates(first, second), sum(errors)
    )


def _candidates(first: Part, second: Part) -> tuple[Candidate, ...] | None:
    is_stated = first.is_stated or second.is_stated
    if first.wall is None or second.wall is None:
        later_ns = round((second.begin_s - first.begin_s) * _S)
        return (Candidate(first.work.span_ns[0] + later_ns, 0),) if is_stated else None
    if is_stated:
        return candidates_of(
            replace(first.wall, has_zone=True), replace(second.wall, has_zone=True)
        )
    return candidates_of(first.wall, second.wall)
