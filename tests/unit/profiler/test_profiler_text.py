"""What profilers print instead of figures: read as what it is, and never as a measurement."""

from __future__ import annotations

from pathlib import Path

import pytest

from stallscope.analyzers.diagnose import diagnose
from stallscope.errors import InputError
from stallscope.profiler.file_kinds import InputKind, input_kind
from stallscope.profiler.profiler_text import read_profiler_text
from stallscope.profiler.reading import read_input

REFUSED = (
    "==PROF== Connected to process 7 (/usr/bin/python3)\n"
    "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU "
    "Performance Counters on the target device 0.\n"
)
NSYS_REFUSED = (
    "Illegal --gpu-metrics-devices argument: 0.\n"
    "Insufficient privilege, see https://developer.nvidia.com/ERR_NVGPUCTRPERM\n"
)
NO_KERNEL = (
    "==PROF== Connected to process 7 (/usr/bin/mpirun)\n==WARNING== No kernels were profiled.\n"
)
# 27.0 of 27.0 + 2.0 + 1.0 = 30 s lie in .cpu(); 0.5 s more in cuda.synchronize.
CPROFILE = """         8123 function calls (7991 primitive calls) in 30.500 seconds

   Ordered by: internal time

   ncalls  tottime  percall  cumtime  percall filename:lineno(function)
     3000   27.000    0.009   27.000    0.009 {method 'cpu' of 'torch._C.TensorBase' objects}
96000/300    2.000    0.000    2.200    0.000 linear.py:114(forward)
      300    1.000    0.000   28.900    0.010 sampler.py:50(forward)
       10    0.500    0.050    0.500    0.050 __init__.py:954(synchronize)
"""
LINES = "Line #      Hits         Time  Per Hit   % Time  Line Contents\n====\n"


def written(folder: Path, text: str) -> Path:
    path = folder / "printed"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (REFUSED, "they are unknown, not 0"),
        (NSYS_REFUSED, "refused the GPU's counters"),
        (NO_KERNEL, "--target-processes all"),
        (CPROFILE, "(here 27.5 s of the 30.5 s listed lie in calls that wait so)"),
        (LINES, "Only a trace of the GPU decides"),
    ],
)
def test_it_says_why_it_cannot_answer(tmp_path: Path, text: str, words: str) -> None:
    path = written(tmp_path, text)
    assert input_kind(path) is InputKind.PROFILER_TEXT
    found = diagnose(read_input(path))
    assert found.verdict.bottleneck == "profiler"
    assert words in found.verdict.sentence
    assert found.measures == ()
    assert found.not_observable[0].how


def test_a_profile_without_a_wait_names_no_share(tmp_path: Path) -> None:
    text = CPROFILE.replace("method 'cpu'", "method 'view'").replace("synchronize", "start")
    found = diagnose(read_profiler_text(written(tmp_path, text)))
    assert "(here" not in found.verdict.sentence


@pytest.mark.parametrize(
    "text",
    [
        "How to get around ERR_NVGPUCTRPERM: ask your administrator.\n",
        "calls total per call\n3 4.0 5.0\n",
        "",
    ],
)
def test_other_texts_are_none(tmp_path: Path, text: str) -> None:
    path = written(tmp_path, text)
    assert input_kind(path) is not InputKind.PROFILER_TEXT
    with pytest.raises(InputError, match="neither a refusal"):
        read_profiler_text(path)


def test_a_table_of_figures_beside_a_refusal_is_read(tmp_path: Path) -> None:
    page = (
        '"ID","Process ID","Process Name","Kernel Name","Device","Section Name","Metric Name",'
        '"Metric Unit","Metric Value"\n'
        '"0","7","python","k","0","GPU Speed Of Light Throughput","Duration","us","9.5"\n'
    )
    assert input_kind(written(tmp_path, REFUSED + page)) is InputKind.NCU_PAGE
