"""What one core of this machine reaches: vLLM's CPU worker is pinned to one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path


def write_device(path: Path) -> Path:
    """Probe in a process of its own, pinned like the worker, and write a file for --gpu-file."""
    extra = {"OMP_NUM_THREADS": "1", "THP_MEM_ALLOC_ENABLE": "1"}
    command = ["taskset", "-c", "0", sys.executable, __file__, str(path)]
    subprocess.run(command, check=True, env={**os.environ, **extra}, timeout=120)
    return path


def probe() -> dict[str, object]:
    """Return the device: bytes read per second, and fp32 FLOP per second of a square product."""
    import torch

    from stallscope.runner.probe import GIB, probe_gemm, probe_stream

    torch.set_num_threads(1)
    stream, gemm = probe_stream(GIB, "cpu"), probe_gemm(torch.float32, "cpu")
    return {
        "name": "one core of this machine",
        "peak_flops": {"fp32": gemm.flops_per_s},
        "memory_bytes_per_s": stream.bytes_per_s,
        "kind": "achievable",
        "is_cpu": True,
        "sources": {
            "memory_bytes_per_s": stream.kernel,
            "peak_flops": f"a product of size {gemm.n}",
        },
    }


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(probe()), "utf-8")
