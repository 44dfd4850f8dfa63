"""The tables of docs/corpus.md, made from what the program says today.

`python tests/corpus/page.py` prints them; with --write they replace those on the page.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

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
    """Compare confidence with agreement; "undetermined" claims no class."""
    judged = [row for row in rows if expects_class(row) and outcome(row).confidence is not None]
    lines = ["| confidence | files | mean confidence | agree |", "|---|---|---|---|"]
    for low, high in ((0.0, 0.5), (0.5, 0.75), (0.75, 1.01)):
        some = [
            row
            for row in judged
            if outcome(row).verdict != "undetermined"
            and low <= (outcome(row).confidence or 0.0) < high
        ]
        if some:
            mean = sum(outcome(row).confidence or 0.0 for row in some) / len(some)
            name = f"{low:.2f} to {min(high, 1.0):.2f}"
            lines.append(f"| {name} | {len(some)} | {mean:.2f} | {share(map(agrees, some)):.0%} |")
    return "\n".join(lines) + "\n"


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
