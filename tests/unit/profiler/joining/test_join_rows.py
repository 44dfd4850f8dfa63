"""What of each source ends up in a joined capture: nothing twice, nothing of another time."""

from __future__ import annotations

from pathlib import Path

import pytest
from joined import read_together, sentences
from scripted_load import CSV_HEADER, LOAD, gpu_csv, server_log

from stallscope.errors import InputError

LOG, CSV = server_log(LOAD), gpu_csv(LOAD)
ARGS = (
    "(APIServer pid=7) INFO 06-17 12:00:00 [utils.py:1] non-default args: {'model': "
    "'meta/Llama-3-8B', 'tensor_parallel_size': 2, 'max_num_seqs': 32}\n"
)


def test_the_subject_is_that_of_all_sources(tmp_path: Path) -> None:
    capture = read_together(tmp_path, {"server.log": ARGS + LOG, "gpu.csv": CSV})
    subject = capture.subject
    assert (subject.engine, subject.max_num_seqs, subject.num_devices) == ("vllm", 32, 2)
    assert subject.device is not None
    assert subject.device.name == "h100-sxm"
    said = "server.log uses 2 GPUs, gpu.csv tells of 1: the others were not watched, or they are of"
    assert any(s.startswith(said) for s in sentences(capture))


def test_what_a_gpu_did_outside_the_run_is_left_out(tmp_path: Path) -> None:
    capture = read_together(tmp_path, {"server.log": LOG, "gpu.csv": CSV})
    # The first line with work closes the period from 60 s to 70 s; the last one, of 590 s,
    # counts nothing: work ended by 580 s.
    times = [s.t_ns / 1e9 for s in capture.device_samples]
    assert (min(times), max(times)) == (60, 581)
    # 641 rows of 3 counters, of which 60 to 581 s are kept: 522.
    told = f"{(641 - 522) * 3} of 1,923 samples of gpu.csv were taken before or after the run"
    assert any(s.startswith(told) for s in sentences(capture))


def test_the_order_of_files_does_not_matter(tmp_path: Path) -> None:
    one = read_together(tmp_path, {"server.log": LOG, "gpu.csv": CSV})
    assert one == read_together(tmp_path, {"gpu.csv": CSV, "server.log": LOG})


def test_a_file_twice_is_refused(tmp_path: Path) -> None:
    (tmp_path / "copy").symlink_to(tmp_path / "server.log")
    with pytest.raises(InputError, match=r"server\.log: is given twice; name it once"):
        read_together(tmp_path, {"server.log": LOG, "copy": LOG})


def test_two_logs_that_say_the_same_count_once(tmp_path: Path) -> None:
    alone = read_together(tmp_path, {"server.log": LOG, "gpu.csv": CSV})
    both = read_together(tmp_path, {"server.log": LOG, "second.log": LOG, "gpu.csv": CSV})
    assert both.engine_samples == alone.engine_samples
    told = "server.log says the same as second.log and is not counted again."
    assert told in sentences(both)


def test_preemptions_in_both_of_two_equal_logs_count_once(tmp_path: Path) -> None:
    warning = (
        "WARNING 06-17 12:02:00 [scheduler.py:1] Sequence group 7 is preempted by "
        "PreemptionMode.RECOMPUTE mode because there is not enough KV cache space.\n"
    )
    both = read_together(tmp_path, {"a.log": LOG + warning, "b.log": LOG + warning})
    assert sum(e.kind == "preempt" for e in both.events) == 1


def test_two_logs_of_two_servers_keep_their_engines_apart(tmp_path: Path) -> None:
    other = LOG.replace("Running: 16 reqs", "Running: 3 reqs").replace("Running: 32", "Running: 9")
    other = other.replace("Running: 24 reqs", "Running: 5 reqs")
    both = read_together(tmp_path, {"a.log": LOG, "b.log": other})
    most = {
        engine: max(
            s.value for s in both.engine_samples if s.engine == engine and s.name == "running"
        )
        for engine in {s.engine for s in both.engine_samples}
    }
    assert most == {"a.log 0": 32, "b.log 0": 9}


def test_devices_of_one_name_are_told_apart_unless_they_are_one(tmp_path: Path) -> None:
    def csv(uuid: str) -> str:
        header = CSV_HEADER.replace("index", "index, uuid")
        rows = gpu_csv(LOAD).removeprefix(CSV_HEADER).replace(", 0, NVIDIA", f", 0, {uuid}, NVIDIA")
        return header + rows

    def devices(other: str) -> set[str]:
        files = {"server.log": LOG, "a.csv": csv("GPU-1"), "b.csv": csv(other)}
        return {s.device for s in read_together(tmp_path, files).device_samples}

    assert devices("GPU-1") == {"GPU 0 NVIDIA H100 80GB HBM3"}
    assert devices("GPU-2") == {
        "GPU 0 NVIDIA H100 80GB HBM3",
        "GPU 0 NVIDIA H100 80GB HBM3 (b.csv)",
    }


def test_facts_that_differ_are_said_and_the_first_is_taken(tmp_path: Path) -> None:
    other = ARGS.replace("Llama-3-8B", "Qwen3-4B").replace(
        "'max_num_seqs': 32", "'max_num_seqs': 8"
    )
    capture = read_together(tmp_path, {"a.log": ARGS + LOG, "b.log": other + LOG})
    assert capture.subject.max_num_seqs == 32
    said = sentences(capture)
    assert "a.log states max_num_seqs 32, b.log 8: the first is taken. Are they of one run?" in said
    assert "a.log is of model meta/Llama-3-8B, b.log of meta/Qwen3-4B. Are they of one run?" in said


def test_what_has_no_clock_is_refused(tmp_path: Path) -> None:
    stats = "Time (%),Total Time (ns),Instances,Avg (ns),Name\n100.0,4000,2,2000.0,rms_norm_f32\n"
    with pytest.raises(InputError) as caught:
        read_together(tmp_path, {"server.log": LOG, "stats.csv": stats})
    assert str(caught.value) == (
        f"{tmp_path / 'stats.csv'}: is summaries of nsys stats, which tells no time, so nothing "
        "puts it beside other files; give it alone"
    )
