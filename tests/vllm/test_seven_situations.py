"""Seven situations of a real vLLM server, each made on purpose, and what `attach` says of them."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from vllm_attach import Report, Watch, load_command, loaded, stallscope
from vllm_server import Server

from stallscope.profiler.capture_file import read_capture

PREEMPTED = Path(__file__).with_name("vllm_preempted.py")

pytestmark = [pytest.mark.vllm, pytest.mark.timeout(1500)]


def classes(report: Report) -> list[str]:
    return [window["class"] for window in report["windows"]]


def links(report: Report) -> list[tuple[str, str]]:
    return [(link["cause"], link["effect"]) for link in report["verdict"]["chain"]]


def measured(report: Report, name: str) -> float:
    return float(next(m["value"] for m in report["measures"] if m["name"] == name))


def missing(report: Report, word: str) -> list[str]:
    return [m["what"] for m in report["not_observable"] if word in m["what"]]


def told(report: Report) -> tuple[str, str]:
    return report["verdict"]["class"], report["verdict"]["load"]


def tokens_in(seconds: float, server: Server) -> int:
    """Return how many tokens one client gets in a time, as this machine is now."""
    start_s = time.monotonic()
    subprocess.run(load_command(server, "--requests", "3", "--output", "32"), check=True)
    return max(16, round(seconds * 3 * 32 / (time.monotonic() - start_s)))


def test_an_idle_server_has_no_limit(capped: Server, attach: Watch) -> None:
    report = attach(capped, seconds=12)
    assert told(report) == ("none", "idle")
    assert set(classes(report)) == {"none"}
    assert report["verdict"]["chain"] == []


def test_one_request_every_five_seconds_is_no_limit(capped: Server, attach: Watch) -> None:
    # A second and a half of work each; two looks a second cannot miss them all.
    load = ("--every", "5", "--seconds", "28", "--output", str(tokens_in(1.6, capped)))
    report = attach.load(capped, "--interval", "0.5", load=load)
    assert told(report) == ("none", "underloaded")
    # A window that one request fills is served; most are not, and none has a limit.
    found = classes(report)
    assert set(found) <= {"none", "undetermined"}
    assert found.count("none") >= len(found) / 2
    assert report["verdict"]["chain"] == []


TWO = ("--clients", "2", "--output", "128", "--seconds", "20")


def test_two_clients_are_served_and_the_step_is_shared_out(
    capped: Server, attach: Watch, device_file: Path
) -> None:
    options = ("--model", str(capped.model), "--dtype", "fp32", "--gpu-file", str(device_file))
    report = attach.load(capped, *options, load=TWO)
    assert report["verdict"]["load"] == "served"
    verdict = report["verdict"]
    limits = {"host", "bandwidth"}
    assert verdict["class"] in {*limits, "undetermined"}
    if verdict["class"] == "undetermined":
        assert set(verdict["between"]) <= limits
    budget = {part["part"]: part["time_s"] for part in report["phases"][-1]["budget"]}
    assert budget["weights"] > 0


def test_two_clients_of_an_unknown_model_end_with_the_line_to_type(
    capped: Server, attach: Watch
) -> None:
    report = attach.load(capped, load=TWO)
    assert told(report) == ("undetermined", "served")
    assert "--model" in report["verdict"]["sentence"]
    assert "--gpu" in report["verdict"]["sentence"]
    assert set(classes(report)) <= {"undetermined"}


def test_a_sequence_cap_with_kv_to_spare_is_scheduling(capped: Server, attach: Watch) -> None:
    # 48 run for a while, then as many as may: what the rest brought bounds what still more would.
    few, rest = ("--clients", "48", "--output", "200"), ("--clients", "152", "--output", "200")
    with loaded(capped, few, (*rest, "--wait", "15")):
        report = attach(capped, seconds=50)
    assert told(report) == ("scheduling", "overloaded")
    assert measured(report, "kv_used_peak") < 0.9
    assert "at the sequence cap of 120 while KV has room" in report["verdict"]["sentence"]
    gain = next(r["gain"] for r in report["remedies"] if r["action"].startswith("raise the seq"))
    assert gain["metric"] == "output_tokens_per_s"
    most = gain["to"] * (1 + gain["error"]) / gain["from"] - 1
    print(f"raising the cap buys at most {most:.1%}")
    assert ("raising the cap buys" in report["verdict"]["sentence"]) is (most < 0.1)
    assert "requests queue" in dict(links(report)).values()
    assert "scheduling" in classes(report)
    assert set(classes(report)) <= {"scheduling", "undetermined", "compute"}


WAVE = ("--clients", "48", "--requests", "48", "--input", "128", "--output", "640")


def test_a_full_pool_that_preempts_is_capacity_before_the_counter_moves(
    small_pool: Server, attach: Watch, tmp_path: Path
) -> None:
    # Blocks hold 128 tokens. A request wants 2 for its prompt and first token, and one more every
    # 128 steps: 48 fill the pool of 128 as they ask for their third, 42, 32 and 25 fit after that.
    kept = tmp_path / "attach.sqlite"
    waits = (sys.executable, str(PREEMPTED), small_pool.url)
    with loaded(small_pool, WAVE):
        subprocess.run([*waits, "1"], check=True)
        report = attach(small_pool, "--capture", str(kept), behind=(*waits, "20"))
    counted = {s.value for s in read_capture(kept).engine_samples if s.name == "preemptions_total"}
    assert counted == {0.0}
    assert told(report) == ("capacity", "overloaded")
    assert ("KV pool full", "preemption") in links(report)
    assert "preempt" in report["verdict"]["sentence"]
    assert classes(report)[-1] == "capacity"


def test_prompts_that_come_faster_than_they_are_read_are_compute(
    capped: Server, attach: Watch
) -> None:
    # 60,000 tokens of prompts take a minute here; until then each step lets in what it has read.
    with loaded(capped, ("--clients", "60", "--input", "1000", "--output", "64")):
        report = attach(capped, seconds=25)
    assert told(report) == ("compute", "overloaded")
    assert ("prompts bring many tokens per step", "prompts queue behind prompts") in links(report)
    assert set(classes(report)) == {"compute"}


CLAIMED = ("--clients", "16", "--output", "64", "--seconds", "20", "--one-at-a-time")


def test_a_client_that_sends_less_than_it_claims_is_the_limit(
    capped: Server, attach: Watch, tmp_path: Path
) -> None:
    bench, capture = tmp_path / "bench.json", tmp_path / "attach.sqlite"
    load = (*CLAIMED, "--bench-json", str(bench))
    alone = attach.load(capped, "--capture", str(capture), load=load)
    assert told(alone) == ("undetermined", "served")
    assert missing(alone, "offered")
    joined = stallscope(tmp_path / "joined.json", "diagnose", capture, bench)
    assert told(joined) == ("client", "served")
    assert joined["verdict"]["chain"]
    given = attach.load(capped, "--concurrency", "16", load=CLAIMED)
    assert told(given) == ("client", "served")
    assert set(classes(given)) == {"client"}
