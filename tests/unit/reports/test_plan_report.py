"""A plan in words, as Markdown and as JSON; its numbers worked out by hand."""

from __future__ import annotations

import dataclasses
import json
import re

import pytest

from stallscope.analyzers.plan.options import PlanOptions
from stallscope.analyzers.plan.planner import plan
from stallscope.analyzers.plan.result import Plan
from stallscope.profiler.devices import load_device
from stallscope.profiler.models import load_model
from stallscope.reports.plan_report import render_json, render_markdown, render_terminal
from stallscope.reports.plan_sections import plan_sentence

LLAMA = load_model("llama-7b")
A100 = load_device("a100-sxm4-40gb")


def planned(**options: object) -> Plan:
    return plan(dataclasses.replace(PlanOptions(LLAMA, A100, dtype="fp16"), **options))


def squeezed(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


def test_text_holds_the_worked_numbers() -> None:
    lines = squeezed(render_terminal(planned(kv_lengths=(2048,)), width=120))
    # 2 · 4096² FLOPs on 2 · (4096² + 2 · 4096) bytes for one row; 512 times that for 512 rows.
    q_proj = [line for line in lines if line.startswith("q_proj")]
    assert q_proj[0].startswith("q_proj 32 17.2 GFLOP 41.9 MB 409.6 compute")
    assert q_proj[1].startswith("q_proj 32 33.6 MFLOP 33.6 MB 1.00 memory")
    # 312 TFLOP/s ÷ 1.555 TB/s
    assert any(line.startswith("Ridge point: 200.6 FLOP/B") for line in lines)
    # 3 · 4096 · 11008 · 32 of 6,738,415,616 parameters
    assert "Parameters 6,738,415,616, 64.2 % of them in the FFN" in lines
    # 2 · 32 · 32 · 128 · 2 bytes · 2048 tokens
    assert any(line.startswith("2,048 1 GiB 1,073,741,824") for line in lines)


def test_sentence_names_what_limits_each_phase() -> None:
    # 0.9 · 40 GiB − 13,476,831,232 B of weights − 157,414,400 B of activations leave 25.0 GB;
    # a request's 767 tokens take 48 blocks of 16 · 524,288 B: 62 such fit, a 63rd does not.
    assert plan_sentence(planned()) == (
        "llama-7b with fp16 weights and fp16 KV on a100-sxm4-40gb: "
        "the limit is compute in prefill and bandwidth in decode; 62 requests fit at full length."
    )


def test_sentence_says_when_it_does_not_fit() -> None:
    t4 = load_device("t4")  # 16 GiB: 14.4 GiB usable, 12.55 GiB of weights, 0.15 of activations
    assert plan_sentence(planned(device=t4, output_tokens=4096)).endswith("does not fit on t4.")
    two = planned(device=t4, num_devices=2, output_tokens=512)
    assert " on 2 × t4: " in plan_sentence(two)


def test_without_a_device_there_are_no_times() -> None:
    text = render_terminal(planned(device=None))
    assert "Floor" not in text
    assert "TTFT" not in text
    assert "To get it: add --gpu NAME" in text


def test_markdown_has_the_same_sections() -> None:
    whole = planned()
    text = render_markdown(whole, version="9.9.9")
    titles = re.findall(r"^## (.+)$", text, flags=re.MULTILINE)
    printed = render_terminal(whole).splitlines()
    assert titles
    assert [title for title in titles if title not in printed] == []
    assert text.startswith("# stallscope plan\n")
    assert text.endswith("*stallscope 9.9.9*\n")


def test_json_keeps_its_contract() -> None:
    report = json.loads(render_json(planned(kv_lengths=(512, 2048)), version="9.9.9"))
    assert (report["schema"], report["tool"], report["version"]) == (1, "stallscope", "9.9.9")
    assert report["subject"]["model"] == "llama-7b"
    memory = ["weights_bytes", "kv_bytes_per_token", "kv_bytes", "activation_bytes", "free_bytes"]
    assert set(report["memory"]) >= {*memory, "max_concurrency"}
    assert report["memory"]["kv_bytes_per_token"] == 524_288
    table = [(row["seq_len"], row["bytes"]) for row in report["kv_table"]]
    assert table == [(512, 268_435_456), (2048, 1_073_741_824)]
    for phase in ("prefill", "decode"):
        assert set(report[phase]) >= {"time_s", "budget", "error"}
        parts = sum(part["time_s"] for part in report[phase]["budget"])
        assert parts == pytest.approx(report[phase]["time_s"])
    for name in ("ttft_s", "tpot_s", "throughput_tokens_per_s"):
        assert set(report[name]) >= {"value", "unit", "error", "worst"}
        assert report[name]["expected_error"] == 0.30
    # One request at a time: every token but the first comes from a decode step.
    assert report["tpot_s"]["value"] == pytest.approx(report["decode"]["time_s"], rel=0.01)


def test_json_without_a_device_is_null_and_not_zero() -> None:
    report = json.loads(render_json(planned(device=None), version="9.9.9"))
    assert report["ttft_s"] is report["tpot_s"] is report["throughput_tokens_per_s"] is None
    assert report["decode"]["time_s"] is report["decode"]["error"] is None
    assert report["memory"]["free_bytes"] is report["memory"]["max_concurrency"] is None


def test_several_devices_say_which_sizes_are_of_each() -> None:
    # 524,288 bytes a token over all, 131,072 on each of four.
    text = render_terminal(planned(num_devices=4, kv_lengths=(2048,)), width=200)
    assert "KV cache per token: 131,072 bytes on each device." in text
    assert "over all 4 devices" in text
    assert "each device." not in render_terminal(planned(), width=200)


def test_a_plan_that_does_not_fit_says_what_it_could_not_work_out() -> None:
    text = render_terminal(planned(device=load_device("t4"), dtype="fp32"), width=200)
    assert "TTFT, TPOT and throughput: not one request fits" in text


def test_the_limit_under_load_is_told_and_is_json_as_a_verdict_is() -> None:
    whole = planned()
    assert whole.limit is not None
    text = " ".join(render_terminal(whole, width=120).split())
    assert f"Under this load: {whole.limit.sentence}" in text
    verdict = json.loads(render_json(whole, version="9.9.9"))["verdict"]
    assert (verdict["class"], verdict["load"]) == ("bandwidth", "served")
    assert set(verdict["limits"]) == {"ttft", "tpot", "throughput"}
    assert "confidence" not in verdict
    assert json.loads(render_json(planned(device=None), version="9.9.9"))["verdict"] is None


def test_a_wait_longer_than_the_time_to_first_token_is_explained() -> None:
    """Room for 11 whole requests of 1,536 tokens: five of 16 are let in and preempted later."""
    load = {"device": load_device("a10g"), "input_tokens": 512, "output_tokens": 1024}
    pairs = (("fp16", "fp16"), ("fp16", "int8"))
    full = planned(**load, concurrency=16, choices=pairs)
    assert full.ttft_s is not None
    assert (full.choices[0].wait_s or 0) > (full.ttft_s.expected or 0) > 0
    said = "whenever it is preempted after that, which is in TPOT"
    assert said in " ".join(render_terminal(full).split())
    roomy = planned(**load, concurrency=1, choices=pairs)
    assert said not in " ".join(render_terminal(roomy).split())


def test_the_headline_and_the_notes_agree_with_the_limit_under_the_load() -> None:
    """26 million parameters take an H100 microseconds, the host 1.27 ms."""
    small = planned(model=load_model("tiny-26m"), device=load_device("h100-sxm"))
    assert (
        "the limit is the host under this load (at best bandwidth in prefill and bandwidth in "
        "decode); "
    ) in plan_sentence(small)
    assert small.tpot_s is not None
    assert small.tpot_s.expected is not None
    ratio = small.tpot_s.expected / small.tpot_s.value
    assert ratio > 50
    (note,) = [note for note in small.notes if note.startswith("At best")]
    assert f"{ratio:,.0f} times as long is expected here" in note
    assert "3.3 times" not in note
    usual = planned()
    assert any("up to 3.3 times as long" in note for note in usual.notes)
    assert "under this load" not in plan_sentence(usual)  # bandwidth, as in decode at best


def test_what_is_not_judged_under_its_load_has_a_limit_at_best_only() -> None:
    many = planned(concurrency=129)
    assert many.limit is None
    assert ": at best the limit is compute in prefill and bandwidth in decode; " in plan_sentence(
        many
    )
