"""Pages that mislead: of a server that hangs, of several in turn, too large, damaged."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from metrics_pages import UNIX_MS, S, over_time, page, read, scraped, sentences, series, told

from stallscope.analyzers.diagnose import diagnose
from stallscope.errors import InputError
from stallscope.profiler.capture import Capture
from stallscope.profiler.file_kinds import kind_of
from stallscope.profiler.reading import read_input

LABELS = 'engine="0",model_name="m"'


def vllm(made: float, running: float = 5.0, waiting: float = 0.0, **more: float) -> str:
    values = {
        "num_requests_running": running,
        "num_requests_waiting": waiting,
        "kv_cache_usage_perc": 0.5,
        "generation_tokens_total": made,
        **more,
    }
    return page("vllm:", values, LABELS)


def started(start: float, made: float, running: float = 5.0) -> str:
    return page("", {"process_start_time_seconds": start}) + vllm(made, running)


def deciding(capture: Capture) -> list[dict[str, object]]:
    return [dict(e.data) for e in capture.events if e.kind == "check" and "class" in e.data]


def test_series_that_stand_twice_are_not_added_up(tmp_path: Path) -> None:
    """The exposition format forbids it; a proxy that adds a label twice does it all the same."""
    text = vllm(100.0, waiting=40.0)
    line = next(x for x in text.splitlines(keepends=True) if "num_requests_waiting{" in x)
    doubled = text.replace(line, line.replace("40", "39") + line)
    said = "1 series stand twice on a page ({} of {} pages), which the format forbids; of these"
    watched = scraped(doubled, text)
    assert [s.value for s in watched.engine_samples if s.name == "waiting"] == [40.0, 40.0]
    assert any(s.startswith(said.format(1, 2)) for s in sentences(watched))
    saved = read(tmp_path, doubled)
    assert told(saved)["waiting"] == 40.0
    assert any(s.startswith(said.format(1, 1)) for s in sentences(saved))
    # Two pages of one series each are no page with a series that stands twice.
    lone = "".join(f"vllm:num_requests_running{{{LABELS}}} {n}\n" for n in (3, 5))
    assert [s.value for s in read(tmp_path, lone).engine_samples if s.name == "running"] == [3, 5]


def test_a_page_that_stays_the_same_while_requests_run_is_of_an_engine_that_hangs() -> None:
    pages = [vllm(100.0, waiting=2.0)] * 31  # from 0 to 30 s
    capture = scraped(*pages)
    (found,) = deciding(capture)
    assert found == {
        "sentence": "The engine stands still: for 30 s none of its gauges and counters moved while "
        "5 requests ran and 2 waited.",
        "class": "scheduling",
        "limit": "stalled",
        "blocks": ["verdict"],
        "most_confidence": 0.8,
    }
    diagnosis = diagnose(capture)
    verdict = diagnosis.verdict
    assert (verdict.bottleneck, verdict.confidence) == ("scheduling", 0.8)
    assert verdict.sentence == found["sentence"]
    # A higher cap would not move an engine that hangs.
    assert [r.action.split(":")[0] for r in diagnosis.remedies] == [
        "find out where the engine stands still"
    ]


@pytest.mark.parametrize(
    "pages",
    [
        [vllm(100.0)] * 30,  # 29 s: a step may take long
        [vllm(100.0, running=0.0)] * 60,  # nothing runs
        [vllm(100.0 + i) for i in range(60)],  # it moves
        [vllm(100.0, request_queue_time_seconds_count=i) for i in range(60)],
        [page("tgi_", {"batch_current_size": 5.0, "queue_size": 0.0})] * 60,  # nothing could move
    ],
)
def test_what_is_no_standstill(pages: list[str]) -> None:
    assert not any("stands still" in sentence for sentence in sentences(scraped(*pages)))


def test_a_shorter_standstill_is_said_and_decides_nothing() -> None:
    pages = [vllm(100.0)] * 31 + [vllm(101.0 + i) for i in range(40)]  # 30 of 70 s
    capture = scraped(*pages)
    assert any("stands still: for 30 s" in sentence for sentence in sentences(capture))
    assert deciding(capture) == []


def test_without_a_gauge_of_the_cache_a_long_prompt_may_stand_still_for_two_minutes() -> None:
    values = {"requests_processing": 1.0, "requests_deferred": 0.0, "tokens_predicted_total": 7.0}
    still = page("llamacpp:", values)
    assert deciding(scraped(*[still] * 120)) == []
    assert len(deciding(scraped(*[still] * 121))) == 1


def test_two_servers_behind_one_address_are_told_apart_by_their_start_times() -> None:
    pages = [
        started(1.7e9, 100.0, 3.0),
        started(1.6e9, 9000.0, 8.0),
        started(1.7e9, 120.0, 4.0),
        started(1.6e9, 9050.0, 9.0),
    ]
    capture = scraped(*pages)
    samples = capture.engine_samples
    assert over_time(samples, "output_tokens_total", "0") == [(7, 100), (9, 120)]
    assert over_time(samples, "output_tokens_total", "1") == [(8, 9000), (10, 9050)]
    assert over_time(samples, "running", "1") == [(8, 8), (10, 9)]
    assert any("leads to 2 servers in turn" in sentence for sentence in sentences(capture))
    assert not any(e.kind == "restart" for e in capture.events)


def test_two_servers_without_start_times_are_no_ground_for_a_verdict() -> None:
    made = (100.0, 105.0, 9000.0, 9050.0, 110.0, 9100.0, 115.0, 9150.0)
    capture = scraped(*(vllm(n) for n in made))
    (found,) = deciding(capture)
    assert found["class"] == "telemetry"
    assert "several servers in turn" in str(found["sentence"])
    assert diagnose(capture).verdict.bottleneck == "telemetry"


def test_a_server_that_restarts_twice_is_one_server() -> None:
    made = (900.0, 1000.0, 10.0, 20.0, 300.0, 5.0, 40.0)
    capture = scraped(*(vllm(n) for n in made))
    assert deciding(capture) == []
    # 1000 and 300 before the restarts
    found = [n for _, n in over_time(capture.engine_samples, "output_tokens_total")]
    assert found == [900, 1000, 1010, 1020, 1300, 1305, 1340]
    assert any("set back 2 times" in sentence for sentence in sentences(capture))


def test_a_lone_page_tells_means_of_the_server_s_whole_life(tmp_path: Path) -> None:
    more = {
        "time_to_first_token_seconds_sum": 5.0,
        "time_to_first_token_seconds_count": 10.0,  # 5 s ÷ 10
        "e2e_request_latency_seconds_sum": 500.0,
        "e2e_request_latency_seconds_count": 10.0,  # 500 s ÷ 10
        "request_queue_time_seconds_sum": 0.0,
        "request_queue_time_seconds_count": 0.0,
    }
    one = vllm(7.0, **more)
    for capture in (scraped(one), read(tmp_path, one)):
        assert sentences(capture)[-1] == (
            "Means since the server began, which say nothing of this moment: 500 ms to the first "
            "token, 50 s end to end."
        )
    assert not any("Means" in sentence for sentence in sentences(scraped(one, one)))


def test_llama_cpp_tells_the_time_of_its_slots() -> None:
    values = {
        "prompt_tokens_total": 100.0,
        "prompt_seconds_total": 4.0,
        "tokens_predicted_total": 50.0,
        "tokens_predicted_seconds_total": 60.0,
    }
    said = sentences(scraped(page("llamacpp:", values)))[-1]
    assert said.endswith("of this moment: 40 ms per prompt token, 1.2 s per generated token.")


GPU = 'DCGM_FI_DEV_GPU_UTIL{gpu="0",modelName="NVIDIA H100 80GB HBM3"} '


def test_a_page_of_gpus_and_an_engine_gives_both(tmp_path: Path) -> None:
    pages = [f"{GPU}{busy}\n{vllm(made)}" for busy, made in ((50, 1.0), (70, 2.0))]
    (tmp_path / "page.prom").write_text(series(*pages, every_ms=3000))
    capture = read_input(tmp_path / "page.prom")
    busy = [(s.t_ns / S, s.value) for s in capture.device_samples if s.name == "nvml_gpu_util"]
    assert busy == [(0, 0.5), (3, 0.7)]
    assert over_time(capture.engine_samples, "output_tokens_total") == [(0, 1), (3, 2)]
    assert {s.kind for s in capture.sources} == {"metrics page", "DCGM"}
    assert capture.subject.device is not None
    assert capture.subject.device.name == "h100-sxm"


def test_gpus_of_a_live_page_are_on_its_clock() -> None:
    capture = scraped(f"{GPU}50\n{vllm(1.0)}", f"{GPU}70\n{vllm(2.0)}")
    assert {s.t_ns for s in capture.device_samples} == {7 * S, 8 * S}


def test_times_that_stand_on_each_line_are_taken(tmp_path: Path) -> None:
    line = 'vllm:num_requests_running{engine="0"} %d ' + f"{UNIX_MS}\n"
    line += 'vllm:num_requests_waiting{engine="0"} 0 ' + f"{UNIX_MS}\n"
    text = line % 3 + line.replace(str(UNIX_MS), str(UNIX_MS + 4000)) % 4
    capture = read(tmp_path, text)
    assert over_time(capture.engine_samples, "running") == [(0, 3), (4, 4)]
    assert capture.meta["clock"] == {"unix_ns": UNIX_MS * 1_000_000, "t_ns": 0}


def test_open_metrics_with_exemplars_and_an_end(tmp_path: Path) -> None:
    text = (
        "# TYPE vllm:num_requests_running gauge\n"
        'vllm:num_requests_running{engine="0"} 3.0 1800000000.5\n'
        'vllm:num_requests_waiting{engine="0",note="a\\"} 9{\\n"} 2 # {trace="x"} 0.5 1.0\n'
        'vllm:kv_cache_usage_perc{engine="0"} NaN\n'
        "# EOF"
    )
    capture = read(tmp_path, text)
    assert told(capture) == {"running": 3, "waiting": 2}
    assert capture.meta["clock"] == {"unix_ns": 1_800_000_000_500_000_000, "t_ns": 0}
    assert not any("breaks off" in sentence for sentence in sentences(capture))


@pytest.mark.parametrize(
    "line",
    [
        "vllm:num_requests_running 1.2.3",
        "vllm:num_requests_running",
        "vllm:num_requests_running{engine=0} 5",
        'vllm:num_requests_running{engine="0} 5',
        "vllm:num_requests_running five",
        "vllm:num_requests_running 1_000",
        "vllm:num_requests_running +Inf",
    ],
)
def test_a_damaged_line_costs_no_other(line: str) -> None:
    capture = scraped(f"{line}\nvllm:num_requests_waiting 2\n")
    assert {k: v for k, v in told(capture).items() if k == "running" and v not in (5,)} == {}
    assert told(capture)["waiting"] == 2


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ("<html><body>Sign in</body></html>\n", "an HTML page"),
        (
            "# TYPE node_load1 gauge\nnode_load1 0.5\nnode_load5 0.5\n",
            "a page of metrics of node_exporter, and none of an engine",
        ),
        ("words\nonly\n", "a text file"),
    ],
)
def test_files_that_are_refused_are_called_what_they_are(
    content: str, kind: str, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text(content)
    assert kind_of(tmp_path / "file") == kind
    with pytest.raises(InputError, match=kind):
        read_input(tmp_path / "file")


LARGE = """
import resource, sys
from pathlib import Path
from stallscope.errors import InputError
from stallscope.profiler.reading import read_input
resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
try:
    print(len(read_input(Path(sys.argv[1])).engine_samples))
