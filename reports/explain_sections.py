"""How the verdict was reached, step by step: for whoever wants to check it by hand."""

from __future__ import annotations

from collections.abc import Iterator

from stallscope.analyzers.explain.result import Comparison, ExplainStep, Term
from stallscope.analyzers.result import Diagnosis
from stallscope.reports import format as fmt
from stallscope.reports.blocks import Item, Items, Section, Text

_ANSWERS = {True: "holds", False: "fails", None: "not settled by this bound, which is off"}
_HOW = (
    "In the order of docs/verdict.md: each number with its provenance and source, what was worked "
    "out from it, and how far each comparison is from the other answer."
)


def derivation(diagnosis: Diagnosis) -> Section:
    """The steps, each with its numbers, arithmetic and comparisons."""
    items = tuple(_item(step) for step in diagnosis.explain)
    return Section("How the verdict was derived", (Text(_HOW, "quiet"), Items(items, True)))


def _item(step: ExplainStep) -> Item:
    details = (*map(_term, step.terms), *(_comparison(c) for c in step.comparisons))
    return Item(f"{step.question} {_answer(step)}: {step.because}", details)


def _answer(step: ExplainStep) -> str:
    return step.answer[:1].upper() + step.answer[1:]


def _term(term: Term) -> str:
    return f"{term.name} = {' '.join(_said(term))}"


def _said(term: Term) -> Iterator[str]:
    if term.formula is not None:
        yield f"{term.formula} ="
    yield fmt.exact(term.value, term.unit)
    sure = fmt.provenance(term.provenance, term.side)
    yield f"({sure}; {term.source})" if term.source and term.formula is None else f"({sure})"


def _comparison(c: Comparison) -> str:
    line = f"{c.term} {fmt.exact(c.value, '')} {c.sign} {fmt.exact(c.limit, '')}"
    if c.threshold is not None:
        line += f" (threshold {c.threshold})"
    return f"{line}: {_ANSWERS[c.holds]} by {fmt.exact(abs(c.distance), '')}"
