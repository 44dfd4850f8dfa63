"""How fast a PyTorch profiler trace becomes a diagnosis, and in how much memory.

Run `python benchmarks/kineto.py FOLDER`. The file is made there once (200 MB of a decoder's steps,
laid out as Kineto does) and read in a new process each time, so that the memory is its own.
"""

from __future__ import annotations

import argparse
import gzip
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

TRIES = 5
LAYERS = 32
# (operator, kernel, microseconds) of one layer: names as cuBLAS, FlashAttention and ATen have them.
LAYER = (
    ("aten::rms_norm", "void at::native::(anonymous namespace)::rms_norm_kernel<c10::BFloat16, 4>"
     "(c10::BFloat16 const*, c10::BFloat16*, float, int)", 2.4),
    ("aten::mm", "nvjet_tst_64x8_64x16_4x1_v_bz_TNT", 9.7),
    ("aten::add", "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add"
     "<c10::BFloat16>, std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<c10::BFloat16>, "
     "std::array<char*, 3ul>)", 1.6),
    ("flash_attn::fwd", "void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128, 64, "
     "128, 4, false, false, cutlass::bfloat16_t, Flash_kernel_traits<128, 64, 128, 4, "
     "cutlass::bfloat16_t> >, false, false, false, false, true, false, true, false>"
     "(flash::Flash_fwd_params)", 6.1),
    ("aten::mm", "nvjet_tst_128x8_64x12_2x1_v_bz_splitK_TNT", 7.2),
    ("aten::silu_and_mul", "void vllm::act_and_mul_kernel<c10::BFloat16, &(c10::BFloat16 "
     "vllm::silu_kernel<c10::BFloat16>(c10::BFloat16 const&)), true>(c10::BFloat16*, "
     "c10::BFloat16 const*, int)", 2.0),
)  # fmt: skip
HOST = """  {
    "ph": "X", "cat": "%s", "name": "%s", "pid": 4211, "tid": 4211,
    "ts": %.3f, "dur": %.3f,
    "args": {
      %s
    }
  },
"""
KERNEL = """  {
    "ph": "X", "cat": "kernel", "name": "%s", "pid": 0, "tid": 7,
    "ts": %.3f, "dur": %.3f,
    "args": {
      "External id": %d, "queued": 0, "device": 0, "context": 1,
      "stream": 7, "correlation": %d,
      "registers per thread": 40, "shared memory": 0, "blocks per SM": 1.939394,
      "warps per SM": 7.757576, "grid": [256, 1, 1], "block": [128, 1, 1],
      "est. achieved occupancy %%": 12
    }
  },
"""
FLOW = """  {
    "ph": "%s", "id": %d, "pid": %d, "tid": %d, "ts": %.3f,
    "cat": "ac2g", "name": "ac2g"%s
  },
"""
HEADER = """{
  "schemaVersion": 1,
  "deviceProperties": [
    {
      "id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85018279936, "numSms": 132
    }
  ],
  "record_shapes": 1,
  "displayTimeUnit": "ms",
  "baseTimeNanoseconds": 1751410836000000000,
  "traceEvents": [
"""
TRAILER = """  {
    "name": "Record Window End", "ph": "i", "s": "g",
    "pid": "", "tid": "", "ts": %.3f
  }
  ],
  "traceName": "benchmark.json"
}
"""


def steps() -> Iterator[str]:
    """Yield the text of one decode step after the other, without end."""
    now, number = 1_428_625_731_896.179, 0
    while True:
        parts, began = [], now
        for _ in range(LAYERS):
            for operator, kernel, length in LAYER:
                number += 1
                shapes = (
                    f'"External id": {number},"Record function id": 0, "Concrete Inputs": ["", ""'
                )
                shapes += (
                    '], "Input type": ["c10::BFloat16", "c10::BFloat16"], "Input Dims": [[64, '
                )
                shapes += f'4096], [4096, 4096]], "Ev Idx": {number}'
                parts.append(HOST % ("cpu_op", operator, now, 9.5, shapes))
                call = f'"External id": {number}, "cbid": 211, "correlation": {number}'
                parts.append(HOST % ("cuda_runtime", "cudaLaunchKernel", now + 2.1, 4.9, call))
                parts.append(FLOW % ("s", number, 4211, 4211, now + 2.1, ""))
                parts.append(KERNEL % (kernel, now + 9.0, length, number, number))
                parts.append(FLOW % ("f", number, 0, 7, now + 9.0, ', "bp": "e"'))
                now += 10.3
        mark = "execute_context_0(0)_generation_64(64)"
        parts.append(
            HOST % ("user_annotation", mark, began, now - began, f'"External id": {number}')
        )
        yield "".join(parts)


def make(path: Path, size_mb: int) -> None:
    """Write a trace of about `size_mb` MB, and the same packed."""
    with path.open("w") as file:
        file.write(HEADER)
        for text in steps():
            file.write(text)
            if file.tell() > size_mb * 1e6:
                break
        file.write(TRAILER % 1e12)
    with path.open("rb") as plain, gzip.open(f"{path}.gz", "wb", compresslevel=3) as packed:
        shutil.copyfileobj(plain, packed)


READ = """
import resource, sys, time
from stallscope.analyzers.diagnose import diagnose
from stallscope.profiler.kineto.reader import read_kineto
from stallscope.profiler.trace.to_capture import capture_of
start = time.perf_counter()
trace = read_kineto(sys.argv[1])
diagnose(capture_of([trace]))
seconds = time.perf_counter() - start
print(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, len(trace.kernels))
"""


def read(path: Path) -> tuple[float, float, int]:
    """Read in a new process; return seconds, peak MiB and kernels."""
    command = [sys.executable, "-c", READ, str(path)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return float(output[0]), float(output[1]), int(output[2])


def main() -> None:
    """Print speed and memory for the plain and the packed file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size-mb", type=int, default=200)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    plain = options.folder / f"kineto-{options.size_mb}.json"
    if not Path(f"{plain}.gz").exists():
        make(plain, options.size_mb)
    size_mb = plain.stat().st_size / 1e6
    for path in (plain, Path(f"{plain}.gz")):
        runs = [read(path) for _ in range(TRIES)]
        seconds = statistics.median(run[0] for run in runs)
        peak_mib, kernels = max(run[1] for run in runs), runs[0][2]
        print(
            f"{path.name}: {size_mb / seconds:.0f} MB/s of JSON ({seconds:.2f} s, {kernels:,} "
            f"kernels), peak {peak_mib:.0f} MiB = {peak_mib * 2**20 / 1e6 / size_mb:.2f} x the JSON"
        )


if __name__ == "__main__":
    main()
