"""A fleet in each form of the report."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from stallscope.analyzers.result import Diagnosis, Fleet, Replica
from stallscope.reports import json_report, markdown, terminal

HELD = Replica(
    replica="10.0.0.1:8000",
    bottleneck="capacity",
    confidence=0.8,
    load="overloaded",
    sentence="The KV cache is full.",
    in_flight=42.0,
    waiting=30.0,
    running=12.0,
    kv_used=0.998,
    output_tokens_per_s=120.4,
    remark="slow: 10 tokens/s",
)
UNTOLD = Replica(
    replica="10.0.0.2:8000",
    bottleneck="none",
    confidence=0.9,
    load="idle",
    sentence="Nothing limits this run.",
    in_flight=0.0,
    waiting=0.0,
    running=0.0,
    kv_used=None,
    output_tokens_per_s=None,
)
FLEET = Fleet("Capacity limits 1 of 2 replicas.", None, ("10.0.0.1:8000",), "One has room.")


@pytest.fixture
def fleet(busy: Diagnosis) -> Diagnosis:
    return replace(busy, replicas=(HELD, UNTOLD), fleet=FLEET)


def test_the_section_for_people(fleet: Diagnosis) -> None:
    text = terminal.render(fleet, width=80)
    section = text.split("\nReplicas\n")[1].split("\n\nRule check\n")[0]
    assert section.splitlines() == [
        "  Capacity limits 1 of 2 replicas.",
        "",
        "  Replica         Verdict    Load         Run   Wait         KV   Tokens/s",
        "  " + "─" * 72,
        "  10.0.0.1:8000   capacity   overloaded    12     30     99.8 %        120",
        "  10.0.0.2:8000   none       idle           0      0   not told   not told",
        "",
        "  - 10.0.0.1:8000: The KV cache is full.",
        "    slow: 10 tokens/s",
        "",
        "  Run and wait: requests running and waiting, means over time of the scraped",
        "  gauges; KV is the highest use seen; tokens/s is the rise of the counter of",
        "  generated tokens (derived).",
    ]
    assert text.index("Replicas") < text.index("Rule check")


def test_what_the_verdict_says_already_is_not_said_twice(fleet: Diagnosis) -> None:
    said = replace(fleet.verdict, sentence=f"{FLEET.sentence} And more.")
    text = terminal.render(replace(fleet, verdict=said))
    assert text.count(FLEET.sentence) == 1


def test_the_table_in_markdown(fleet: Diagnosis) -> None:
    lines = markdown.render(fleet, {}).splitlines()
    assert "| **10.0.0.2:8000** | none | idle | 0 | 0 | not told | not told |" in lines


def test_in_json(fleet: Diagnosis, busy: Diagnosis) -> None:
    found = json.loads(json_report.render(fleet))
    assert found["replicas"][0] == {
        "replica": "10.0.0.1:8000",
        "class": "capacity",
        "confidence": 0.8,
        "load": "overloaded",
        "sentence": "The KV cache is full.",
        "in_flight": 42.0,
        "waiting": 30.0,
        "running": 12.0,
        "kv_used": 0.998,
        "output_tokens_per_s": 120.4,
        "remark": "slow: 10 tokens/s",
        "limit": None,
    }
    assert found["fleet"] == {
        "sentence": "Capacity limits 1 of 2 replicas.",
        "common_limit": None,
        "stragglers": ["10.0.0.1:8000"],
        "imbalance": "One has room.",
    }
    alone = json.loads(json_report.render(busy))
    assert (alone["replicas"], alone["fleet"]) == ([], None)
