"""`stallscope attach URL`: the whole command against real local servers."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from scripted_server import CA, Script, Served, send, serving, serving_tls, vllm_page

from stallscope.profiler.capture_file import read_capture

SCRIPT = str(Path(sys.executable).with_name("stallscope"))
QUICK = ("--interval", "0.1", "--duration", "1")
FULL = {"running": 64, "waiting": 18, "kv": 0.995}


def attach(
    *arguments: str, stdin: int = subprocess.DEVNULL, **environ: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [SCRIPT, "attach", *arguments],
        stdin=stdin,
        capture_output=True,
        text=True,
        env=os.environ | environ,
        timeout=120,
    )


def pages(*texts: str) -> Script:
    """Answer with each page in its turn, and with the last one from then on."""

    def script(handler: BaseHTTPRequestHandler, number: int) -> None:
        send(handler, texts[min(number, len(texts) - 1)].encode())

    return script


def full_pool(handler: BaseHTTPRequestHandler, number: int) -> None:
    send(handler, vllm_page(**FULL, tokens=1000 + 90 * number).encode())


def judged(*arguments: str, **environ: str) -> tuple[dict[str, Any], str]:
    done = attach(*arguments, "--format", "json", **environ)
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report, done.stderr


class Watching:
    """An `attach` that goes on until it is interrupted."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[str] | None = None
        self.code: int | None = None

    def start(self, *arguments: str) -> None:
        command = [SCRIPT, "attach", "--format", "json", "--duration", "300", "--interval", "0.1"]
        self.process = subprocess.Popen(
            [*command, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def interrupted(self, number: signal.Signals, *, times: int = 1) -> dict[str, Any]:
        """Send a signal, 20 ms apart if several times, and return the report that follows."""
        assert self.process is not None
        for index in range(times):
            time.sleep(0.02 if index else 0)
            self.process.send_signal(number)
        out, _ = self.process.communicate(timeout=120)
        self.code = self.process.returncode
        report: dict[str, Any] = json.loads(out)
        return report


@contextmanager
def started() -> Iterator[Watching]:
    watching = Watching()
    try:
        yield watching
    finally:
        if watching.process is not None:
            watching.process.kill()
            watching.process.communicate()


def wait_for(served: Served, count: int) -> None:
    """Wait until a server was asked so many times."""
    end = time.monotonic() + 120
    while len(served.asked) < count:
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_full_pool_is_told_while_it_is_watched_and_in_the_end(tmp_path: Path) -> None:
    kept = tmp_path / "kept.sqlite"
    with serving(full_pool) as served:
        lasting = ("--interval", "0.1", "--duration", "2")
        report, said = judged(served.url, *lasting, "--capture", str(kept))
    shown = f"http://127.0.0.1:{served.port}/metrics"
    assert report["verdict"]["class"] == "capacity"
    assert report["verdict"]["load"] == "overloaded"
    (source,) = report["capture"]["sources"]
    assert (source["kind"], source["path"]) == ("metrics page", shown)
    assert 1 < report["capture"]["duration_s"] < 4
    first, running, last = said.splitlines()
    assert first == f"stallscope: watching {shown} for 2 s; Ctrl-C ends it"
    # The class does not change, so that it is told once; 0.995 is rounded.
    assert running == "stallscope: 0 s: 64 running, 18 waiting, KV 100 %: capacity"
    assert last == f"stallscope: recorded {kept}"
    assert 4 <= len(served.asked) <= 21  # one at once, then one each 0.1 s; fewer on a busy machine
    assert {path for path, _ in served.asked} == {"/metrics"}
    capture = read_capture(kept)
    assert capture.cut is None
    assert len({s.t_ns for s in capture.engine_samples}) == len(served.asked)
    again = subprocess.run(
        [SCRIPT, "diagnose", str(kept), "--format", "json"], capture_output=True, check=True
    )
    assert json.loads(again.stdout)["verdict"] == report["verdict"]


def test_what_a_server_says_of_itself_is_asked_for_once(tmp_path: Path) -> None:
    kept = tmp_path / "kept.sqlite"
    adapter = {"id": "mine", "root": "/adapters/mine", "parent": "m"}
    own = {"id": "m", "root": "Qwen/Qwen3-8B", "parent": None, "max_model_len": 8192}
    options = ("--model", "llama-3-8b", "--gpu", "h100-sxm", "--capture", str(kept))
    with serving(full_pool) as served:
        served.says["/version"] = b'{"version": "0.25.1"}'
        served.says["/v1/models"] = json.dumps({"data": [adapter, own]}).encode()
        report, _ = judged(served.url, *QUICK, *options, STALLSCOPE_BEARER_TOKEN="hidden")
    assert report["subject"]["workload"] == (
        "serving Qwen/Qwen3-8B (vllm 0.25.1, requests of up to 8,192 tokens)"
    )
    assert [path for path, _ in served.asked_itself] == ["/version", "/v1/models"]
    assert {h["Authorization"] for _, h in served.asked_itself} == {"Bearer hidden"}
    assert report["subject"]["model"] is None
    assert "the capture is of Qwen/Qwen3-8B; give that one's config.json" in report["warnings"][0]
    assert read_capture(kept).meta["server"] == {
        "version": "0.25.1",
        "model": "Qwen/Qwen3-8B",
        "max_model_len": 8192,
    }


@pytest.mark.parametrize(
    "says",
    [
        {},
        {"/version": b"{", "/v1/models": b"[1]"},
        {"/version": b'{"version": 7}', "/v1/models": b'{"data": [{"id": "a\\u0007b"}]}'},
        {"/version": b'{"version": "' + b"9" * 201 + b'"}', "/v1/models": b'{"data": {}}'},
        {"/version": b"[" * 200_000, "/v1/models": b'{"data": [7]}'},
    ],
)
def test_a_server_that_says_nothing_of_itself_is_watched_all_the_same(
    says: dict[str, bytes],
) -> None:
    with serving(full_pool) as served:
        served.says.update(says)
        report, _ = judged(served.url, *QUICK)
    assert report["verdict"]["class"] == "capacity"
    assert report["subject"]["workload"] == "serving m"  # a label on its metrics


def test_nothing_secret_is_shown_or_kept(tmp_path: Path) -> None:
    kept, token = tmp_path / "kept.sqlite", tmp_path / "token"
    token.write_text("hidden-token\n")
    with serving(full_pool) as served:
        url = served.url.replace("//", "//hidden-user:hidden-word@") + "/metrics?key=hidden-key"
        secret = ("--bearer-token-file", str(token), "--capture", str(kept))
        done = attach(url, *QUICK, *secret)
    assert done.returncode == 0
    assert {h["Authorization"] for _, h in served.asked} == {"Bearer hidden-token"}
    assert {path for path, _ in served.asked} == {"/metrics?key=hidden-key"}
    assert "hidden" not in done.stdout + done.stderr
    assert b"hidden" not in kept.read_bytes()
    gone = attach(url, "--duration", "1", "--interval", "0.1")
    assert gone.returncode == 1
    assert "hidden" not in gone.stdout + gone.stderr


def test_the_token_of_the_environment() -> None:
    def script(handler: BaseHTTPRequestHandler, number: int) -> None:
        known = handler.headers["Authorization"] == "Bearer from-environment"
        send(handler, vllm_page(**FULL).encode() if known else b"no", 200 if known else 401)

    with serving(script) as served:
        refused = attach(served.url, *QUICK)
        report, _ = judged(served.url, *QUICK, STALLSCOPE_BEARER_TOKEN="from-environment")
    assert refused.returncode == 1
    assert refused.stderr == (
        f"stallscope: {served.url}/metrics: 401 Unauthorized: it wants a token; give a file with "
        "it by --bearer-token-file\n"
    )
    assert report["verdict"]["class"] == "capacity"


def status(code: int) -> Script:
    def script(handler: BaseHTTPRequestHandler, number: int) -> None:
        send(handler, b"out of order", code)

    return script


def large(handler: BaseHTTPRequestHandler, number: int) -> None:
    handler.send_response(200)
    handler.end_headers()
    line = vllm_page().encode()
    for _ in range(200 * (1 << 20) // len(line)):
        handler.wfile.write(line)


def cut(handler: BaseHTTPRequestHandler, number: int) -> None:
    send(handler, vllm_page().encode()[:-20], Content_Length="100000")
    handler.close_connection = True


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (status(500), "HTTP status 500; no scrape had an answer"),
        (status(404), "404 Not Found: no page there"),
        (pages("<!doctype html><p>hello"), "an HTML page, no metrics: give the server's own"),
        (pages(""), "the page is empty"),
        (pages("node_cpu_seconds_total 1\n"), "metrics of node_exporter"),
        (cut, "the answer broke off before its end; no scrape had an answer"),
        (large, "the answer has more than that; the most is 32 MiB"),
    ],
    ids=["500", "404", "html", "empty", "other", "cut", "200 MB"],
)
def test_what_is_no_page_is_one_line_and_code_1(script: Script, said: str) -> None:
    with serving(script) as served:
        done = attach(served.url, *QUICK)
    assert done.returncode == 1
    assert done.stdout == ""
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"stallscope: {served.url}/metrics: ")
    assert said in last
    assert "Traceback" not in done.stderr


