"""The tables of docs/corpus.md, made from what the program says today.

`python tests/corpus/page.py` prints them; with --write they replace those on the page.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from fit import CLASS_PRIOR, OPEN_PRIOR, Seen, brier, confidence_of, held_out, seen
from judged import (
    ROOT,
    Label,
    agrees,
    expects_choice,
    expects_class,
    is_first,
    labels,
    outcome,
    share,
)

from stallscope.analyzers.confidence_map import CLASS_KNOTS, UNDETERMINED_KNOTS

PAGE = ROOT / "docs" / "corpus.md"
BEGIN, END = "<!-- begin: tests/corpus/page.py -->\n", "<!-- end -->\n"


def tables(rows: Sequence[Label]) -> str:
    """Return the page's generated part."""
    return "\n".join((figures(rows), confusion(rows), reliability(rows), files(rows)))


def figures(rows: Sequence[Label]) -> str:
    """Say how many agree, and how many are the first choice."""
    judged = [row for row in rows if expects_class(row)]
    chosen = [row for row in rows if expects_choice(row)]
    return (
        "| figure | files | share |\n|---|---|---|\n"
        f"| agreement | {sum(map(agrees, judged))} of {len(judged)} "
        f"| {share(map(agrees, judged)):.0%} |\n"
        f"| first choice | {sum(map(is_first, chosen))} of {len(chosen)} "
        f"| {share(map(is_first, chosen)):.0%} |\n"
    )


def confusion(rows: Sequence[Label]) -> str:
    """Count verdicts by the class that was to be preferred."""
    judged = [row for row in rows if expects_class(row)]
    said = Counter((row.accept[0], outcome(row).verdict or "refused") for row in judged)
    preferred = sorted({first for first, _ in said})
    verdicts = sorted({verdict for _, verdict in said})
    lines = [
        f"| preferred ↓ verdict → | {' | '.join(verdicts)} |",
        "|---" * (len(verdicts) + 1) + "|",
        *(
            f"| {first} | {' | '.join(str(said[first, v] or '') for v in verdicts)} |"
            for first in preferred
        ),
    ]
    return "\n".join(lines) + "\n"


def reliability(rows: Sequence[Label]) -> str:
    """Compare confidence with what was right, as shown and as a map fitted to others gives it."""
    some = seen(rows)
    shown = [(one, confidence_of(one, (CLASS_KNOTS, UNDETERMINED_KNOTS))) for one in some]
    prior = [(one, confidence_of(one, (CLASS_PRIOR, OPEN_PRIOR))) for one in some]
    lines = [
        f"{len(some)} verdicts on captures of {len({one.origin for one in some})} origins. "
        f"Mean squared error (Brier score): {brier(shown):.3f} as shown, "
        f"{brier(held_out(some)):.3f} held out, {brier(prior):.3f} by the prior alone.\n",
        "| confidence | verdicts | mean | right | held out: verdicts | mean | right | wrong |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for low, high in pairwise(_EDGES):
        inside, others = _within(shown, low, high), _within(held_out(some), low, high)
        if inside or others:
            lines.append(f"| {low:.2f} to {min(high, 1.0):.2f} | {_row(inside)} | {_row(others)}")
            lines[-1] += f" | {sum(one.right == 0 for one, _ in inside)} |"
    lines += ["", *_sure(shown)]
    return "\n".join(lines) + "\n"


_EDGES = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 1.01)
SURE = 0.8


def _within(
    pairs: Sequence[tuple[Seen, float]], low: float, high: float
) -> list[tuple[Seen, float]]:
    return [(one, p) for one, p in pairs if low <= round(p, 2) < high]


def _row(pairs: Sequence[tuple[Seen, float]]) -> str:
    if not pairs:
        return "0 | |"
    mean = sum(p for _, p in pairs) / len(pairs)
    right = sum(one.right for one, _ in pairs) / len(pairs)
    return f"{len(pairs)} | {mean:.2f} | {right:.2f}"


def _sure(shown: Sequence[tuple[Seen, float]]) -> list[str]:
    """Count what is said with much confidence, of all verdicts and of those that name a class."""
    lines = [
        f"| confidence {SURE} or more | verdicts | not accepted | share of all that are accepted |",
        "|---|---|---|---|",
    ]
    classes = [(one, p) for one, p in shown if not one.is_open]
    for name, pairs in (("all", shown), ("that name a class", classes)):
        sure, wrong, part = surest([(one.right > 0, p) for one, p in pairs])
        lines.append(f"| {name} | {sure} | {wrong} | {part:.0%} |")
    return lines


def surest(verdicts: Sequence[tuple[bool, float]]) -> tuple[int, int, float]:
    """Count the sure, the wrong among them, and return the share of the right that are sure."""
    sure = [is_right for is_right, p in verdicts if round(p, 2) >= SURE]
    right = sum(is_right for is_right, _ in verdicts)
    return len(sure), len(sure) - sum(sure), sum(sure) / right if right else 0.0


def files(rows: Sequence[Label]) -> str:
    """List every file with its verdict."""
    lines = ["| file | verdict | accepted |", "|---|---|---|"]
    for row in rows:
        seen = outcome(row)
        verdict = f"{seen.verdict} {seen.confidence:.2f}" if seen.verdict else "refused"
        mark = "" if not expects_class(row) or agrees(row) else " **no**"
        accepted = ", ".join(row.accept) or ("refusal" if "refused" in row.loads else "any")
        lines.append(f"| {row.file} | {verdict}{mark} | {accepted} |")
    return "\n".join(lines) + "\n"


def written(page: Path = PAGE) -> str:
    """Return the tables that stand on the page."""
    return page.read_text(encoding="utf-8").split(BEGIN)[1].split(END)[0]


def main() -> None:
    """Print the tables, or write them."""
    made = tables(labels())
    if sys.argv[1:] == ["--write"]:
        text = PAGE.read_text(encoding="utf-8")
        before, after = text.split(BEGIN)[0], text.split(END)[1]
        PAGE.write_text(f"{before}{BEGIN}{made}{END}{after}", encoding="utf-8")
    else:
        print(made)


if __name__ == "__main__":
    main()
