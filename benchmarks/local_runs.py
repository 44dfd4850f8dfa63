"""Predictions of decode and prefill steps of this machine's own runs, in later processes.

`local_runs.py measure FILE` serves thirty loads four times (three sizes, fp32 and bf16, 1 to 16
requests, 64 to 768 tokens) and probes the machine before and after each round, eight minutes on a
calm one. Do that in three processes, some time apart. `local_runs.py judge FIRST LATER…` calibrates
on three runs of the first and prints each error of the other runs in the later ones, by their own
probe and by the first's.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from local_judged import Miss, calibrate, mape, misses, read_process
from local_measured import measure

CALM_CORES = 0.10  # taken by others during a run


def judge(first: Path, later: list[Path]) -> None:
    """Print the calibration, every error, and their means."""
    begun = read_process(first)
    fitted = calibrate(begun)
    print(f"calibrated at {fitted.at}: {fitted.steps} steps of {fitted.captures} runs")
    print(
        f"  products × {fitted.products:.2f}, attention × {fitted.attention:.2f}, "
        f"rows × {fitted.rows:.2f}, launches × {fitted.launch:.2f}; left out {fitted.error:.1%}"
    )
    everything: dict[str, list[Miss]] = {}
    for file in later:
        process = read_process(file)
        speed = process.device.memory_bytes_per_s / 1e9
        print(f"\nat {process.at}: {speed:.1f} GB/s, others {process.probe_other_cores or 0:.2f}")
        for name, described in (("own probe", process.device), ("first probe", begun.device)):
            found = list(misses(process, replace(described, calibration=fitted)))
            everything.setdefault(name, []).extend(found)
            print_misses(name, found)
    print()
    for name, found in everything.items():
        print_means(f"all later processes, {name}", found)


def print_misses(name: str, found: list[Miss]) -> None:
    """Print each run's error."""
    print(f" by its {name}:" if name.startswith("own") else f" by the {name}:")
    for miss in found:
        key = miss.key
        print(
            f"  {key.model:11} {key.dtype} {key.requests:2} x {key.tokens:3}  {miss.phase:7}"
            f" {miss.seconds * 1e3:8.2f} ms, expected {miss.expected * 1e3:8.2f}"
            f"  {miss.error:+7.1%}  others {miss.other_cores:.2f}"
        )
    print_means(name, found)


def print_means(name: str, found: list[Miss]) -> None:
    """Print the mean absolute errors, of all and of the runs that nobody disturbed."""
    for phase in ("decode", "prefill"):
        mine = [miss for miss in found if miss.phase == phase]
        calm = [miss for miss in mine if miss.other_cores <= CALM_CORES]
        quiet = f"{mape(calm):.1%} of {len(calm)}" if calm else "none"
        print(f"  {name}, {phase}: MAPE {mape(mine):.1%} of {len(mine)} runs; calm: {quiet}")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["measure", target]:
            measure(Path(target))
        case ["judge", first, *later] if later:
            judge(Path(first), [Path(file) for file in later])
        case _:
            sys.exit(__doc__)
