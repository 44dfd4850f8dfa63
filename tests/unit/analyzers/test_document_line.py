"""The document's line, and why the verdict differs from it where it does."""

from __future__ import annotations

import itertools

import pytest

from stallscope.analyzers.document import document_verdict
from stallscope.analyzers.result import RuleResult
from stallscope.profiler.evidence import Measure

NO_FAILURE = Measure("allocation_failures", 0, "count", "measured", "a test")
FAILURE = Measure("allocation_failures", 1, "count", "measured", "a test")


def rules(failures: Measure = NO_FAILURE, **statuses: str) -> tuple[RuleResult, ...]:
    """Rules that are not met unless said otherwise; each reason names its rule."""
    names = {"capacity": (failures,), "bandwidth": (), "scheduling": (), "decode-focus": ()}
    return tuple(
        RuleResult(
            name, "", statuses.get(name.replace("-", "_"), "not met"), f"{name} numbers", seen
        )
        for name, seen in names.items()
    )


@pytest.mark.parametrize(
    ("bottleneck", "statuses"),
    [
        ("capacity", {"capacity": "met"}),
        ("bandwidth", {"bandwidth": "met"}),
        ("scheduling", {"scheduling": "met"}),
        ("none", {}),
        ("undetermined", {}),
        ("none", {"decode_focus": "met"}),
    ],
)
def test_no_reason_where_rules_and_verdict_agree(bottleneck: str, statuses: dict[str, str]) -> None:
    found = document_verdict(bottleneck, rules(**statuses), preempts=False)
    assert found.differs_because is None


def test_the_line_names_classes_focus_and_what_cannot_be_observed() -> None:
    found = document_verdict(
        "capacity",
        rules(capacity="met", bandwidth="not observable", scheduling="met", decode_focus="met"),
        preempts=False,
    )
    assert found.classes == ("capacity", "scheduling")
    assert found.advice == "decode first"
    assert found.sentence == (
        "By the document's rules: capacity, scheduling; decode first; 1 not observable."
    )
    nothing = document_verdict("none", rules(), preempts=False)
    assert (nothing.classes, nothing.advice) == ((), None)
    assert nothing.sentence == "By the document's rules: no bottleneck shown."
    named = document_verdict("none", rules(scheduling="not observable"), preempts=False)
    assert named.sentence == (
        "By the document's rules: no bottleneck shown; not observable: scheduling."
    )


@pytest.mark.parametrize(
    "statuses", [*itertools.product(("met", "not met", "not observable"), repeat=4)], ids="/".join
)
def test_the_line_fits_a_terminal_of_80_columns(statuses: tuple[str, ...]) -> None:
    names = ("capacity", "bandwidth", "scheduling", "decode_focus")
    by_rule = dict(zip(names, statuses, strict=True))
    found = document_verdict("none", rules(**by_rule), preempts=False)
    assert len(found.sentence) <= 80
    met = [name for name in names[:3] if by_rule[name] == "met"]
    assert [name for name in names[:3] if name in found.sentence.partition(";")[0]] == met


def why(
    bottleneck: str, failures: Measure = NO_FAILURE, *, preempts: bool = False, **statuses: str
) -> str | None:
    found = document_verdict(bottleneck, rules(failures, **statuses), preempts=preempts)
    return found.differs_because


def test_capacity_without_out_of_memory() -> None:
    preempts = why("capacity", preempts=True)
    assert preempts == "no OOM: this engine preempts instead (capacity numbers)"
    waits = why("capacity")
    assert waits == "no OOM: requests wait for KV room instead (capacity numbers)"


def test_capacity_with_out_of_memory_below_the_limit_does_not_deny_it() -> None:
    assert why("capacity", FAILURE) == (
        "an allocation was refused, but capacity numbers: it asked for more than was free"
    )


def test_a_rule_that_cannot_be_observed() -> None:
    assert why("bandwidth", bandwidth="not observable") == (
        "the bandwidth rule cannot be observed here: bandwidth numbers"
    )


def test_bandwidth_below_the_documents_line() -> None:
    assert why("bandwidth") == (
        "the bandwidth rule is not met (bandwidth numbers), yet reading weights and KV, at the "
        "speed this device reaches at these shapes, is the largest known part of the step"
    )


def test_a_speed_that_the_datasheet_states_was_reached_by_nobody() -> None:
    found = document_verdict("bandwidth", rules(), preempts=False, budget_by="datasheet")
    assert (found.differs_because or "").endswith(
        "yet reading weights and KV, at the speed of the datasheet, is the largest known part of "
        "the step"
    )
    unread = document_verdict("bandwidth", rules(), preempts=False, budget_by=None)
    assert "counters and kernels" in (unread.differs_because or "")


def test_scheduling_says_nothing_of_a_cap_that_may_not_be_the_cause() -> None:
    assert why("scheduling") == (
        "the scheduling rule is not met (scheduling numbers), "
        "yet requests queue, and not for KV room"
    )


def test_scheduling_without_a_queue_speaks_of_none() -> None:
    found = document_verdict("scheduling", rules(), preempts=False, queues=False)
    assert found.differs_because == (
        "the scheduling rule is not met (scheduling numbers), yet requests that were let in get "
        "hardly a token, or none"
    )


@pytest.mark.parametrize(
    ("bottleneck", "end"),
    [
        ("host", "but the step budget decides otherwise"),
        ("undetermined", "but the evidence does not settle what limits the run"),
        ("none", "but the engine idles for most of the time"),
    ],
)
def test_a_rule_is_met_and_the_verdict_is_another(bottleneck: str, end: str) -> None:
    assert why(bottleneck, bandwidth="met") == (
        f"the bandwidth rule is met (bandwidth numbers), {end}"
    )


def test_another_rule_is_met_beside_the_verdicts_own() -> None:
    assert why("capacity", FAILURE, capacity="met", scheduling="met") == (
        "the scheduling rule is met (scheduling numbers) as well, but capacity binds first"
    )


def test_another_rule_is_met_and_the_verdicts_own_is_not() -> None:
    assert why("capacity", scheduling="met") == (
        "the scheduling rule is met (scheduling numbers); "
        "no OOM: requests wait for KV room instead (capacity numbers)"
    )


def test_a_class_that_the_rules_do_not_know() -> None:
    assert why("compute") == "the rules know no compute class"
