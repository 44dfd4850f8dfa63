"""Tables of runs as people write them down."""

from __future__ import annotations

from pathlib import Path

import pytest

from stallscope.analyzers.experiment.settings import SETTINGS
from stallscope.errors import InputError
from stallscope.profiler.run_table import has_run_table, read_run_table


def table(folder: Path, text: str) -> Path:
    path = folder / "runs.csv"
    path.write_text(text)
    return path


def test_settings_figures_and_names(tmp_path: Path) -> None:
    rows = read_run_table(
        table(tmp_path, "Run,Threads,load,tok/s,TPOT (ms),ttft_s\nfirst,2,heavy,16.8,59.5,\n")
    )
    assert [row.name for row in rows] == ["first"]
    assert rows[0].settings == {"threads": 2.0, "load": "heavy"}
    assert rows[0].figures == {
        "output_tokens_per_s": (16.8, False),
        "tpot_s": (pytest.approx(0.0595), True),
    }


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_separators(tmp_path: Path, separator: str) -> None:
    text = "threads,pages/s\n1,14.0\n\n2,16.8\n".replace(",", separator)
    rows = read_run_table(table(tmp_path, text))
    assert [row.figures["pages_per_s"][0] for row in rows] == [14.0, 16.8]
    assert [row.name for row in rows] == ["line 2", "line 4"]  # line 3 is empty


