"""A report as text for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO

from rich import box
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text as RichText

from stallscope.analyzers.result import Diagnosis
from stallscope.reports.blocks import (
    Bar,
    Block,
    Cell,
    Column,
    Item,
    Items,
    Kind,
    Section,
    Strip,
    Table,
    Text,
    lines,
    plain,
)
from stallscope.reports.sections import sections
from stallscope.reports.table_width import fits

NARROWEST = 80  # below it numbers would be cut
_INDENT = 2
_TONES = {"plain": "", "strong": "bold", "quiet": "dim", "line": ""}
_CELLS: dict[Kind, str] = {"text": "", "number": "", "status": "", "quiet": "dim"}
_STATUS = {"met": "bold yellow", "not met": "green", "not observable": "dim"}
_STATUS |= {"ok": "green", "limited": "yellow", "missing": "bold red", "unknown": "dim"}


def render(diagnosis: Diagnosis, *, width: int = 100, color: bool = False) -> str:
    """Return the report, no line wider than `width`; the document's line is never broken."""
    return render_sections(sections(diagnosis), width=width, color=color)


def render_sections(told: Sequence[Section], *, width: int = 100, color: bool = False) -> str:
    """Print sections to a string."""
    console = Console(
        file=StringIO(),
        width=max(width, NARROWEST),
        color_system="standard" if color else None,
        force_terminal=color,
        force_jupyter=False,
        markup=False,
        emoji=False,
        highlight=False,
        legacy_windows=False,
    )
    with console.capture() as capture:
        for index, section in enumerate(told):
            _print_section(console, section, is_first=index == 0)
    return "".join(f"{line.rstrip()}\n" for line in capture.get().splitlines())


def _print_section(console: Console, section: Section, *, is_first: bool) -> None:
    if not is_first:
        console.print()
    if section.title:
        console.print(RichText(plain(section.title), style="bold"))
    for index, block in enumerate(section.blocks):
        if index > 0:
            console.print()
        _print_block(console, block, indent=_INDENT if section.title else 0)


def _print_block(console: Console, block: Block, *, indent: int) -> None:
    match block:
        case Text(text=text, tone="line"):
            console.print(RichText(plain(text)), soft_wrap=True)
        case Text(text=text, tone=tone):
            console.print(_indented(RichText(plain(text), style=_TONES[tone]), indent))
        case Items():
            console.print(_indented(_items(block), indent))
        case Table():
            if block.caption:
                console.print(_indented(RichText(plain(block.caption)), indent))
            width = console.width - indent
            table = _table(block, console.width) if fits(block, width) else _records(block)
            console.print(_indented(table, indent))


def _indented(renderable: RenderableType, indent: int) -> Padding:
    return Padding(renderable, (0, 0, 0, indent))


def _items(block: Items) -> RichTable:
    grid = RichTable.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for number, item in enumerate(block.items, start=1):
        grid.add_row(f"{number}." if block.is_numbered else "-", _item(item))
    return grid


def _item(item: Item) -> RichText:
    text = RichText(plain(item.text))
    for detail in item.details:
        text.append(f"\n{plain(detail)}", style="dim")
    return text


def _table(block: Table, width: int) -> RichTable:
    table = RichTable(
        box=box.SIMPLE_HEAD,
        show_header=any(column.title for column in block.columns),
        show_edge=False,
        pad_edge=False,
        header_style="dim",
        border_style="dim",
    )
    for column in block.columns:
        is_number = column.kind == "number"
        table.add_column(
            column.title,
            justify="right" if is_number else "left",
            no_wrap=is_number or column.kind == "status",
            overflow="fold",
        )
    for row in block.rows:
        table.add_row(
            *(_cell(column, cell, width) for column, cell in zip(block.columns, row, strict=True))
        )
    return table


def _records(block: Table) -> RichTable:
    """Set a table that is too wide as pairs of heading and value, row by row."""
    grid = RichTable.grid(padding=(0, 1))
    grid.add_column(style="dim")
    grid.add_column(overflow="fold")
    for place, row in enumerate(block.rows):
        if place:
            grid.add_row()
        for column, cell in zip(block.columns, row, strict=True):
            grid.add_row(column.title, _cell(column, cell, 80))
    return grid


def _cell(column: Column, cell: Cell, width: int) -> RichText:
    bar_width, strip_width = min(30, width - 52), min(60, width - 40)
    text = "\n".join(lines(cell, bar_width=bar_width, strip_width=strip_width))
    if isinstance(cell, Bar | Strip):
        # Padded, so that numbers behind bars stand in one column in every table.
        return RichText(text.ljust(bar_width), style="cyan")
    style = _STATUS.get(text, "") if column.kind == "status" else _CELLS[column.kind]
    return RichText(text, style=style)
