"""Whatever a file is called, its content says how it is read; what nothing reads is one line."""

from __future__ import annotations

import gzip
import json
import sqlite3
from pathlib import Path

import pytest

from stallscope.errors import CaptureError, InputError
from stallscope.profiler.capture_file import is_capture
from stallscope.profiler.file_kinds import InputKind, input_kind
from stallscope.profiler.reading import read_input, read_inputs
from stallscope.profiler.recorder import Recorder

NCU = (
    '==PROF== Connected to process 7\n"ID","Kernel Name","Device","Metric Name","Metric Unit",'
    '"Metric Value"\n"0","gemv2T_kernel_val","0","Duration","us","4.00"\n'
)
STATS = "Time (%),Total Time (ns),Instances,Avg (ns),Name\n100.0,4000,2,2000.0,rms_norm_f32\n"
STATS_TEXT = (
    " Time (%)  Total Time (ns)  Instances  Name        \n"
    " --------  ---------------  ---------  ------------\n"
    "    100.0            4,000          2  rms_norm_f32\n"
)
TRACE = json.dumps({"schemaVersion": 1, "deviceProperties": [], "traceEvents": []})
BARE = '[{"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 1}]'
REPORT = b"NVIDIA Tegra Profiler Report 2025@6@1@190-256136895201v0.\n\x0b"
CONTENTS = {
    InputKind.NCU_PAGE: [
        NCU.encode(),
        NCU.encode("utf-16"),
        b"step 1, loss 2\n" * 1000 + NCU.encode(),
        b"kernel_id,section,metric_name,value\nk1,SpeedOfLight,Duration,6.75\n",
    ],
    InputKind.NSYS_STATS: [
        STATS.encode(),
        gzip.compress(STATS.encode()),
        b"Processing [a.sqlite]...\n" + STATS_TEXT.encode(),
    ],
    InputKind.KINETO: [
        TRACE.encode(),
        b"\xef\xbb\xbf" + TRACE.encode(),
        gzip.compress(TRACE.encode()),
        gzip.compress(TRACE.encode() * 100_000)[:2000],  # cut
        BARE.encode(),
        b'{"traceEvents": [',
    ],
    InputKind.NSYS_REPORT: [REPORT],
    InputKind.NCU_REPORT: [b"NVR\0\x10\0\0\0"],
    InputKind.TELEMETRY: [
        b"timestamp, utilization.gpu [%]\n2026/01/03 15:36:53.507, 1 %\n",
        "index, power.draw [W]\r\n0, 71,25 W\r\n".encode("utf-16"),
        b"2024/01/16 14:44:16.981, 95 %, 30 %\n",
        b'<?xml version="1.0" ?>\n<nvidia_smi_log><gpu id="0"/></nvidia_smi_log>',
        b"==============NVSMI LOG==============\n\nTimestamp : x\n",
        b"$ nvidia-smi\nTue Jul 14 09:00:26 2026\n+---+\n| NVIDIA-SMI 590.48.01   Driver |\n",
        b"# gpu    pwr  gtemp\n# Idx      W      C\n    0     43     48\n",
        b"#Entity   GRACT  SMACT\nID\nGPU 0     0.1    0.2\n",
        b'# HELP x\nDCGM_FI_DEV_GPU_UTIL{gpu="0"} 5\n',
        b"GPUId,TimeStampUs,Field,Values\n",
    ],
    InputKind.METRICS: [
        b'vllm:num_requests_running{engine="0"} 5.0\n',
        b'# HELP x\nDCGM_FI_DEV_GPU_UTIL{gpu="0"} 5\nvllm:kv_cache_usage_perc 0.5\n',
    ],
    None: [
        b"",
        b"timestamp,name,value\n2026/01/03,x,1\n",
        b"2024/01/16 14:44:16 INFO started, 3 workers\n",
        b'node_load1{instance="a"} 0.5\n',
        b"INFO request served\n" * 100 + b"| NVIDIA-SMI 590.48.01   Driver |\n",  # deep in a log
        b"old\n",
        b'{"model": "llama"}',
        b"[1, 2, 3]",
        gzip.compress(b"some text"),
        b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01\0\0\x01" + bytes(range(256)) * 20,
        b'Name,"Total Time (ns)\0\n',
    ],
}


@pytest.mark.parametrize(
    ("kind", "content"), [(kind, content) for kind, some in CONTENTS.items() for content in some]
)
def test_content_tells_the_kind(tmp_path: Path, kind: InputKind | None, content: bytes) -> None:
    file = tmp_path / "run.sqlite"  # a name that lies
    file.write_bytes(content)
    assert input_kind(file) == kind


