"""A report before it has a form: sections of text, tables and lists that every format prints."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from stallscope.reports.drawing import draw_bar, draw_strip

# "line" is never broken: scripts look for it. "quiet" explains, "strong" is the answer.
Tone = Literal["plain", "strong", "quiet", "line"]
Kind = Literal["text", "number", "status", "quiet"]


@dataclass(frozen=True, slots=True)
class Bar:
    """A share of a whole, drawn from the left; below zero nothing is drawn."""

    fraction: float


@dataclass(frozen=True, slots=True)
class Strip:
    """Stretches of a line from 0 to 1 that are marked."""

    spans: tuple[tuple[float, float], ...]


Cell = str | tuple[str, ...] | Bar | Strip  # a tuple's lines stand one under the other


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph."""

    text: str
    tone: Tone = "plain"


@dataclass(frozen=True, slots=True)
class Column:
    """A column's heading (empty in a table without headings) and what its cells are."""

    title: str
    kind: Kind = "text"


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under columns, with an optional line above."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Item:
    """A list entry and the lines that belong to it."""

    text: str
    details: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Items:
    """A list, numbered where the order means something."""

    items: tuple[Item, ...]
    is_numbered: bool = False


Block = Text | Table | Items


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and its blocks; the first section of a report has no heading."""

    title: str
    blocks: tuple[Block, ...]


def present(sections: Sequence[Section]) -> tuple[Section, ...]:
    """Drop empty tables and lists, and sections in which nothing but explanation is left."""
    kept = (Section(s.title, tuple(b for b in s.blocks if _has_content(b))) for s in sections)
    return tuple(s for s in kept if any(_tells(block) for block in s.blocks))


def plain(text: str) -> str:
    """Return foreign text on one line, with control and direction characters made visible.

    Names and paths come from files that somebody sent: they must not move a terminal's cursor,
    and a path's undecodable bytes must not stop a report from being written.
    """
    line = " ".join(text.split())
    return line if line.isprintable() else "".join(map(_visible, line))


def lines(cell: Cell, *, bar_width: int, strip_width: int) -> tuple[str, ...]:
    """Return a cell's lines, each made plain; drawings get the width that the format has."""
    match cell:
        case Bar(fraction=fraction):
            return (draw_bar(fraction, bar_width),)
        case Strip(spans=spans):
            return (draw_strip(spans, strip_width),)
        case str():
            return (plain(cell),)
        case _:
            return tuple(map(plain, cell))


def _visible(char: str) -> str:
    if unicodedata.category(char) in ("Cc", "Cf", "Cs"):
        return char.encode("unicode_escape", "surrogatepass").decode("ascii")
    return char


def _has_content(block: Block) -> bool:
    match block:
        case Text(text=text):
            return bool(text)
        case Table(rows=rows):
            return bool(rows)
        case Items(items=items):
            return bool(items)


def _tells(block: Block) -> bool:
    return not (isinstance(block, Text) and block.tone == "quiet")