except InputError as error:
    print(error)
# Not ru_maxrss: that holds what pytest itself had in memory when it started this.
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(int(peak.split()[1]) >> 10)
"""


def read_apart(path: Path) -> tuple[str, int]:
    """Read in a process of its own; return what it said, and its largest memory in MiB."""
    done = subprocess.run(
        [sys.executable, "-c", LARGE, str(path)], capture_output=True, text=True, check=True
    )
    said, memory = done.stdout.splitlines()
    return said, int(memory)


def test_a_page_of_200_mb_is_refused_before_memory_grows(tmp_path: Path) -> None:
    path = tmp_path / "page"
    line = 'vllm:request_prompt_tokens_bucket{engine="0",le="%d"} 1.0\n'
    with path.open("w") as file:
        file.write(vllm(1.0))
        for block in range(200):
            file.write("".join(line % (block * 17_000 + i) for i in range(17_000)))
    assert path.stat().st_size > 200_000_000
    said, memory = read_apart(path)
    assert "one page of more than 64 MiB" in said
    assert memory < 512


def test_a_long_series_of_pages_is_no_large_page(tmp_path: Path) -> None:
    path = tmp_path / "series"
    bulk = "".join(f'vllm:x_bucket{{le="{i}"}} 1.0\n' for i in range(40_000))  # about 1 MB
    with path.open("w") as file:
        for i in range(80):  # 80 MB
            file.write(f"# scrape_unix_ms {UNIX_MS + i * 1000}\n{vllm(i + 1.0)}{bulk}")
    assert path.stat().st_size > 80_000_000
    said, memory = read_apart(path)
    assert int(said) == 80 * 4
    assert memory < 512
