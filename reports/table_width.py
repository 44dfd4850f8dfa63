"""Whether a table has room between a terminal's edges without words or numbers being broken."""

from __future__ import annotations

from stallscope.reports.blocks import Bar, Cell, Column, Strip, Table, lines

_BETWEEN = 3  # columns
_LONG_WORD = 12  # letters: longer ones (kernels, paths) may be broken


def fits(table: Table, width: int) -> bool:
    """Tell whether each column has its numbers whole, and the words that are not long."""
    needs = [
        max(_least(column, cell) for cell in (column.title, *(row[place] for row in table.rows)))
        for place, column in enumerate(table.columns)
    ]
    return sum(needs) + _BETWEEN * (len(needs) - 1) <= width


def _least(column: Column, cell: Cell) -> int:
    if isinstance(cell, Bar | Strip):
        return 0  # drawn as wide as there is room
    texts = lines(cell, bar_width=1, strip_width=1)
    if column.kind in ("number", "status"):
        return max(map(len, texts), default=0)
    words = (word for text in texts for word in text.split())
    return min(_LONG_WORD, max(map(len, words), default=0))
