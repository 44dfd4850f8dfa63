"""ncu's pages, in each of their layouts, give the same figures; anything else is one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from stallscope.errors import InputError
from stallscope.profiler.capture import Capture
from stallscope.profiler.ncu.reader import read_ncu_csv

# Two launches: 2 ms at SM 30 % and DRAM 80.5 %, 3 µs at 1 % and 0.5 %. By duration:
SM = (2000 * 30.0 + 3 * 1.0) / 2003 / 100
DRAM = (2000 * 80.5 + 3 * 0.5) / 2003 / 100
IDENTITY = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size",'
    '"Grid Size","Device","CC"'
)
GEMV, NORM = '"gemv2T_kernel_val<int>(P)"', '"void vllm::rms_norm_kernel<float>(float*)"'
WIDE = f"""Loading checkpoint shards: 100%
==PROF== Connected to process 1234 (/usr/bin/python3)
==PROF== Profiling "gemv2T_kernel_val": 0%....50%....100% - 2 passes
{IDENTITY},"dram__throughput.avg.pct_of_peak_sustained_elapsed","gpu__time_duration.sum",\
"sm__throughput.avg.pct_of_peak_sustained_elapsed"
"","","","","","","","","","","","%","nsecond","%"
"0","1234","python3","host",{GEMV},"1","7","(128, 1, 1)","(80, 1, 1)","0","8.0","80.5",\
"2,000,000","30.0"
"1","1234","python3","host",{NORM},"1","7","(256, 1, 1)","(1, 1, 1)","0","8.0","0.5","3,000","1.0"
==PROF== Disconnected from process 1234
"""


def long_rows(kernel_id: int, name: str, *metrics: tuple[str, str, str, str]) -> str:
    start = (
        f'"{kernel_id}","1234","python3","host",{name},"1","7","(128, 1, 1)","(80, 1, 1)","0","8.0"'
    )
    return "".join(
        f'{start},"{section}","{metric}","{unit}","{value}"\n'
        for section, metric, unit, value in metrics
    )


SOL, MEMORY = "GPU Speed Of Light Throughput", "Memory Workload Analysis"
LONG = (
    f'{IDENTITY},"Section Name","Metric Name","Metric Unit","Metric Value","Rule Name",'
    '"Rule Type","Rule Description"\n'
    + long_rows(
        0,
        GEMV,
        (SOL, "Memory Throughput", "%", "97.0"),  # the maximum over L1, L2 and DRAM
        (SOL, "DRAM Throughput", "%", "80.5"),
        (SOL, "Duration", "ms", "2.00"),
        (SOL, "Compute (SM) Throughput", "%", "30.0"),
        (MEMORY, "Memory Throughput", "Gbyte/s", "1,234.5"),
    )
    + '"0","1234","python3","host",' + GEMV + ',"1","7","(128, 1, 1)","(80, 1, 1)","0","8.0",'
    '"SpeedOfLight","","","","SOLBottleneck","OPT","Look at ""Memory"",\nit is high."\n'
    + long_rows(
        1,
        NORM,
        (SOL, "Memory Throughput", "%", "6.0"),
        (SOL, "DRAM Throughput", "%", "0.5"),
        (SOL, "Duration", "us", "3.00"),
        (SOL, "Compute (SM) Throughput", "%", "1.0"),
    )
)  # fmt: skip
# The same by kernel, as averages, one of them over two launches of 1 ms.
SUMMARY = (
    '"Process ID","Process Name","Host Name","Kernel Name","Block Size","Grid Size","Device","CC",'
    '"Invocations","Section Name","Metric Name","Metric Unit","Minimum","Maximum","Average"\n'
    + "".join(
        f'"1","python3","host",{name},"(1, 1, 1)","(1, 1, 1)","0","8.0","{count}","{SOL}",'
        f'"{metric}","{unit}","0","100","{value}"\n'
        for name, count, metric, unit, value in (
            (GEMV, 2, "Duration", "ms", "1.00"),
            (GEMV, 2, "Compute (SM) Throughput", "%", "30.0"),
            (GEMV, 2, "DRAM Throughput", "%", "80.5"),
            (NORM, 1, "Duration", "us", "3.00"),
            (NORM, 1, "Compute (SM) Throughput", "%", "1.0"),
            (NORM, 1, "DRAM Throughput", "%", "0.5"),
        )
    )
)


def read(folder: Path, text: str | bytes) -> Capture:
    file = folder / "kernels.csv"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_ncu_csv(file)


def refusal(folder: Path, text: str) -> str:
    with pytest.raises(InputError) as caught:
        read(folder, text)
    assert "\n" not in str(caught.value)
    return str(caught.value).removeprefix(f"{folder}/kernels.csv ")


def figures(capture: Capture) -> dict[str, float]:
    assert {s.device for s in capture.device_samples} == {"cuda:0"}
    return {s.name: s.value for s in capture.device_samples}


@pytest.mark.parametrize(("text", "launches"), [(WIDE, 1), (LONG, 1), (SUMMARY, 2)])
def test_layouts_agree(tmp_path: Path, text: str, launches: int) -> None:
    capture = read(tmp_path, text)
    found = figures(capture)
    assert found == {
        "ncu_sm_throughput": pytest.approx(SM),
        "ncu_dram_throughput": pytest.approx(DRAM),
    }
    rows = [(k.kernel_class, k.launches, k.busy_ns, k.exposed_ns) for k in capture.kernels]
    assert rows == [("gemv", launches, 2_000_000, None), ("norm", 1, 3_000, None)]


def test_powershell_writes_utf_16(tmp_path: Path) -> None:
    assert figures(read(tmp_path, WIDE.encode("utf-16"))) == figures(read(tmp_path, WIDE))


def test_the_report_is_told_that_these_are_kernels_not_a_run(tmp_path: Path) -> None:
    check, missing = read(tmp_path, WIDE).events
    assert check.data["sentence"].startswith("ncu gave profiles of 2 launches, not of a run")
    assert "blocks" not in check.data
    assert missing.data["what"] == "occupancy"


def test_what_the_device_lacks_is_absent_not_zero(tmp_path: Path) -> None:
    capture = read(tmp_path, LONG.replace('"80.5"', '"n/a"').replace('"0.5"', '"n/a"'))
    assert figures(capture) == {"ncu_sm_throughput": pytest.approx(SM)}
    missing = [e.data["what"] for e in capture.events if e.kind == "not_observable"]
    assert missing == ["DRAM throughput", "occupancy"]


def test_a_share_beyond_all_is_no_measurement(tmp_path: Path) -> None:
    assert figures(read(tmp_path, LONG.replace('"80.5"', '"100.4"').replace('"0.5"', '"n/a"'))) == {
        "ncu_sm_throughput": pytest.approx(SM),
        "ncu_dram_throughput": 1.0,
    }
    beyond = figures(read(tmp_path, LONG.replace('"80.5"', '"805"').replace('"0.5"', '"-1"')))
    assert beyond == {"ncu_sm_throughput": pytest.approx(SM)}


def test_without_durations_launches_count_alike_and_have_no_rows(tmp_path: Path) -> None:
    capture = read(tmp_path, LONG.replace('"Duration"', '"Something"'))
    assert figures(capture)["ncu_sm_throughput"] == pytest.approx((0.30 + 0.01) / 2)
    assert capture.kernels == ()


def test_cycles_and_clock_stand_in_for_a_duration(tmp_path: Path) -> None:
    # 3,980 cycles at 1.99 GHz are 2,000 ns, whether the file says GHz, MHz or drops the unit.
    rows = [
        (SOL, "Elapsed Cycles", "cycle", "3,980"),
        (SOL, "SM Frequency", "cycle/nsecond", "1.99"),
    ]
    head = LONG.split("\n")[0] + "\n"
    assert read(tmp_path, head + long_rows(0, NORM, *rows)).kernels[0].busy_ns == 2000
    rows[1] = (SOL, "SM Frequency", "Mhz", "1,990")
    assert read(tmp_path, head + long_rows(0, NORM, *rows)).kernels[0].busy_ns == 2000
    scripted = (
        "kernel_id,section,metric_name,value\nk1,SpeedOfLight,Elapsed Cycles,3980.0\n"
        "k1,SpeedOfLight,SM Frequency,1.99\nk1,SpeedOfLight,DRAM Throughput,19.66\n"
    )
    capture = read(tmp_path, scripted)
    assert (capture.kernels[0].name, capture.kernels[0].busy_ns) == ("k1", 2000)
    assert figures(capture) == {"ncu_dram_throughput": pytest.approx(0.1966)}


def test_each_device_has_its_own_figures(tmp_path: Path) -> None:
    other = WIDE.replace('"(1, 1, 1)","0"', '"(1, 1, 1)","1"')
    means = {(s.device, s.name): s.value for s in read(tmp_path, other).device_samples}
    assert means["cuda:0", "ncu_sm_throughput"] == pytest.approx(0.30)
    assert means["cuda:1", "ncu_sm_throughput"] == pytest.approx(0.01)


def test_a_page_cut_in_a_row_is_read_up_to_it(tmp_path: Path) -> None:
    capture = read(tmp_path, WIDE[: WIDE.index('"3,000"') + 3])
    assert [k.busy_ns for k in capture.kernels] == [2_000_000]
    assert capture.events[1].data["sentence"].startswith("The page is cut in the middle of a row")


def test_what_is_no_page_of_kernels_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path, "a,b\n1,2\n").startswith("holds no table of ncu's; export one with")
    assert refusal(tmp_path, WIDE.split("\n")[3] + "\n").startswith("holds no kernel: none ran")
    bare = f'{IDENTITY},"launch__grid_size"\n"0","1","p","h",{NORM},"1","7","","","0","8.0","80"\n'
    said = (
        "holds neither durations nor throughputs of its kernels; profile again with ncu --set basic"
    )
    assert refusal(tmp_path, bare) == said


def test_published_pages(corpus: Path) -> None:
    # Read off the files: SM 9.15 %, DRAM 19.66 %, 6.75 µs in each page of kernel 1.
    for page in ("details", "metrics", "SpeedOfLight"):
        capture = read_ncu_csv(corpus / f"ncu/dsocr_kernel0001_{page}.csv")
        found = figures(capture)
        assert found["ncu_sm_throughput"] == pytest.approx(0.0915)
        assert found["ncu_dram_throughput"] == pytest.approx(0.1966)
        assert [(k.kernel_class, k.busy_ns) for k in capture.kernels] == [("gemv", 6750)]
    # "Memory Throughput" of kernel 19 is 78.21 %: its L2. DRAM is at 15.48 %.
    strided = figures(read_ncu_csv(corpus / "ncu/dsocr_kernel0019_details.csv"))
    assert strided["ncu_dram_throughput"] == pytest.approx(0.1548)
    assert strided["ncu_occupancy"] == pytest.approx(0.8766)
    assert len(read_ncu_csv(corpus / "ncu/dsocr_all_metrics_long.csv").kernels) == 20
