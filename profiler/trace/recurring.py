"""Steps of a trace without marks: the stretch of kernels that comes again and again.

A loop launches some kernels once per pass. Such an anchor cuts the sequence of names into
segments; where most of them are alike in length and in the kernels they hold, they are the steps.
A kernel that comes once per layer cuts too, but a layer neither looks tokens up nor picks them; a
kernel that comes every sixteenth pass explains no more than the pass does. So the anchor that
explains most wins, and of equal ones the one with most repeats. Random sequences have none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from stallscope.profiler.trace.timeline import UNKNOWN, Ints, Kernels, SmallInts

LEAST_REPEATS = 5
LEAST_COVERAGE = 0.60  # of the kernels, in segments that are alike
LEAST_LENGTH = 3  # kernels in a step: shorter ones are what random names also show
ALIKE = 0.80  # of the kernels of a segment and of the typical one, held by both
LENGTH_TOLERANCE = 0.10
EQUAL_COVERAGE = 0.002
_MOST_MERGED = 3  # passes in one segment, where the anchor went missing between them
_MOST_KERNELS = 100_000  # looked at to choose the anchor
_MOST_ANCHORS = 24
_MOST_CELLS = 20_000_000
# Tokens are looked up and picked once per pass. Without such a kernel a stretch may be a layer.
_ONCE_PER_PASS = re.compile(
    r"argmax|multinomial|(?<!up)(?<!down)sampling|indexSelect|get_rows"
    r"|(?<!rotary)(?<!rotary_)(?<!rope_)embedding",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Recurring:
    """Steps found in the kernels of one device, in order of time; they may leave gaps.

    `start_ns` is when a step's first kernel begins and `end_ns` when its last one ends. `anchor`
    indexes Trace.names. `evidence` says in words what the steps rest on.
    """

    start_ns: Ints
    end_ns: Ints
    device: int
    anchor: int
    kernels_per_step: int
    coverage: float
    evidence: str

    def __len__(self) -> int:
        return len(self.start_ns)


@dataclass(frozen=True, slots=True)
class Cut:
    """A sequence cut before each anchor: where segments begin, and which are alike (one pass)."""

    anchor: int
    starts: Ints
    ends: Ints
    is_alike: np.ndarray
    typical: SmallInts  # names that most segments hold
    length: int
    coverage: float


def recurring_steps(kernels: Kernels, names: tuple[str, ...]) -> Recurring | None:
    """Find recurring steps on the device with most kernels; None where too little recurs.

    Fewer than 5 repeats, or under 60 % of the kernels in them, is too little; so are stretches in
    which no kernel looks tokens up or picks them, for those may be layers of a single pass. Which
    phase a step is in is not known.
    """
    if not len(kernels):
        return None
    device = int(np.bincount(np.maximum(kernels.device, 0)).argmax())
    rows = np.flatnonzero(kernels.device == device)
    rows = rows[_in_order(kernels, rows)]
    of_passes = [i for i, name in enumerate(names) if _ONCE_PER_PASS.search(name)]
    cut = best_cut(kernels.name[rows], np.array(of_passes, dtype=np.int32))
    if cut is None:
        return None
    start_ns, end_ns = kernels.start_ns[rows], kernels.end_ns[rows]
    first, last = _rotated(cut, start_ns, end_ns)
    edges = np.stack((first, last), axis=1).reshape(-1)
    edges = edges[edges < len(rows)]  # the last stretch may end with the rows
    return Recurring(
        np.minimum.reduceat(start_ns, edges)[::2],
        np.maximum.reduceat(end_ns, edges)[::2],
        device,
        cut.anchor,
        cut.length,
        cut.coverage,
        f"{names[cut.anchor]} comes once in {len(first)} alike stretches of about {cut.length} "
        f"kernels; stretches of this kind hold {cut.coverage:.0%} of all",
    )


def _in_order(kernels: Kernels, rows: Ints) -> Ints:
    """Order by launch where every launch is known: streams that overlap do not shuffle it."""
    launch_ns, start_ns = kernels.launch_ns[rows], kernels.start_ns[rows]
    if np.any(launch_ns == UNKNOWN):
        return np.argsort(start_ns, kind="stable")
    return np.lexsort((start_ns, launch_ns))


def best_cut(sequence: SmallInts, of_passes: SmallInts) -> Cut | None:
    """Cut a sequence of names by the anchor that explains most of it; None where none does.

    The typical segment must hold a name out of `of_passes`.
    """
    if len(sequence) < LEAST_REPEATS * LEAST_LENGTH:
        return None
    looked_at = sequence[:_MOST_KERNELS]
    cuts = [cut_by(looked_at, anchor) for anchor in _anchors(looked_at)]
    found = [
        cut
        for cut in cuts
        if cut is not None and is_enough(cut) and np.isin(cut.typical, of_passes).any()
    ]
    if not found:
        return None
    most = max(cut.coverage for cut in found)
    equal = [cut for cut in found if cut.coverage >= most - EQUAL_COVERAGE]
    anchor = max(equal, key=lambda cut: int(cut.is_alike.sum())).anchor
    whole = cut_by(sequence, anchor)
    return whole if whole is not None and is_enough(whole) else None


def is_enough(cut: Cut) -> bool:
    """Tell whether a cut rests on enough repeats and covers enough."""
    repeats = int(cut.is_alike.sum())
    return repeats >= LEAST_REPEATS and cut.coverage >= LEAST_COVERAGE


def _anchors(sequence: SmallInts) -> list[int]:
    """Return names that come often enough, those at the most even distances first.

    Of names with the same count and evenness one is enough: they cut alike.
    """
    found: dict[tuple[int, int], tuple[float, int]] = {}
    order = np.argsort(sequence, kind="stable")
    ids, first = np.unique(sequence[order], return_index=True)
    for name, places in zip(ids.tolist(), np.split(order, first[1:]), strict=True):
        if len(places) <= LEAST_REPEATS or len(sequence) < LEAST_LENGTH * len(places):
            continue
        distances = np.diff(places)
        middle = float(np.median(distances))
        unevenness = float(np.median(np.abs(distances - middle))) / middle
        key = (len(places), round(unevenness * 100))
        found.setdefault(key, (unevenness, name))
    best = sorted(found.values())[:_MOST_ANCHORS]
    return [name for _, name in best]


def cut_by(sequence: SmallInts, anchor: int) -> Cut | None:
    """Cut before each anchor and compare the segments with the typical one, kernel by kernel."""
    starts = np.flatnonzero(sequence == anchor)
    ends = np.append(starts[1:], len(sequence))
    present, columns = np.unique(sequence, return_inverse=True)
    if len(starts) <= LEAST_REPEATS or len(starts) * len(present) > _MOST_CELLS:
        return None
    inside = np.arange(len(sequence)) >= starts[0]
    segment = np.repeat(np.arange(len(starts)), ends - starts)
    cells = segment * len(present) + columns.reshape(-1)[inside]
    counts = np.bincount(cells, minlength=len(starts) * len(present))
    counts = counts.reshape(len(starts), len(present))
    lengths = ends - starts
    typical = np.median(counts, axis=0)
    length = int(np.median(lengths))
    if length < LEAST_LENGTH:
        return None
    passes = np.clip(np.rint(lengths / length), 1, _MOST_MERGED).astype(np.int64)
    near = np.abs(lengths - passes * length) <= np.floor(LENGTH_TOLERANCE * length * passes)
    held = np.minimum(counts, passes[:, None] * typical).sum(axis=1)
    alike = near & (2 * held >= ALIKE * (lengths + passes * typical.sum()))
    coverage = float(lengths[alike].sum() / len(sequence))
    held_by_most = present[typical >= 1]
    return Cut(anchor, starts, ends, alike & (passes == 1), held_by_most, length, coverage)


def _rotated(cut: Cut, start_ns: Ints, end_ns: Ints) -> tuple[Ints, Ints]:
    """Shift the segments so that each begins behind the pass's longest pause.

    The anchor may lie anywhere in a pass; a loop pauses between two.
    """
    first, last = cut.starts[cut.is_alike], cut.ends[cut.is_alike]
    typical = first[last - first == cut.length]
    if not len(typical):
        return first, last
    reached = np.maximum.accumulate(end_ns)
    places = typical[:, None] + np.arange(cut.length)
    pauses = np.where(places > 0, start_ns[places] - reached[np.maximum(places - 1, 0)], 0)
    shift = int(np.median(pauses, axis=0).argmax())
    if shift == 0:
        return first, last
    goes_on = np.isin(last, first)
    return first[goes_on] + shift, last[goes_on] + shift
