"""What confidence is worth: its map fitted to the labelled captures, and checked on others.

`python tests/corpus/fit.py` prints the knots for analyzers/confidence_map.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from judged import Label, agrees, expects_class, is_first, labels, outcome

from stallscope.analyzers.confidence_map import Knots, interpolate

# The lines lie between the steps of evidence: estimated 0.4, derived 0.7, measured 1.0.
CLASS_BANDS = ((0.0, 0.45), (0.45, 0.65), (0.65, 0.75), (0.75, 1.0))
OPEN_BANDS = ((0.0, 0.5), (0.5, 1.0))
CLASS_PRIOR = ((0.0, 0.35), (1.0, 0.99))
OPEN_PRIOR = ((0.0, 0.5), (1.0, 0.8))
PRIOR_CAPTURES = 10
FOLDS = 5


@dataclass(frozen=True, slots=True)
class Seen:
    """One verdict: its weight and cap, whether it was right, and where the capture is from."""

    is_open: bool
    weight: float
    most: float
    right: float
    origin: str


def rightness(label: Label) -> float:
    """Return 1 for the preferred class, 0 for one not accepted.

    One half where a label accepts the verdict and prefers another: it leaves open which is right.
    """
    return 0.5 * agrees(label) + 0.5 * is_first(label)


def seen(rows: Iterable[Label]) -> list[Seen]:
    """Return the verdicts on captures of which a class is expected."""
    found = []
    for row in rows:
        out = outcome(row)
        if expects_class(row) and out.grounds:
            is_open = out.verdict == "undetermined"
            weight, most = out.grounds["weight"], out.grounds["most"]
            found.append(Seen(is_open, weight, most, rightness(row), row.origin))
    return found


def fitted(some: Sequence[Seen], bands: Knots, prior: Knots) -> Knots:
    """Return a knot for each band that holds captures, never falling, between the prior's ends.

    Its value is the mean rightness of the band, drawn to the prior as by PRIOR_CAPTURES captures.
    """
    blocks: list[tuple[list[Seen], ...]] = []
    for low, high in bands:
        # A band begins after its lower end, the first with it.
        inside = [s for s in some if low < s.weight <= high or s.weight == low == 0.0]
        if inside:
            blocks.append((inside,))
        while len(blocks) > 1 and _mean(blocks[-2]) >= _mean(blocks[-1]):
            last = blocks.pop()
            blocks[-1] += last
    knots = [prior[0]]
    for block in blocks:
        rate = _mean(block)
        for inside in block:
            at = sum(s.weight for s in inside) / len(inside)
            drawn = len(inside) * rate + PRIOR_CAPTURES * interpolate(prior, at)
            value = round(drawn / (len(inside) + PRIOR_CAPTURES), 3)
            knots.append((round(at, 3), max(value, knots[-1][1])))
    last = (prior[-1][0], max(prior[-1][1], knots[-1][1]))
    return tuple(k for k in knots if k[0] < last[0]) + (last,)


def _mean(block: Iterable[Sequence[Seen]]) -> float:
    values = [s.right for band in block for s in band]
    return sum(values) / len(values)


def fit(some: Sequence[Seen]) -> tuple[Knots, Knots]:
    """Fit the knots of classes and those of undetermined."""
    return (
        fitted([s for s in some if not s.is_open], CLASS_BANDS, CLASS_PRIOR),
        fitted([s for s in some if s.is_open], OPEN_BANDS, OPEN_PRIOR),
    )


def confidence_of(one: Seen, knots: tuple[Knots, Knots]) -> float:
    """Return the confidence that a map gives to a verdict."""
    return min(one.most, interpolate(knots[one.is_open], one.weight))


def held_out(some: Sequence[Seen]) -> list[tuple[Seen, float]]:
    """Pair each verdict with the confidence of a map fitted without its fold.

    Captures of one origin are in one fold, the largest origins spread first.
    """
    sizes: dict[str, int] = {}
    for one in some:
        sizes[one.origin] = sizes.get(one.origin, 0) + 1
    folds: list[set[str]] = [set() for _ in range(FOLDS)]
    for origin in sorted(sizes, key=lambda name: (-sizes[name], name)):
        min(folds, key=lambda fold: sum(sizes[name] for name in fold)).add(origin)
    found = []
    for fold in folds:
        knots = fit([s for s in some if s.origin not in fold])
        found += [(s, confidence_of(s, knots)) for s in some if s.origin in fold]
    return found


def brier(pairs: Sequence[tuple[Seen, float]]) -> float:
    """Return the mean squared distance between confidence and rightness."""
    return sum((s.right - p) ** 2 for s, p in pairs) / len(pairs)


def with_map(some: Sequence[Seen]) -> list[tuple[Seen, float]]:
    """Pair each verdict with the confidence of a map fitted to all of them."""
    knots = fit(some)
    return [(s, confidence_of(s, knots)) for s in some]


def main() -> None:
    """Print the knots and how well they hold on captures they were not fitted to."""
    some = seen(labels())
    for name, knots in zip(("CLASS_KNOTS", "UNDETERMINED_KNOTS"), fit(some), strict=True):
        print(f"{name}: Knots = {knots}")
    print(f"{len(some)} captures of {len({s.origin for s in some})} origins")
    for name, pairs in (("fitted to all", with_map(some)), ("held out", held_out(some))):
        print(f"{name}: Brier {brier(pairs):.3f}")


if __name__ == "__main__":
    main()
