"""The Markdown report: whole, and read back by a Markdown parser that is not ours."""

from __future__ import annotations

import html
import re

import pytest
from golden_text import golden, trimmed
from markdown_it import MarkdownIt
from markdown_it.token import Token

from stallscope.analyzers.result import Diagnosis
from stallscope.reports import markdown
from stallscope.reports.blocks import plain

IMAGES = {"Timeline of steps": "report a-timeline.svg", "Roofline": "report a-roofline.svg"}
GITHUB = MarkdownIt("commonmark").enable(["table", "strikethrough"])
HOSTILE = [
    "a|b||c",
    "`code` and ``more``",
    "*bold* _em_ __init__ snake_case ~~gone~~",
    "[link](http://example.org) ![img](x.png) <b>x</b> &amp; & <!-- -->",
    r"C:\new\[x] \| end\\",
    "# heading",
    "- item",
    "+ item",
    "1. item",
    "2) item",
    "> quote",
    "===",
    "---",
    "line one\nline two\r\n\n# three",
    "$x$ and $$y$$",
    "|",
]


def _shown(rendered: str) -> str:
    return html.unescape(re.sub(r"<[^>]+>", "", rendered)).strip()


def _flat(tokens: list[Token]) -> list[Token]:
    return [token for outer in tokens for token in (outer, *(outer.children or []))]


def test_whole_report(busy: Diagnosis) -> None:
    text = markdown.render(busy, IMAGES)
    assert trimmed(text) == golden("busy.md", text)


def test_report_of_nothing(blind: Diagnosis) -> None:
    text = markdown.render(blind, {})
    assert trimmed(text) == golden("blind.md", text)
    assert "Pictures" not in text


@pytest.mark.parametrize("text", HOSTILE)
def test_foreign_text_is_shown_as_it_is(text: str) -> None:
    escaped = markdown.escape(text)
    paragraph = GITHUB.render(escaped)
    assert re.findall("<[^>]+>", paragraph) == ["<p>", "</p>"]
    assert _shown(paragraph) == plain(text)
    in_list = GITHUB.render(f"- {escaped}")
    assert _shown(in_list) == plain(text)
    assert re.findall("<[^>/]+>", in_list) == ["<ul>", "<li>"]
    in_table = GITHUB.render(f"| a | b |\n| --- | --- |\n| {escaped} | end |")
    assert in_table.count("<td>") == 2
    assert _shown(in_table.split("<td>")[1]) == plain(text)


def test_every_table_is_a_table_with_whole_rows(busy: Diagnosis) -> None:
    text = markdown.render(busy, IMAGES)
    rendered = GITHUB.render(text)
    # 1 verdict, 1 rules, 3 budgets, phases, latency, windows, 2 operators, 2 KV sizes,
    # KV life, measures.
    assert rendered.count("<table>") == 14
    for table in rendered.split("<table>")[1:]:
        rows = table.split("</table>")[0].split("<tr>")[1:]
        assert len({len(re.findall("<t[dh][ >]", row)) for row in rows}) == 1
    assert "| --- |" not in _shown(rendered)


def test_the_only_html_is_a_line_break_in_a_cell(busy: Diagnosis) -> None:
    tokens = _flat(GITHUB.parse(markdown.render(busy, IMAGES)))
    assert {t.content for t in tokens if t.type.startswith("html")} == {"<br>"}


def test_images_are_linked_by_file_name(busy: Diagnosis) -> None:
    tokens = _flat(GITHUB.parse(markdown.render(busy, IMAGES)))
    images = [(token.content, token.attrs["src"]) for token in tokens if token.type == "image"]
    assert images == [
        ("Timeline of steps", "report%20a-timeline.svg"),
        ("Roofline", "report%20a-roofline.svg"),
    ]


def test_the_version_closes_the_report(blind: Diagnosis) -> None:
    assert markdown.render(blind, {}).endswith("\n\n*stallscope 0.1.0*\n")