# A child's peak holds that of what started it until it became itself: pytest has torch loaded.
PEAK = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stderr=subprocess.DEVNULL)
print(done.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def test_a_large_page_does_not_fill_the_memory() -> None:
    with serving(large) as served:
        watch = [SCRIPT, "attach", served.url, *QUICK]
        done = subprocess.run(
            [sys.executable, "-c", PEAK, *watch], capture_output=True, text=True, check=True
        )
    code, used_kib = map(int, done.stdout.split())
    assert code == 1
    assert used_kib < 200 * 1024  # Python, numpy and 32 MiB of page


def test_nobody_there() -> None:
    with serving(full_pool) as served:
        pass
    begin = time.monotonic()
    done = attach(served.url)
    assert done.returncode == 1
    assert time.monotonic() - begin < 10  # of a watch of 30 s
    assert done.stderr == (
        f"stallscope: {served.url}/metrics: connection refused: nothing listens there\n"
    )


def test_a_certificate_is_believed_only_with_its_authority() -> None:
    with serving_tls(full_pool) as served:
        refused = attach(served.url, *QUICK)
        report, _ = judged(served.url, *QUICK, "--ca", str(CA))
    assert refused.returncode == 1
    assert refused.stderr.startswith(
        f"stallscope: {served.url}/metrics: its certificate is not trusted ("
    )
    assert len(refused.stderr.splitlines()) == 1
    assert report["verdict"]["class"] == "capacity"


def test_a_server_that_restarts_in_the_middle() -> None:
    """It counts 900 tokens a second, is away for a while, and begins again at nothing."""
    begin = time.monotonic()

    def counting(handler: BaseHTTPRequestHandler, number: int) -> None:
        tokens = 900 * (time.monotonic() - begin)
        send(handler, vllm_page(running=4, tokens=tokens).encode())

    def started_again(handler: BaseHTTPRequestHandler, number: int) -> None:
        send(handler, vllm_page(running=4, tokens=0.9 * number).encode())

    with started() as watching:
        with serving(counting) as served:
            watching.start(served.url)
            wait_for(served, 15)
        time.sleep(0.5)
        with serving(started_again, port=served.port) as again:
            wait_for(again, 10)
            report = watching.interrupted(signal.SIGINT)
    notes = " ".join(report["notes"])
    assert "counters were set back once, as a restart does" in notes
    assert "connection refused: nothing listens there" in notes
    assert "Samples of the metrics page (" in notes
    rate = report["throughput"]["output_tokens_per_s"]
    assert rate is None or rate >= 0


def test_failures_in_the_middle_are_said(tmp_path: Path) -> None:
    def script(handler: BaseHTTPRequestHandler, number: int) -> None:
        if number in (1, 2):
            send(handler, b"busy", 503)
        else:
            full_pool(handler, number)

    with serving(script) as served:
        report, _ = judged(served.url, *QUICK)
    tried = len(served.asked)
    assert report["verdict"]["class"] == "capacity"
    assert (
        f"Samples of the metrics page (2 of {tried} scrapes) are missing: HTTP status 503."
        in report["notes"]
    )


def test_a_server_that_is_gone_at_the_end_is_in_the_headline(tmp_path: Path) -> None:
    captured = tmp_path / "x.sqlite"

    def script(handler: BaseHTTPRequestHandler, number: int) -> None:
        if number > 5:
            handler.connection.shutdown(socket.SHUT_RDWR)
        else:
            full_pool(handler, number)

    with serving(script) as served:
        report, _ = judged(served.url, *QUICK, "--duration", "3", "--capture", str(captured))
    assert report["verdict"]["class"] == "capacity"
    last = "its last answer (64 running, 18 waiting, KV 100 %) came"
    assert f"At the end the server no longer answered: {last}" in report["verdict"]["sentence"]
    again = subprocess.run([SCRIPT, "diagnose", str(captured)], capture_output=True, text=True)
    assert "At the end the server no longer" in " ".join(again.stdout.split())


def gpu_lines(busy: float) -> str:
    labels = '{gpu="0",UUID="GPU-1",modelName="NVIDIA H100 80GB HBM3"}'
    return f"DCGM_FI_PROF_GR_ENGINE_ACTIVE{labels} {busy}\nDCGM_FI_DEV_POWER_USAGE{labels} 90\n"


@pytest.mark.parametrize(("busy", "verdict"), [(0.0, "none"), (0.9, "undetermined")])
def test_a_page_of_dcgm_exporter_alone_is_watched_as_telemetry(
    busy: float, verdict: str, tmp_path: Path
) -> None:
    kept = tmp_path / "kept.sqlite"
    with serving(pages(gpu_lines(busy))) as served:
        report, said = judged(served.url, *QUICK, "--no-nvml", "--capture", str(kept))
    assert report["verdict"]["class"] == verdict
    assert report["subject"]["device"] == "h100-sxm"
    assert any("and nothing of what was asked of the engine" in n for n in report["notes"])
    assert f"GPUs alone: {verdict}" in said
    values = {s.value for s in read_capture(kept).device_samples if "engine_active" in s.name}
    assert values == {busy}


def test_gpus_on_an_engines_page_are_kept() -> None:
    page = vllm_page(**FULL) + gpu_lines(0.9)
    with serving(pages(page)) as served:
        report, _ = judged(served.url, *QUICK, "--no-nvml")
    assert report["subject"]["device"] == "h100-sxm"
    assert report["verdict"]["class"] == "capacity"
    busy = [m["value"] for m in report["measures"] if m["name"] == "gpu_busy"]
    assert busy == pytest.approx([0.9])


def test_two_engines_behind_one_port() -> None:
    def script(handler: BaseHTTPRequestHandler, number: int) -> None:
        free = vllm_page(running=2, waiting=0, kv=0.1, engine="0", tokens=10 * number)
        full = vllm_page(running=40, waiting=30, kv=0.995, engine="1", tokens=90 * number)
        send(handler, (free + full).encode())

    with serving(script) as served:
        report, said = judged(served.url, "--interval", "0.1", "--duration", "2")
    assert "42 running, 30 waiting, KV 100 %" in said
    assert report["verdict"]["load"] == "overloaded"
    assert report["verdict"]["class"] in ("capacity", "scheduling")
    first, second = report["replicas"]
    assert (first["replica"], first["class"], first["running"]) == ("1", "capacity", 40)
    assert (second["replica"], second["load"], second["waiting"]) == ("0", "served", 0)
    assert "1 has 30.0 requests waiting while 0 has room" in report["fleet"]["imbalance"]


def test_clients_offer_their_load_to_all_engines_together() -> None:
    """Of 16 clients' requests 8 are in flight, on two engines: half, and not a quarter each."""

    def script(handler: BaseHTTPRequestHandler, number: int) -> None:
        both = (vllm_page(running=4, engine=engine, tokens=9 * number) for engine in "01")
        send(handler, "".join(both).encode())

    with serving(script) as served:
        report, _ = judged(served.url, *QUICK, "--concurrency", "16")
        few, _ = judged(served.url, *QUICK, "--concurrency", "17")
    assert report["verdict"]["class"] == "undetermined"
    assert few["verdict"]["class"] == "client"
    for found in (report, few):
        assert [r["class"] for r in found["replicas"]] == ["undetermined"] * 2


def wrapped(served_url: str, program: str) -> list[str]:
    return [served_url, "--interval", "0.1", "--", sys.executable, "-c", program]


def test_a_command_is_watched_to_its_end_and_passed_through() -> None:
    program = "import sys, time; print('loading'); time.sleep(3); sys.exit(7)"
    with serving(full_pool) as served:
        done = attach("--format", "json", *wrapped(served.url, program))
    assert done.returncode == 7
    loading, _, text = done.stdout.partition("\n")
    assert loading == "loading"
    report = json.loads(text)
    assert report["verdict"]["class"] == "capacity"
    assert 1 < report["capture"]["duration_s"] < 30  # without the option it would be 30 s
    assert any("The command ended with code 7." in note for note in report["notes"])


def test_a_verdict_to_fail_on() -> None:
    with serving(full_pool) as served:
        assert attach(served.url, *QUICK, "--fail-on", "capacity").returncode == 4
        quiet = "import time; time.sleep(0.6)"
        options = ("--fail-on", "capacity")
        assert attach(*options, *wrapped(served.url, quiet)).returncode == 4


def test_no_command_is_started_without_a_server(tmp_path: Path) -> None:
    with serving(full_pool) as served:
        pass
    mark = tmp_path / "mark"
    done = attach(served.url, "--", "touch", str(mark))
    assert (done.returncode, mark.exists()) == (1, False)


def test_a_step_of_ours_that_fails_is_70_where_the_command_did_not(tmp_path: Path) -> None:
    """The folder of the report goes while the command runs."""
    folder = tmp_path / "folder"
    folder.mkdir()
    program = f"import shutil, time; time.sleep(0.5); shutil.rmtree({str(folder)!r})"
    with serving(full_pool) as served:
        done = attach("-o", str(folder / "x.json"), *wrapped(served.url, program))
    assert done.returncode == 70
    assert "cannot write" in done.stderr


def test_a_command_ends_in_peace_where_the_server_turns_out_to_be_none() -> None:
    """The first scrape meets a gateway that is busy, the later ones what no try would change."""

    def script(handler: BaseHTTPRequestHandler, number: int) -> None:
        send(handler, b"", 401 if number else 503)

    with serving(script) as served:
        done = attach(*wrapped(served.url, "import time; time.sleep(0.6); print('done')"))
    assert (done.returncode, done.stdout) == (70, "done\n")
    assert "401 Unauthorized" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_watch_and_what_was_seen_is_judged(number: signal.Signals) -> None:
    with serving(full_pool) as served, started() as watching:
        watching.start(served.url)
        wait_for(served, 10)
        report = watching.interrupted(number)
    assert watching.code == 0
    assert report["verdict"]["class"] == "capacity"


def test_a_signal_reaches_the_command_and_what_was_seen_is_judged() -> None:
    with serving(full_pool) as served, started() as watching:
        watching.start(*wrapped(served.url, "import time; time.sleep(60)"))
        wait_for(served, 10)
        report = watching.interrupted(signal.SIGTERM)
    assert watching.code == 128 + signal.SIGTERM
    assert report["verdict"]["class"] == "capacity"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("has_command", [True, False])
def test_whoever_asks_several_times_gets_the_report_too(
    number: signal.Signals, has_command: bool
) -> None:
    """Service managers and closing terminals send signals in pairs."""
    with serving(full_pool) as served, started() as watching:
        command = wrapped(served.url, "import time; time.sleep(60)")
        watching.start(*(command if has_command else [served.url]))
        wait_for(served, 10)
        report = watching.interrupted(number, times=4)
    assert watching.code == (128 + number if has_command else 0)
    assert report["verdict"]["class"] == "capacity"


def test_a_terminal_that_goes_takes_no_report_with_it(tmp_path: Path) -> None:
    """Both its signal and its output are gone; what is written to a file is whole."""
    report, captured = tmp_path / "x.json", tmp_path / "x.sqlite"
    main_end, terminal = os.openpty()
    with serving(full_pool) as served:
        own = ["-o", str(report), "--capture", str(captured)]
        process = subprocess.Popen(
            [SCRIPT, "attach", *own, *wrapped(served.url, "import time; time.sleep(60)")],
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            start_new_session=True,
        )
        os.close(terminal)
        wait_for(served, 10)
        os.close(main_end)
        process.send_signal(signal.SIGHUP)
        assert process.wait(timeout=120) == 128 + signal.SIGHUP
    assert json.loads(report.read_text())["verdict"]["class"] == "capacity"
    assert read_capture(captured).engine_samples


@pytest.mark.parametrize("suffix", ["json", "md"])
def test_a_file_that_the_command_wrote_is_left_and_the_report_shown(
    suffix: str, tmp_path: Path
) -> None:
    path, captured = tmp_path / f"x.{suffix}", tmp_path / "x.sqlite"
    program = f"import time; time.sleep(1); open({str(path)!r}, 'w').write('results')"
    with serving(full_pool) as served:
        options = ["-o", str(path), "--capture", str(captured)]
        done = attach(*options, *wrapped(served.url, program))
    assert done.returncode == 70
    assert path.read_text() == "results"
    assert {p.name for p in tmp_path.iterdir()} == {path.name, captured.name}
    assert "was written by something else meanwhile, and is left as it is" in done.stderr
    assert "the report follows on stdout instead" in done.stderr
    if suffix == "json":
        assert json.loads(done.stdout)["verdict"]["class"] == "capacity"
    else:
        assert done.stdout.startswith("# stallscope report\n")


def test_a_capture_that_the_command_wrote_is_left_and_the_report_written(tmp_path: Path) -> None:
    path, captured = tmp_path / "x.json", tmp_path / "x.sqlite"
    program = f"import time; time.sleep(1); open({str(captured)!r}, 'w').write('mine')"
    with serving(full_pool) as served:
        options = ["-o", str(path), "--capture", str(captured)]
        done = attach(*options, *wrapped(served.url, program))
    assert (done.returncode, captured.read_text()) == (70, "mine")
    assert json.loads(path.read_text())["verdict"]["class"] == "capacity"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ("http://h http://g:8000", 2, "http://g:8000: one URL is watched at a time; put -- before"),
        ("h:8000 u:p@g:8000/metrics", 2, "g:8000/metrics: one URL is watched at a time"),
        ("", 2, "name the server: stallscope attach http://HOST:PORT, or --prometheus URL"),
        ("ftp://h", 2, "give http:// or https:// and a host"),
        ("http://h --duration 0", 2, "--duration"),
        ("http://h --duration inf", 2, "--duration"),
        ("http://h --interval 0", 2, "--interval"),
        ("http://h no-such-program-of-mine", 2, "no-such-program-of-mine: not on PATH"),
        ("http://h --bearer-token-file /no/such", 1, "--bearer-token-file /no/such: No such"),
        ("http://h --ca /no/such", 1, "--ca /no/such: No such file or directory"),
        ("http://h --model no-such-model", 1, "no-such-model"),
    ],
)
def test_wrong_use(arguments: str, code: int, said: str) -> None:
    done = attach(*shlex.split(arguments))
    assert done.returncode == code
    assert said in done.stderr
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
