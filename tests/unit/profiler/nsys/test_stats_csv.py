"""Summaries of nsys stats: each version's names, CSV and text; and what they cannot tell."""

from __future__ import annotations

from pathlib import Path

import pytest

from stallscope.errors import InputError
from stallscope.profiler.capture import Capture
from stallscope.profiler.nsys.stats_csv import read_nsys_stats

GEMV, ADD = "gemv2T_kernel_val<int, int>(Params)", "vectorized_elementwise_kernel<4>(int)"
NEW = f"""Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name
75.0,3000000,1000,3000.0,3000.0,2000,5000,10.0,"{GEMV}"
25.0,1000000,500,2000.0,2000.0,1000,3000,10.0,"{ADD}"
"""
OLD = f""""Time(%)","Total Time (ns)","Instances","Average","Minimum","Maximum","StdDev","Name"
75.0,3000000,1000,3000.0,2000,5000,10.0,"{GEMV}"
25.0,1000000,500,2000.0,1000,3000,10.0,"{ADD}"
"""
THOUSANDS = NEW.replace("3000000,1000", '"3,000,000","1,000"').replace("1000000", '"1,000,000"')
MICROSECONDS = NEW.replace("(ns)", "(us)").replace("3000000", "3000").replace("1000000", "1000")
TEXT = f"""Processing [run.sqlite] with [/opt/nsys/reports/cuda_gpu_kern_sum.py]...

 ** CUDA GPU Kernel Summary (cuda_gpu_kern_sum):

 Time (%)  Total Time (ns)  Instances  Avg (ns)  Med (ns)  Min (ns)  Max (ns)  StdDev (ns)  Name
 --------  ---------------  ---------  --------  --------  --------  --------  -----------  ------
     75.0        3,000,000      1,000   3,000.0   3,000.0     2,000     5,000         10.0  {GEMV}
     25.0        1,000,000        500   2,000.0   2,000.0     1,000     3,000         10.0  {ADD}

Processing [run.sqlite] with [/opt/nsys/reports/cuda_gpu_mem_time_sum.py]...
SKIPPED: run.sqlite does not contain GPU memory data.
"""
COPIES = """
 ** CUDA GPU MemOps Summary (by Time) (cuda_gpu_mem_time_sum):

Time (%),Total Time (ns),Count,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Operation
98.0,5000000,10,500000.0,1.0,1,2,0.0,[CUDA memcpy Host-to-Device]
1.0,40000,20,2000.0,1.0,1,2,0.0,[CUDA memcpy Device-to-Device]
1.0,60000,30,2000.0,1.0,1,2,0.0,[CUDA memset]
"""
SIZES = """
Total (MB),Count,Avg (MB),Med (MB),Min (MB),Max (MB),StdDev (MB),Operation
4000.5,2000,2.0,1.0,0.001,64.0,5.0,[CUDA memcpy Host-to-Device]
"""
CALLS = """
Time (%),Total Time (ns),Num Calls,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name
90.0,9000000,1500,6000.0,5000.0,1000,90000,10.0,cudaLaunchKernel
"""
OS_CALLS = CALLS.replace("cudaLaunchKernel", "poll").replace("9000000", "70000000")
RANGES = """
Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Style,Range
90.0,20000000,10,2000000.0,1.0,1,2,0.0,PushPop,:decode
"""
IN_RANGES = f"""
NVTX Range,Style,PID,TID,NVTX Inst,Kern Inst,Total Time (ns),Avg (ns),Kernel Name
:prefill,PushPop,1,1,1,10,1500000,150000.0,"{GEMV}"
stallscope:decode,PushPop,1,1,9,990,1500000,1515.2,"{GEMV}"
stallscope:decode,PushPop,1,1,9,500,1000000,2000.0,"{ADD}"
:warmup,PushPop,1,1,1,10,7000,700.0,"{ADD}"
:layer 3,PushPop,1,1,9,500,900000,1800.0,"{ADD}"
"""
MIXED = f"""
Time (%),Total Time (ns),Instances,Avg (ns),Category,Operation
60.0,3000000,1000,3000.0,CUDA_KERNEL,"{GEMV}"
40.0,2000000,4,500000.0,MEMORY_OPER,[CUDA memcpy Host-to-Device]
"""


def read(folder: Path, text: str) -> Capture:
    file = folder / "stats.csv"
    file.write_text(text)
    return read_nsys_stats(file)


def rows(capture: Capture) -> list[tuple[str, str, int, int]]:
    return [(k.phase, k.kernel_class, k.launches, k.busy_ns) for k in capture.kernels]


