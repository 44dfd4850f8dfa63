"""Damage files by chance and read them: each is a capture that can be judged, or one line.

`python tests/fuzz/fuzz_run.py [PARSER …] --cases N --seed S` prints a row for each parser and the
faults by place, each with the number of a case; `--case I` writes that case's file and shows it.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fuzz_parsers import PARSERS
from fuzz_worker import work

MOST_START_S = 600.0  # of a process, on a machine that others keep busy
MOST_WAIT_S = 60.0  # for a case that no alarm ends: it waits, or never comes back from C


@dataclass(frozen=True, slots=True)
class Result:
    """What became of the cases: how many were read, how many refused, and the faults by number."""

    read: int
    refused: int
    faults: dict[int, str]
    seconds: float


def fuzz(parser: str, *, cases: int, seed: str, first: int = 0) -> Result:
    """Run cases in a process of their own; if it dies, that is a fault, and the next goes on."""
    begin_s, counts, faults = time.monotonic(), Counter[str](), {}
    for index, outcome in _outcomes(parser, seed, first, first + cases):
        if outcome in ("read", "refused"):
            counts[outcome] += 1
        else:
            faults[index] = outcome
    return Result(counts["read"], counts["refused"], faults, time.monotonic() - begin_s)


def _outcomes(parser: str, seed: str, first: int, stop: int) -> Iterator[tuple[int, str]]:
    while first < stop:
        ours, theirs = multiprocessing.Pipe(duplex=False)
        process = multiprocessing.get_context("spawn").Process(
            target=work, args=(theirs, parser, seed, first, stop)
        )
        process.start()
        theirs.close()
        running, most_s = first, MOST_START_S
        try:
            while ours.poll(most_s):
                running, outcome = ours.recv()
                most_s = MOST_WAIT_S
                if outcome == "done":
                    return
                if outcome is not None and running >= 0:
                    yield running, outcome
            yield running, f"no answer in {most_s:.0f} s"
        except EOFError:
            process.join()
            yield running, f"the process died ({process.exitcode})"
        finally:
            process.kill()
            process.join()
        if running < 0:
            raise RuntimeError(f"{parser}: an undamaged file ends the process")
        first = running + 1


def show(parser: str, seed: str, index: int) -> None:
    """Write the file of a case and say what becomes of it."""
    from fuzz_case import content_of, outcome

    path = Path(f"{parser}-{index}.damaged")
    path.write_bytes(content_of(parser, seed, index, PARSERS[parser].seeds()))
    print(path, outcome(parser, path))


def main() -> None:
    """Fuzz the parsers named, or all."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("parsers", nargs="*", metavar="PARSER", help=f"of {', '.join(PARSERS)}")
    options.add_argument("--cases", type=int, default=20_000)
    options.add_argument("--seed", default="0")
    options.add_argument("--first", type=int, default=0, help="number of the first case")
    options.add_argument("--case", type=int)
    given = options.parse_args()
    if unknown := set(given.parsers) - set(PARSERS):
        options.error(f"no parser is called {', '.join(sorted(unknown))}")
    # Threads of numpy's BLAS count as memory that is taken.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if given.case is not None:
        show(given.parsers[0], given.seed, given.case)
        return
    faults = 0
    for parser in given.parsers or PARSERS:
        result = fuzz(parser, cases=given.cases, seed=given.seed, first=given.first)
        print(told(parser, result), flush=True)
        faults += len(result.faults)
    sys.exit(1 if faults else 0)


def told(parser: str, result: Result) -> str:
    """Return a row of figures, and the faults by place with a case of each."""
    by_place: dict[str, list[int]] = {}
    for index, fault in result.faults.items():
        by_place.setdefault(fault.split(" at ")[-1], []).append(index)
    rows = [
        f"{parser:12} {result.read:>7,} read, {result.refused:>7,} refused, "
        f"{len(result.faults):,} faults; {result.seconds:.0f} s"
    ]
    for cases in by_place.values():
        rows.append(f"    {len(cases):,} as in case {cases[0]}: {result.faults[cases[0]]}")
    return "\n".join(rows)


if __name__ == "__main__":
    main()
