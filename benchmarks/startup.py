"""How long the command and the import take to start, against what they cannot avoid.

Run `python benchmarks/startup.py`.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

from paired import interleave, ratio

PAIRS = 40


def process_s(*command: str) -> float:
    """Time a whole process."""
    start_s = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start_s


def python_s(*arguments: str) -> float:
    """Time a Python process."""
    return process_s(sys.executable, *arguments)


def main() -> None:
    """Print both comparisons."""
    pairs = interleave(
        lambda: python_s("-m", "stallscope", "--help"),
        lambda: python_s("-c", "import typer, rich"),
        pairs=PAIRS,
    )
    print(f"stallscope --help / import typer, rich: {ratio(pairs)}")
    pairs = interleave(
        lambda: python_s("-c", "import stallscope"), lambda: python_s("-c", ""), pairs=PAIRS
    )
    extra_ms = statistics.median(a - b for a, b in pairs) * 1e3
    print(f"import stallscope: {extra_ms:+.1f} ms over bare Python ({PAIRS} pairs)")


if __name__ == "__main__":
    main()
