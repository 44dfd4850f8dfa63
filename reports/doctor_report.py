"""What can be observed here, in each format that a diagnosis has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from stallscope.profiler.evidence import Check, CheckGroup
from stallscope.reports.blocks import Column, Item, Items, Section, Table, Text, present
from stallscope.reports.json_report import SCHEMA, dumped
from stallscope.reports.markdown import render_sections as markdown_sections
from stallscope.reports.terminal import render_sections as terminal_sections

_COLUMNS = (Column("Check"), Column("Status", "status"), Column("What was found"))
_OTHERS = ("limited", "missing", "unknown")


def render_terminal(groups: Sequence[CheckGroup], *, width: int = 100, color: bool = False) -> str:
    """Return the checks as text."""
    return terminal_sections(_sections(groups), width=width, color=color)


def render_markdown(groups: Sequence[CheckGroup], *, version: str) -> str:
    """Return the checks as Markdown."""
    closing = f"stallscope {version}"
    return markdown_sections("stallscope doctor", _sections(groups), {}, closing=closing)


def render_json(groups: Sequence[CheckGroup], *, version: str) -> str:
    """Return the checks as JSON, schema 1."""
    checks = [{"group": group.title, **asdict(check)} for group in groups for check in group.checks]
    return dumped({"schema": SCHEMA, "tool": "stallscope", "version": version, "checks": checks})


def doctor_sentence(groups: Sequence[CheckGroup]) -> str:
    """Return the checks in one sentence."""
    statuses: list[str] = [check.status for check in _all(groups)]
    rest = ", ".join(f"{n} {other}" for other in _OTHERS if (n := statuses.count(other)))
    ok = f"{statuses.count('ok')} of {len(statuses)} checks are ok"
    return f"{ok}; {rest}." if rest else f"{ok}."


def _sections(groups: Sequence[CheckGroup]) -> tuple[Section, ...]:
    tables = (Section(group.title, (_table(group.checks),)) for group in groups)
    opening = Section("", (Text(doctor_sentence(groups), "strong"),))
    return present((opening, *tables, _rest(groups)))


def _table(checks: Sequence[Check]) -> Table:
    return Table(_COLUMNS, tuple((c.name, c.status, c.reason) for c in checks))


def _rest(groups: Sequence[CheckGroup]) -> Section:
    items = [
        Item(f"{check.name}: {check.fix}", (f"Lost without it: {check.lost}",))
        for check in _all(groups)
        if check.fix is not None and not check.fix.startswith("see ")
    ]
    return Section("How to get the rest", (Items(tuple(items)),))


def _all(groups: Sequence[CheckGroup]) -> Iterator[Check]:
    for group in groups:
        yield from group.checks
