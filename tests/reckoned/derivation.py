"""A second reckoning of a derivation: its formulas evaluated, its numbers looked up."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

_CAN = {"min": min, "max": max, "round": round}


def reckoned(formula: str, terms: Mapping[str, float]) -> float:
    """Evaluate a formula of our own report on the terms before it."""
    return float(eval(formula, {"__builtins__": {}}, {**_CAN, **terms}))


def faults(report: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with a report's `explain`: nothing, where it can be checked by hand."""
    known = {(m["name"], m["value"]) for m in report["measures"]}
    known |= {(p["part"], p["share"]) for phase in report["phases"] for p in phase["budget"]}
    wrong = []
    for step in report["explain"]:
        before: dict[str, float] = {}
        for term in step["terms"]:
            formula, value = term["formula"], term["value"]
            if formula is not None:
                if not math.isclose(reckoned(formula, before), value, rel_tol=1e-9, abs_tol=1e-9):
                    wrong.append(f"{step['id']}: {term['name']} is not {formula}")
            elif step["id"] != "confidence" and (term["name"], value) not in known:
                wrong.append(f"{step['id']}: {term['name']} {value} is no measure")
            before[term["name"]] = value
        wrong += [
            f"{step['id']}: {c['term']} is compared and not told"
            for c in step["comparisons"]
            if c["value"] not in [t["value"] for t in step["terms"] if t["name"] == c["term"]]
        ]
        if step["id"].startswith("rule-"):
            compared = {c["term"] for c in step["comparisons"]}
            missing = {t["name"] for t in step["terms"] if t["name"] not in compared}
            wrong += [f"{step['id']}: {name} is held against no line" for name in sorted(missing)]
    answers = [step["answer"] for step in report["explain"]]
    if answers.count("decides") > 1:
        wrong.append("two steps decide")
    has_decided = any(answer.startswith("decides") for answer in answers)
    if not has_decided and report["verdict"]["class"] != "undetermined":
        wrong.append("no step decides")
    # No class comes from what did not settle one.
    is_open = report["verdict"]["class"] == "undetermined"
    if report["verdict"]["finding"] == "step-unsettled" and not is_open:
        wrong.append("the finding is that nothing was settled")
    return wrong