PLAIN = [("other", "gemv", 1000, 3_000_000), ("other", "elementwise", 500, 1_000_000)]


@pytest.mark.parametrize("text", [NEW, OLD, THOUSANDS, MICROSECONDS, TEXT])
def test_versions_and_forms_agree(tmp_path: Path, text: str) -> None:
    capture = read(tmp_path, text)
    assert rows(capture) == PLAIN
    assert [k.name for k in capture.kernels] == [GEMV, ADD]


def test_the_timeline_is_missing_and_said_to_be(tmp_path: Path) -> None:
    capture = read(tmp_path, NEW)
    missing, length = capture.events
    assert missing.data["what"] == "the share of time in which a kernel ran"
    assert "drops its timeline" in missing.data["reason"]
    assert capture.device_samples == ()  # above all no busy share
    # 4 ms in 1,500 launches.
    assert length.data["value"] == pytest.approx(4e-3 / 1500)


def test_copies_over_a_link_are_copies_and_their_exposure_is_unknown(tmp_path: Path) -> None:
    capture = read(tmp_path, NEW + COPIES + SIZES)
    assert rows(capture) == [
        ("other", "copy", 10, 5_000_000),
        *PLAIN,
        ("other", "elementwise", 30, 60_000),
        ("other", "elementwise", 20, 40_000),
    ]
    assert {k.exposed_ns for k in capture.kernels} == {None}


def test_ranges_that_mark_steps_give_kernels_their_phase(tmp_path: Path) -> None:
    # 1.5 + 1.5 + 1 ms are all of the 4 ms; warm-up and inner ranges are no phases.
    assert rows(read(tmp_path, NEW + IN_RANGES)) == [
        ("prefill", "gemv", 10, 1_500_000),
        ("decode", "gemv", 990, 1_500_000),
        ("decode", "elementwise", 500, 1_000_000),
    ]
    assert len(read(tmp_path, IN_RANGES).kernels) == 3


def test_kernels_counted_twice_by_nested_ranges_are_not_taken_by_phase(tmp_path: Path) -> None:
    nested = IN_RANGES + f':decode,PushPop,1,1,9,990,1500000,1515.2,"{GEMV}"\n'
    assert rows(read(tmp_path, NEW + nested)) == PLAIN


def test_calls_and_ranges_are_kept_beside_the_kernels(tmp_path: Path) -> None:
    capture = read(tmp_path, NEW + CALLS + OS_CALLS + RANGES)
    assert rows(capture) == PLAIN
    launch = {"name": "cudaLaunchKernel", "count": 1500, "total_ns": 9_000_000}
    decode = {"name": ":decode", "count": 10, "total_ns": 20_000_000}
    assert capture.meta["nsys_stats"] == {"calls": [launch], "ranges": [decode]}


def test_the_mixed_summary_counts_only_where_the_plain_ones_are_not(tmp_path: Path) -> None:
    moved = ("other", "copy", 4, 2_000_000)
    assert rows(read(tmp_path, MIXED)) == [PLAIN[0], moved]
    assert rows(read(tmp_path, NEW + MIXED)) == [PLAIN[0], moved, PLAIN[1]]


def test_a_cut_row_is_left_out(tmp_path: Path) -> None:
    assert rows(read(tmp_path, NEW[: NEW.index("500,2000.0")])) == PLAIN[:1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nothing here\n", "holds no summary by time of nsys stats; make one with: nsys stats"),
        (CALLS, "sums up no kernel; add them with: nsys stats --report cuda_gpu_kern_sum"),
        (NEW.split("\n")[0], "sums up no kernel; add them with: nsys stats"),
        (NEW.replace("3000000", "-1").replace("1000000", "nan"), "sums up no kernel"),
    ],
)
def test_what_holds_no_kernels_is_one_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path, text)
    assert str(caught.value).startswith(f"{tmp_path}/stats.csv {said}")
    assert "\n" not in str(caught.value)
    assert "gpukernsum" in str(caught.value)  # the name that nsys has for it until 2022


def test_published_summaries(corpus: Path) -> None:
    # Added up from the files: 46 names, 78,016 launches, 179.07 ms; 97, 6,660, 65.69 ms.
    for phase, names, launches, time_ns in (
        ("decode", 46, 78_016, 179_072_697),
        ("prefill", 97, 6_660, 65_691_733),
    ):
        found = read_nsys_stats(corpus / f"nsys_stats/dsocr_{phase}_cuda_gpu_kern_sum.csv").kernels
        assert len(found) == names
        assert (sum(k.launches for k in found), sum(k.busy_ns for k in found)) == (
            launches,
            time_ns,
        )
