"""However a table is cut or changed, it is read in part or refused in one line: nothing else."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from stallscope.errors import InputError
from stallscope.profiler.capture import Capture
from stallscope.profiler.reading import read_input

NCU_LONG = (
    '==PROF== Connected to process 7\n"ID","Process ID","Kernel Name","Device","Section Name",'
    '"Metric Name","Metric Unit","Metric Value","Rule Name"\n'
    '"0","7","gemv2T_kernel_val<int, int>(P)","0","SOL","Duration","us","1,204.00"\n'
    '"0","7","gemv2T_kernel_val<int, int>(P)","0","SOL","DRAM Throughput","%","71.5"\n'
    '"0","7","gemv2T_kernel_val<int, int>(P)","0","SOL","","","","SOLBottleneck"\n'
    '"1","7","rms_norm_f32","0","SOL","Compute (SM) Throughput","%","3.5"\n'
)
NCU_WIDE = (
    '"ID","Kernel Name","Device","gpu__time_duration.sum","sm__throughput.avg.pct_of_peak_'
    'sustained_elapsed"\n"","","","nsecond","%"\n"0","rms_norm_f32","0","3,000","9.5"\n'
)
STATS = (
    "Time (%),Total Time (ns),Instances,Avg (ns),Name\n"
    '75.0,"3,000",2,1500.0,"gemv2T_kernel_val<int, int>(P)"\n25.0,1000,1,1000.0,rms_norm_f32\n\n'
    "Time (%),Total Time (ns),Count,Operation\n100.0,50,1,[CUDA memcpy Host-to-Device]\n"
)
STATS_TEXT = (
    " Time (%)  Total Time (ns)  Instances  Name        \n"
    " --------  ---------------  ---------  ------------\n"
    "    100.0            4,000          2  rms_norm_f32\n"
)
WHOLE = st.sampled_from([t.encode() for t in (NCU_LONG, NCU_WIDE, STATS, STATS_TEXT)])
HOSTILE = st.sampled_from(
    [b'"', b",", b"\0", b"\n", b"1e999", b"-", b"0", b"\xff", b"9" * 30, b"9" * 400]
)


def read(content: bytes) -> Capture | None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "table"
        file.write_bytes(content)
        try:
            return read_input(file)
        except InputError as error:
            said = str(error)
    assert "\n" not in said
    return None


@settings(deadline=None, max_examples=300)
@given(WHOLE, st.data())
def test_no_damage_is_a_crash(whole: bytes, data: st.DataObject) -> None:
    content = whole[: data.draw(st.integers(0, len(whole)))]
    for _ in range(data.draw(st.integers(0, 4))):
        at = data.draw(st.integers(0, len(content)))
        content = content[:at] + data.draw(HOSTILE) + content[at + data.draw(st.integers(0, 3)) :]
    capture = read(content)
    if capture is not None:
        assert all(k.busy_ns >= 0 and k.launches > 0 for k in capture.kernels)
        assert all(0.0 <= s.value <= 1.0 for s in capture.device_samples)


def test_the_whole_ones_are_read() -> None:
    # 1,204 µs; 3 µs; 3 + 1 + 0.05 µs; 4 µs.
    found = [read(t.encode()) for t in (NCU_LONG, NCU_WIDE, STATS, STATS_TEXT)]
    assert [sum(k.busy_ns for k in c.kernels) if c else None for c in found] == [
        1_204_000,
        3_000,
        4_050,
        4_000,
    ]
