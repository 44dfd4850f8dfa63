"""`stallscope attach --prometheus` against scripted answers; tests/prometheus has the real one."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Collection, Mapping
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from scripted_server import Script, send, serving

SCRIPT = str(Path(sys.executable).with_name("stallscope"))
Gauges = Mapping[str, tuple[float, float, float]]  # by instance: running, waiting, KV
NAMES = ("vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc")
STEP_S = 15.0


def ask(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [SCRIPT, "attach", "--prometheus", *arguments],
        capture_output=True,
        text=True,
        env=os.environ | environ,
        timeout=120,
    )


def playing(
    fleet: Gauges,
    requests: list[tuple[str, dict[str, str]]],
    down: Collection[str] = (),
    down_s: float = 0.0,
) -> Script:
    """Answer as Prometheus does, of instances whose gauges stand still.

    Those that are `down` told nothing in the last `down_s`.
    """
    known = [
        {"__name__": name, "instance": instance, "job": "vllm", "model_name": "m", "engine": "0"}
        for instance in fleet
        for name in NAMES
    ]

    def script(handler: BaseHTTPRequestHandler, number: int) -> None:
        parts = urlsplit(handler.path)
        asked = {name: value for name, (value,) in parse_qs(parts.query).items()}
        assert asked.pop("tenant", "hidden") == "hidden"
        requests.append((parts.path, asked))
        what = parts.path.rpartition("/")[2]
        if what == "series":
            data: Any = known if "num_requests_running" in asked["match[]"] else []
        else:
            start, end = (float(asked.get(n, "0")) for n in ("start", "end"))
            step = float(asked.get("step", STEP_S))
            times = [start + i * step for i in range(int((end - start) / step + 1e-6) + 1)]
            if what == "query":
                times = [float(asked["time"]) - STEP_S * i for i in (2, 1, 0)]
            data = {"resultType": "matrix", "result": []}
            for labels in known:
                if labels["__name__"] in asked["query"]:
                    seen = [t for t in times if labels["instance"] not in down or t < end - down_s]
                    value = fleet[labels["instance"]][NAMES.index(labels["__name__"])]
                    points = [[t, str(value)] for t in seen]
                    data["result"].append({"metric": labels, "values": points})
        send(handler, json.dumps({"status": "success", "data": data}).encode())

    return script


def test_a_fleet_behind_a_path_and_a_token() -> None:
    requests: list[tuple[str, dict[str, str]]] = []
    fleet = {"gpu1:8000": (4.0, 0.0, 0.2), "gpu2:8000": (12.0, 30.0, 0.998)}
    with serving(playing(fleet, requests)) as served:
        url = served.url + "/prom/?tenant=hidden"
        arguments = ("--select", 'job="vllm"', "--since", "30m", "--format", "json")
        done = ask(url, *arguments, STALLSCOPE_BEARER_TOKEN="hidden")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert [(r["replica"], r["class"]) for r in report["replicas"]] == [
        ("gpu2:8000", "capacity"),
        ("gpu1:8000", "undetermined"),
    ]
    assert {headers["Authorization"] for _, headers in served.asked} == {"Bearer hidden"}
    assert all(path.endswith("&tenant=hidden") for path, _ in served.asked)
    assert {path for path, _ in requests} == {
        f"/prom/api/v1/{name}" for name in ("series", "query", "query_range")
    }
    ranges = [asked for path, asked in requests if path.endswith("query_range")]
    assert all('job="vllm"' in asked["query"] for asked in ranges)
    assert {float(asked["step"]) for asked in ranges} == {STEP_S}
    assert {float(a["end"]) - float(a["start"]) for a in ranges} == {1800.0}
    assert "hidden" not in done.stdout + done.stderr


@pytest.mark.parametrize(("down_s", "is_said"), [(44.0, False), (46.0, True)])
def test_a_replica_that_fell_silent_is_named(down_s: float, is_said: bool) -> None:
    """Readings are 15 s apart: without those of 44 s the last one is 45 s old, the third."""
    fleet = {"gpu1:8000": (4.0, 0.0, 0.2), "gpu2:8000": (4.0, 0.0, 0.2)}
    with serving(playing(fleet, [], ["gpu2:8000"], down_s)) as served:
        done = ask(served.url, "--format", "json")
    notes = json.loads(done.stdout)["notes"]
    silent = "gpu2:8000 told nothing in the last 60 s: is it down, or no longer scraped?"
    assert [n for n in notes if "told nothing" in n] == ([silent] if is_said else [])


def test_a_verdict_to_fail_on() -> None:
    with serving(playing({"gpu2:8000": (12.0, 30.0, 0.998)}, [])) as served:
        assert ask(served.url, "--fail-on", "capacity").returncode == 4


def answering(body: bytes, status: int = 200) -> Script:
    def script(handler: BaseHTTPRequestHandler, number: int) -> None:
        send(handler, body, status)

    return script


def error(text: str) -> bytes:
    return json.dumps({"status": "error", "errorType": "x", "error": text}).encode()


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b"no", 401, "HTTP status 401: it wants a token; give a file with it by --bearer-token"),
        (error("parse\nerror: bad"), 400, "Prometheus refuses: parse error: bad"),
        (error("query timed out"), 503, "Prometheus refuses: query timed out"),
        (error("x" * 10_000), 422, "Prometheus refuses: " + "x" * 300 + "\n"),
        (b"<html>", 200, "does not answer as Prometheus does (HTTP status 200)"),
        (b"gone", 404, "does not answer as Prometheus does (HTTP status 404)"),
        (b"[]", 200, "does not answer as Prometheus does"),
        (b'{"status":"success","data":[1]}', 200, "answers in a form that Prometheus' API has not"),
        (b'{"status":"success","data":[]}', 200, "no series of an inference engine in that time; "),
        (b'{"status":"success"}', 200, "answers in a form that Prometheus' API has not"),
    ],
)
def test_what_is_refused_is_one_line(body: bytes, status: int, said: str) -> None:
    with serving(answering(body, status)) as served:
        done = ask(served.url)
    assert done.returncode == 1
    assert done.stderr.startswith(f"stallscope: {served.url}: ")
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("http://h http://other", "--prometheus watches no server: leave out http://other"),
        ("http://h --capture kept.sqlite", "--capture keeps what was watched"),
        ("http://h --concurrency 8", "--concurrency is of all replicas together"),
        ("http://h --select up", "--select 'up': give label matchers in braces"),
        ("http://h --since soon", "--since 'soon': give a duration"),
        ("ftp://h", "give http:// or https:// and a host"),
    ],
)
def test_wrong_use(arguments: str, said: str) -> None:
    done = ask(*shlex.split(arguments))
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
