"""Predictions against public measurements, each row's error: FOLDER holds the tables."""

from __future__ import annotations

import sys
from pathlib import Path

from kernel_tables import print_kernels
from operator_tables import print_operators
from table_predictions import calibrated_on, error, error_bar, mape, seconds_of
from table_rows import FIGURE_3, FIGURE_16, Run, vllm_runs

# Rows that calibrate: one length, batch 1, the middle and 64.
CALIBRATION = ((512, 1), (512, 32), (512, 64))


def is_plain(run: Run) -> bool:
    """Tell fp16 weights and KV cache from quantised ones."""
    return (run.dtype, run.kv_dtype) == ("fp16", "fp16")


def errors_of(runs: list[Run]) -> tuple[dict[Run, float], dict[Run, float]]:
    """Return uncalibrated errors, and calibrated ones of the rows that did not calibrate."""
    plain = {run: error(seconds_of(run), run.seconds) for run in runs}
    chosen = [run for run in runs if (run.tokens, run.batch) in CALIBRATION]
    reach = calibrated_on(chosen)
    fitted = {run: error(seconds_of(run, reach), run.seconds) for run in runs if run not in chosen}
    print(f"  calibrated: {reach.step_s * 1e3:.2f} ms a step, {reach.request_s * 1e6:.0f} µs each")
    return plain, fitted


def print_runs(folder: Path) -> None:
    """Print the errors of whole runs, device by device, and how many the error bar covers."""
    runs = vllm_runs(folder, FIGURE_3)
    everything: dict[Run, float] = {}
    for device in ("a100-sxm4-40gb", "h100-sxm"):
        print(f"\nTPOT of llama-3-8b in fp16 on vLLM, {device}")
        mine = [run for run in runs if run.device == device and is_plain(run)]
        plain, fitted = errors_of(mine)
        for run in mine:
            after = f"{fitted[run]:+8.1%}" if run in fitted else "   fitted"
            print(f"  {run.tokens:5} x {run.batch:2}  {run.tpot_s * 1e3:6.2f} ms", end="")
            print(f"  uncalibrated {plain[run]:+7.1%}  calibrated {after}")
        everything |= plain
        print(f"  MAPE: uncalibrated {mape([*plain.values()]):.1%}", end="")
        print(f", calibrated {mape([*fitted.values()]):.1%}")
    others = [run for run in runs if not is_plain(run)]
    print("\nTPOT in other dtypes and of llama-2-7b, uncalibrated")
    for run in [*others, *vllm_runs(folder, FIGURE_16)]:
        miss = error(seconds_of(run), run.seconds)
        everything[run] = miss
        print(f"  {run.name:48} {run.tpot_s * 1e3:6.2f} ms  {miss:+7.1%}")
    print_bars(everything)


def print_bars(errors: dict[Run, float]) -> None:
    """Print how many runs lie within the error bar that they are given."""
    print()
    for bar in sorted({error_bar(run) for run in errors}):
        mine = [miss for run, miss in errors.items() if error_bar(run) == bar]
        inside = sum(abs(miss) <= bar for miss in mine)
        print(f"  {inside} of {len(mine)} runs lie within the ±{bar:.0%} that they are given")
    inside = sum(abs(miss) <= error_bar(run) for run, miss in errors.items())
    print(f"  {inside / len(errors):.0%} of all {len(errors)}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: public_tables.py FOLDER")
    print_runs(Path(sys.argv[1]))
    print_operators(Path(sys.argv[1]))
    print_kernels(Path(sys.argv[1]))