def database(path: Path, table: str) -> None:
    db = sqlite3.connect(path)
    db.execute(f"CREATE TABLE {table} (id INTEGER, value TEXT)")
    db.executemany(f"INSERT INTO {table} VALUES (?, ?)", [(i, "x" * 50) for i in range(500)])
    db.commit()
    db.close()


def test_databases_are_told_by_their_tables(tmp_path: Path) -> None:
    own, nsys, other = (tmp_path / name for name in ("own.json", "nsys.csv", "other.sqlite"))
    Recorder(own).close()
    database(nsys, "StringIds")
    database(other, "Customers")
    assert is_capture(own)
    assert [input_kind(p) for p in (own, nsys, other)] == [
        InputKind.CAPTURE,
        InputKind.NSYS_SQLITE,
        None,
    ]
    # Cut in half, and with a first page that SQLite does not read: still an nsys export.
    whole = nsys.read_bytes()
    nsys.write_bytes(whole[: len(whole) // 2])
    assert input_kind(nsys) is InputKind.NSYS_SQLITE
    nsys.write_bytes(whole[:100] + b"\x07" + whole[101:])
    assert input_kind(nsys) is InputKind.NSYS_SQLITE


def test_each_kind_without_a_timeline_is_read(tmp_path: Path) -> None:
    file = tmp_path / "run"
    for content, kind, busy_ns in ((NCU, "ncu", 4000), (STATS, "nsys stats", 4000)):
        file.write_text(content)
        capture = read_input(file)
        assert [(s.kind, s.path) for s in capture.sources] == [(kind, str(file))]
        assert [k.busy_ns for k in capture.kernels] == [busy_ns]
    file.unlink()
    Recorder(file).close()
    assert "ended" in read_input(file).meta


@pytest.mark.parametrize("content", CONTENTS[None])
def test_the_rest_is_refused_in_one_line(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "photo.nsys-rep"
    file.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_input(file)
    said = str(caught.value)
    assert said.startswith(f"{file}: a")
    assert "; diagnose reads captures of stallscope, nsys reports" in said
    assert "\n" not in said


def test_a_page_without_times_is_joined_with_nothing(tmp_path: Path) -> None:
    ncu, trace = tmp_path / "a", tmp_path / "b"
    ncu.write_text(NCU)
    trace.write_text(TRACE)
    with pytest.raises(InputError) as caught:
        read_inputs([trace, ncu])
    assert str(caught.value).startswith(f"{ncu}: is a page of ncu, which tells no time, so")


def test_ranks_are_traced_with_one_tool(tmp_path: Path) -> None:
    nsys, trace = tmp_path / "a", tmp_path / "b"
    database(nsys, "StringIds")
    trace.write_text(TRACE)
    with pytest.raises(InputError, match="b: is a trace of the PyTorch profiler, others are of ns"):
        read_inputs([nsys, trace])


def kernel(ts: int, dur: int) -> dict[str, object]:
    return {"ph": "X", "cat": "kernel", "name": "volta_sgemm_64x64_nn", "ts": ts, "dur": dur}


def test_several_traces_are_the_ranks_of_one_run(tmp_path: Path) -> None:
    files = []
    for rank, dur in enumerate((1000, 3000)):
        args = {"device": 0, "stream": 7, "correlation": 1}
        events = [kernel(5000 * i, dur) | {"args": args} for i in range(5)]
        content = {
            "deviceProperties": [{"id": 0, "name": "NVIDIA L4"}],
            "distributedInfo": {"rank": rank, "world_size": 2},
            "traceEvents": events,
        }
        files.append(tmp_path / f"{'ba'[rank]}.json")
        files[-1].write_text(json.dumps(content))
    capture = read_inputs(files)
    assert [s.path for s in capture.sources] == [str(file) for file in files]
    # Five kernels of 1 ms on rank 0, five of 3 ms on rank 1.
    assert {k.rank: k.busy_ns for k in capture.kernels} == {0: 5_000_000, 1: 15_000_000}


def test_a_damaged_capture_keeps_its_own_refusal(tmp_path: Path) -> None:
    file = tmp_path / "run"
    Recorder(file).close()
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(CaptureError, match="damaged or truncated"):
        read_input(file)


@pytest.mark.parametrize(
    ("content", "is_told"), [(b'{"laeufe": [{"tps": 18.2}]}', True), (b"\x00", False)]
)
def test_results_of_a_script_of_ones_own_may_be_set_in_a_table(
    tmp_path: Path, content: bytes, is_told: bool
) -> None:
    file = tmp_path / "mine.json"
    file.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_input(file)
    told = "in a table, CSV or Markdown, and stallscope compare reads it"
    assert str(caught.value).endswith(told) is is_told