@pytest.mark.parametrize(
    "text",
    ["", "threads,pages/s", "threads,pages\n1,2\n", "pages/s\n3\n", "a,b/s\n1,2,3\n", "{}\n[]\n"],
)
def test_what_is_no_table(tmp_path: Path, text: str) -> None:
    assert not has_run_table(text)
    with pytest.raises(InputError, match="a table of runs has a header"):
        read_run_table(table(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("threads,tok/s\n1,2\n2,3,4\n", "line 3: 3 values under 2 columns"),
        ("threads,tok/s\n1,2\n2,fast\n", "line 3: tok/s is 'fast'"),
        ("threads,tok/s\n1,0\n", "line 2: tok/s is '0'"),
        ("threads,tok/s\n1,inf\n", "line 2: tok/s is 'inf'"),
        ("threads,threads,tok/s\n1,2,3\n", "two columns have one name"),
    ],
)
def test_what_is_wrong_in_a_table(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        read_run_table(table(tmp_path, text))


def test_a_huge_file_is_refused(tmp_path: Path) -> None:
    path = table(tmp_path, "threads,tok/s\n" + "1,2\n" * 1_200_000)
    with pytest.raises(InputError, match="over 4 MiB"):
        read_run_table(path)


def test_a_markdown_table_with_command_lines(tmp_path: Path) -> None:
    text = (
        "| command | tokens/second |\n| - | :-: |\n| -ngl 99 | N/A (less than 0.1) |\n"
        "| -t 7 --no-mmap | 1.6 |\n| -t 7 -ngl=99 | 8.46 ± 0.03 |\n"
    )
    rows = read_run_table(table(tmp_path, text))
    assert [row.settings for row in rows] == [
        {"gpu_layers": 99.0, "no_mmap": "default", "threads": "default"},
        {"gpu_layers": "default", "no_mmap": "on", "threads": 7.0},
        {"gpu_layers": 99.0, "no_mmap": "default", "threads": 7.0},
    ]
    assert [row.figures["output_tokens_per_s"][0] for row in rows] == [0.1, 1.6, 8.46]
    assert [row.under for row in rows] == [{"output_tokens_per_s"}, set(), set()]


def test_readings_are_no_settings(tmp_path: Path) -> None:
    text = (
        "GPU util (%),power (W),power limit (W),KV %,busbw (GB/s),gpu_memory_utilization,tok/s\n"
        "82,195,290,99,35,0.9,50\n"
    )
    (row,) = read_run_table(table(tmp_path, text))
    assert row.settings == {"power_limit_w": 290.0, "gpu_memory_utilization": 0.9}
    assert list(row.readings) == ["gpu util (%)", "power (w)", "kv %", "busbw (gb/s)"]
    assert list(row.figures) == ["output_tokens_per_s"]


@pytest.mark.parametrize(
    ("title", "name", "scale"),
    [
        ("prefill (tok/s)", "input_tokens_per_s", 1.0),
        ("decode (t/s)", "output_tokens_per_s", 1.0),
        ("tokens/sec", "output_tokens_per_s", 1.0),
        ("images per second", "images_per_s", 1.0),
        ("TTFT p50 (ms)", "ttft_p50_s", 1e-3),
    ],
)
def test_headings_of_figures(tmp_path: Path, title: str, name: str, scale: float) -> None:
    (row,) = read_run_table(table(tmp_path, f'a,{title}\n1,"2,434"\n'))
    assert row.figures[name][0] == pytest.approx(2434 * scale)


@pytest.mark.parametrize(
    ("title", "name", "scale"),
    [
        # Keys of the JSON of vllm bench serve and SGLang's bench_serving, and what both print.
        ("output_throughput", "output_tokens_per_s", 1.0),
        ("Output token throughput (tok/s)", "output_tokens_per_s", 1.0),
        ("input_throughput", "input_tokens_per_s", 1.0),
        ("total_token_throughput", "total_tokens_per_s", 1.0),
        ("Total Token throughput (tok/s)", "total_tokens_per_s", 1.0),
        ("request_throughput", "requests_per_s", 1.0),
        ("Request throughput (req/s)", "requests_per_s", 1.0),
        ("req/s", "requests_per_s", 1.0),
        ("mean_tpot_ms", "mean_tpot_s", 1e-3),
        ("p99_itl_ms", "p99_itl_s", 1e-3),
        ("p99.9_itl_ms", "p99.9_itl_s", 1e-3),
        ("user_throughput", "user_tokens_per_s", 1.0),
        ("median_e2e_latency_ms", "median_e2e_latency_s", 1e-3),
        # As people head the columns of a table in Markdown.
        ("TPOT ms", "tpot_s", 1e-3),
        ("TTFT [ms]", "ttft_s", 1e-3),
        ("TTFT, ms", "ttft_s", 1e-3),
        ("decode tok/s", "output_tokens_per_s", 1.0),
        ("output tokens per s", "output_tokens_per_s", 1.0),
        ("Throughput [tok/s]", "output_tokens_per_s", 1.0),
        ("TPS", "output_tokens_per_s", 1.0),
    ],
)
def test_results_as_benchmarks_name_them(
    tmp_path: Path, title: str, name: str, scale: float
) -> None:
    (row,) = read_run_table(table(tmp_path, f"| threads | {title} |\n| - | - |\n| 1 | 2434 |\n"))
    assert row.settings == {"threads": 1.0}
    assert row.figures[name][0] == pytest.approx(2434 * scale)


def test_what_a_run_came_to_is_no_setting(tmp_path: Path) -> None:
    text = (
        "max_concurrency,completed,failed,duration,total_input_tokens,std_ttft_ms,Benchmark "
        "duration (s),output_throughput\n8,200,0,31.5,4000,0,31.5,50\n"
    )
    (row,) = read_run_table(table(tmp_path, text))
    assert row.settings == {"max_concurrency": 8.0}
    assert list(row.figures) == ["output_tokens_per_s"]
    assert len(row.readings) == 6


@pytest.mark.parametrize("title", ["max_output_tokens", "request", "request_rate", "num_prompts"])
def test_settings_that_sound_like_rates(tmp_path: Path, title: str) -> None:
    (row,) = read_run_table(table(tmp_path, f"{title},tok/s\n1,2\n"))
    assert row.settings == {title: 1.0}


def test_every_known_setting_is_one_in_a_table(tmp_path: Path) -> None:
    """host_sleep_ms and link_bytes_per_s end as figures do, and are none."""
    names = [name for row in SETTINGS for name in row.names]
    text = ",".join([*names, "tpot_ms"]) + "\n" + ",".join(["1"] * (len(names) + 1)) + "\n"
    (row,) = read_run_table(table(tmp_path, text))
    assert set(row.settings) == set(names)
    assert list(row.figures) == ["tpot_s"]


def test_results_that_a_run_left_at_zero_do_not_refuse_the_table(tmp_path: Path) -> None:
    """Real files of vllm bench serve hold a peak of 0 that was not taken, and when they began."""
    text = (
        "max_concurrency,max_output_tokens_per_s,Peak output token throughput (tok/s),"
        "benchmark_start_time_unix,avg_decoded_tokens_per_iter,output_throughput\n"
        "4,0.0,0.0,1786026584.1,0.0,632.3\n"
    )
    (row,) = read_run_table(table(tmp_path, text))
    assert row.settings == {"max_concurrency": 4.0}
    assert list(row.figures) == ["output_tokens_per_s"]


def test_the_concurrency_reached_is_no_setting_beside_the_one_offered(tmp_path: Path) -> None:
    both = "max_concurrency,concurrency,tok/s\n8,7.61,50\n"
    (row,) = read_run_table(table(tmp_path, both))
    assert (row.settings, row.readings) == ({"max_concurrency": 8.0}, {"concurrency": 7.61})
    (alone,) = read_run_table(table(tmp_path, "concurrency,tok/s\n8,50\n"))
    assert alone.settings == {"concurrency": 8.0}


LLAMA_BENCH = (
    "| model | ngl | test | t/s |\n| --- | --: | --: | --: |\n"
    "| llama 8B | 99 | pp512 | 3921.12 ± 18.22 |\n| llama 8B | 99 | tg128 | 101.33 ± 0.42 |\n"
    "| llama 8B | 99 | pp512+tg128 | 480.10 ± 1.00 |\n\nbuild: 1e5b6d1b (4231)\n"
)


def test_what_llama_bench_prints(tmp_path: Path) -> None:
    rows = read_run_table(table(tmp_path, LLAMA_BENCH))
    assert [row.name for row in rows] == ["line 3", "line 4", "line 5"]
    # Prompt processing, generation, and both in one test are three quantities.
    assert [row.figures for row in rows] == [
        {"input_tokens_per_s": (3921.12, False)},
        {"output_tokens_per_s": (101.33, False)},
        {"total_tokens_per_s": (480.10, False)},
    ]


def test_a_wrong_row_is_named_by_its_line_in_the_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="line 5: 1 values under 2 columns"):
        read_run_table(table(tmp_path, "\n| threads | tok/s |\n|-|-|\n| 1 | 2 |\n| 3 |\n"))
    with pytest.raises(InputError, match="line 4: 1 values under 2 columns"):
        read_run_table(table(tmp_path, "threads,tok/s\n1,2\n\n3\n"))
