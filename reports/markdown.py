"""A report as Markdown whose tables and pictures show on GitHub."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import quote

from stallscope.analyzers.result import Diagnosis
from stallscope.reports.blocks import (
    Block,
    Cell,
    Column,
    Item,
    Items,
    Section,
    Table,
    Text,
    lines,
    plain,
)
from stallscope.reports.sections import sections

_HTML = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
# Everything that GitHub reads as markup inside a line; "_" only at a word's edge, where it counts.
_MARKUP = re.compile(r"[\\`*\[\]|~$]|(?<![^\W_])_|_(?![^\W_])")
_AT_START = re.compile(r"^(?:([-+=:#]+)(?=\s|$)|(\d+)([.)])(?=\s|$))")
_TONES = {"plain": "{}", "strong": "**{}**", "quiet": "*{}*", "line": "{}"}


def render(diagnosis: Diagnosis, images: Mapping[str, str]) -> str:
    """Return the report; `images` are titles and file names beside the report."""
    return render_sections(
        "stallscope report", sections(diagnosis), images, closing=f"stallscope {diagnosis.version}"
    )


def render_sections(
    title: str, told: Sequence[Section], images: Mapping[str, str], *, closing: str
) -> str:
    """Print sections under a title, the pictures after the verdict and the rules."""
    parts = [f"# {escape(title)}"]
    for index, section in enumerate(told):
        parts.extend(_section(section))
        if index == min(1, len(told) - 1):
            parts.extend(_pictures(images))
    return "\n\n".join([*parts, f"*{escape(closing)}*"]) + "\n"


def escape(text: str) -> str:
    """Return foreign text so that GitHub shows it and reads nothing into it."""
    line = _MARKUP.sub(lambda found: f"\\{found[0]}", plain(text))
    line = _AT_START.sub(_escaped_start, line)
    return "".join(_HTML.get(char, char) for char in line)


def _escaped_start(found: re.Match[str]) -> str:
    return f"\\{found[1]}" if found[1] else f"{found[2]}\\{found[3]}"


def _section(section: Section) -> Iterator[str]:
    if section.title:
        yield f"## {escape(section.title)}"
    for block in section.blocks:
        yield from _block(block)


def _pictures(images: Mapping[str, str]) -> Iterator[str]:
    if images:
        yield "## Pictures"
    for title, name in images.items():
        yield f"![{escape(title)}]({quote(name)})"


def _block(block: Block) -> Iterator[str]:
    match block:
        case Text(text=text, tone=tone):
            yield _TONES[tone].format(escape(text))
        case Items():
            yield "\n".join(_items(block))
        case Table():
            if block.caption:
                yield escape(block.caption)
            yield "\n".join(_table(block))


def _items(block: Items) -> Iterator[str]:
    for number, item in enumerate(block.items, start=1):
        yield from _item(item, f"{number}." if block.is_numbered else "-")


def _item(item: Item, mark: str) -> Iterator[str]:
    yield f"{mark} {escape(item.text)}"
    for detail in item.details:
        yield f"{' ' * len(mark)} - {escape(detail)}"


def _table(block: Table) -> Iterator[str]:
    yield _row(escape(column.title) for column in block.columns)
    yield _row("---:" if column.kind == "number" else "---" for column in block.columns)
    for row in block.rows:
        yield _row(map(_cell, block.columns, row))


def _cell(column: Column, cell: Cell) -> str:
    text = "<br>".join(map(escape, lines(cell, bar_width=20, strip_width=40)))
    return f"**{text}**" if column.kind == "status" and text else text


def _row(cells: Iterator[str]) -> str:
    return f"| {' | '.join(cells)} |"
