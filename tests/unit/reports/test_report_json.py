"""The JSON report against the contract, key by key."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

from stallscope.analyzers.result import Diagnosis, Distribution
from stallscope.reports import json_report

# Schema 1: what other people's scripts rely on, and after the bar what we add to it.
CONTRACT: dict[str, tuple[str, str]] = {
    "": (
        "schema tool version capture subject thresholds verdict document rules latency throughput "
        "phases kv_table measures remedies wont_help not_observable windows",
        "goal operators kernels kv_life notes replicas fleet sweep warnings calibration changes",
    ),
    "capture": ("sources cut duration_s", "cut_note empty"),
    "capture.sources.0": ("kind path", "offset_s offset_error_s"),
    "subject": ("model device devices dtype kv_dtype engine workload", ""),
    "verdict": (
        "class confidence load phase between next limits sentence chain",
        "confidence_from finding load_seen",
    ),
    "verdict.limits": ("ttft tpot throughput", ""),
    "verdict.chain.0": ("cause effect evidence", ""),
    "document": ("classes advice differs_because", "sentence"),
    "rules.0": ("id status reason measures", "text"),
    "rules.0.measures.0": ("name value unit provenance source", ""),
    "latency.ttft_s": ("mean p50 p90 p99 n", ""),
    "throughput": ("input_tokens_per_s output_tokens_per_s requests_per_s", ""),
    "phases.0": ("phase count time_s share budget", "mean_step_s class"),
    "phases.0.budget.0": ("part time_s provenance", "share source"),
    "kv_table.0": ("seq_len bytes", "provenance source"),
    "measures.0": ("name value unit provenance source", ""),
    "remedies.0": ("action flag gain check", "evidence cost"),
    "remedies.0.gain": ("metric from to error", "unit"),
    "wont_help.0": ("action because", ""),
    "not_observable.0": ("what reason how", ""),
    "windows.0": ("from_s to_s class load", "limit preemptions_inferred phases"),
    "windows.0.phases.0": ("", "phase class share"),
    "changes.0": ("", "at_s error_s phase from to figures"),
    "changes.0.from": ("", "class load limit text"),
    "changes.0.figures.0": ("", "name what unit from to provenance source"),
}


def _load(diagnosis: Diagnosis) -> dict[str, Any]:
    def refuse(constant: str) -> float:
        raise AssertionError(f"{constant} is not JSON")

    loaded = json.loads(json_report.render(diagnosis), parse_constant=refuse)
    assert isinstance(loaded, dict)
    return loaded


def _at(report: Any, path: str) -> dict[str, Any]:
    for step in path.split(".") if path else ():
        report = report[int(step)] if step.isdigit() else report[step]
    assert isinstance(report, dict)
    return report


def test_keys_are_the_contracts(busy: Diagnosis) -> None:
    report = _load(busy)
    for path, (agreed, added) in CONTRACT.items():
        assert set(_at(report, path)) == {*agreed.split(), *added.split()}, path


def test_values(busy: Diagnosis) -> None:
    report = _load(busy)
    assert (report["schema"], report["tool"], report["version"]) == (1, "stallscope", "0.1.0")
    assert report["goal"] == "throughput"
    assert report["subject"]["devices"] == 2
    assert report["subject"]["device"] == "cpu"
    assert report["subject"]["model"].startswith("tiny[red]|`*_x_*`<b>&$1\x1b[31m\nnext")
    assert report["capture"]["sources"][0]["path"] == "runs/[bold]a|b\udcff.sqlite"
    assert report["verdict"]["class"] == "capacity"
    assert report["verdict"]["next"] == "compute"
    assert report["verdict"]["between"] == []
    assert report["verdict"]["limits"] == {
        "ttft": "capacity",
        "tpot": "compute",
        "throughput": "capacity",
    }
    assert report["thresholds"]["near_limit"] == 0.9
    assert report["throughput"]["requests_per_s"] is None
    assert report["windows"][2] == {
        "from_s": 2.0,
        "to_s": 3.0,
        "class": "none",
        "load": "underloaded",
        "limit": None,
        "preemptions_inferred": None,
        "phases": [{"phase": "decode", "class": "bandwidth", "share": 0.75}],
    }
    change = report["changes"][0]
    assert (change["at_s"], change["from"]["class"], change["to"]["class"]) == (
        2.0,
        "capacity",
        "none",
    )
    assert (change["figures"][1]["from"], change["figures"][1]["to"]) == (0.9975, 0.12)
    assert [phase["class"] for phase in report["phases"]] == ["compute", "undetermined", None, None]
    assert report["kv_table"][0]["bytes"] == 3_145_728
    assert report["remedies"][0]["gain"]["from"] == 682.7
    assert report["remedies"][0]["gain"]["to"] == 911.0
    assert report["remedies"][0]["flag"]["vLLM"] == "--gpu-memory-utilization 0.95"
    assert report["remedies"][1]["gain"] is None
    evidence = [remedy["evidence"] for remedy in report["remedies"]]
    assert evidence == [["kv_used_share", "preemptions"], []]


def test_only_a_bound_has_a_side(busy: Diagnosis) -> None:
    sides = {m["name"]: m.get("side") for m in _load(busy)["measures"]}
    assert {name for name, side in sides.items() if side} == {"device_busy"}
    assert sides["device_busy"] == "upper"
    parts = _load(busy)["phases"][0]["budget"]
    assert {p["part"]: p["side"] for p in parts if "side" in p} == {"transfer": "lower"}


def test_what_is_not_a_number_is_null(busy: Diagnosis) -> None:
    spread = Distribution(math.nan, math.inf, -math.inf, 0.5, 1)
    report = _load(dataclasses.replace(busy, latency={"ttft_s": spread}))
    assert report["latency"]["ttft_s"] == {
        "mean": None,
        "p50": None,
        "p90": None,
        "p99": 0.5,
        "n": 1,
    }


def test_report_of_nothing(blind: Diagnosis) -> None:
    report = _load(blind)
    assert set(report) == {w for words in CONTRACT[""] for w in words.split()}
    assert report["capture"]["duration_s"] is None
    assert report["subject"]["model"] is None
    assert report["subject"]["device"] is None
    assert report["verdict"]["between"] == ["bandwidth", "host"]
    assert report["verdict"]["next"] is None
    assert report["latency"] == {}
    assert report["measures"] == []
