"""Whether causes that were put in are found: `injected_causes.py CAUSE [FIRST [COUNT]]`.

CAUSE is host, interconnect, capacity, scheduling, device or clean. Run number n takes seed n and
the sizes in turn, so that a table of twenty may be made in pieces: FIRST is the number to begin
with, 0 if not given, COUNT how many runs, 20 if not given. For clean the machine must be otherwise
idle: a neighbour is a cause of its own, and a run that had one is made anew. "others" tells, where
it was observed, the cores that other processes had, and the share of the time that they took.
"""

from __future__ import annotations

import json
import sys

from injected_runs import Size, capture_of

from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.result import Diagnosis

STEPS = (  # what a step holds should not matter
    Size("tiny-26m", 4, 1, 32, 24),
    Size("tiny-26m", 8, 4, 64, 32),
    Size("small", 8, 2, 48, 32),
    Size("small", 16, 8, 32, 32),
)
QUEUES = (  # several clients, or nothing can wait
    Size("tiny-26m", 12, 6, 64, 64),
    Size("tiny-26m", 16, 8, 96, 48),
    Size("small", 16, 8, 64, 96),
    Size("small", 32, 16, 48, 64),
)
PUT_IN = ("host", "interconnect", "capacity", "scheduling", "device")
DISTURBED = 0.05  # of the time, taken by others: a run that shows no neighbour
AGAIN = 4
SIZES = {"capacity": QUEUES, "scheduling": QUEUES}


def sizes_of(cause: str) -> tuple[Size, ...]:
    """Return the loads that a cause is put into; a clean run takes all of them."""
    return STEPS + QUEUES if cause == "clean" else SIZES.get(cause, STEPS)


def taken(diagnosis: Diagnosis) -> float | None:
    """Return the least share of the time that others took; None where it was not observed."""
    return next((m.value for m in diagnosis.measures if m.name == "core_wait"), None)


def line(cause: str, seed: int, size: Size, diagnosis: Diagnosis) -> str:
    """Say what was found: class, confidence, the shares that decided, and who else was there."""
    verdict = diagnosis.verdict
    found = verdict.bottleneck
    if verdict.between:
        found += f" ({' or '.join(verdict.between)})"
    parts = diagnosis.phases[-1].budget if diagnosis.phases else ()
    shares = " ".join(f"{p.part} {p.share:.0%}" for p in parts if p.share >= 0.01)
    told = {m.name: m.value for m in diagnosis.measures}
    others = "others unseen"
    if "core_wait" in told:
        others = f"others {told['cores_others']:.2f} took {told['core_wait']:.0%}"
    head = f"{cause:12} {seed:2}  {size!s:24} {found:38} {verdict.confidence:.2f}"
    return f"{head}  {shares}, {others}"


def main(cause: str, first: int = 0, count: int = 20) -> None:
    """Run, and print a line for each run and how many named the cause."""
    sizes, named = sizes_of(cause), 0
    for seed in range(first, first + count):
        size = sizes[seed % len(sizes)]
        diagnosis = diagnose(capture_of(cause, seed, size))
        named += diagnosis.verdict.bottleneck == cause
        print(line(cause, seed, size, diagnosis), flush=True)
    print(json.dumps({"cause": cause, "runs": count, "named": named}))


def clean(first: int = 0, count: int = 20) -> None:
    """Run with nothing put in, and print how many named a cause that was not there.

    A neighbour that came by itself is there: where others took DISTURBED of a run it is made anew,
    AGAIN times at most, and counts apart.
    """
    wrong, quiet = 0, 0
    for seed in range(first, first + count):
        size = sizes_of("clean")[seed % len(sizes_of("clean"))]
        for _ in range(AGAIN):
            diagnosis = diagnose(capture_of("clean", seed, size))
            share = taken(diagnosis)
            is_quiet = share is not None and share < DISTURBED
            mark = "" if is_quiet else ", disturbed"
            print(line("clean", seed, size, diagnosis) + mark, flush=True)
            if is_quiet:
                quiet += 1
                wrong += diagnosis.verdict.bottleneck in PUT_IN
                break
    print(json.dumps({"cause": "clean", "runs": count, "quiet": quiet, "named wrongly": wrong}))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["clean", *numbers] if all(n.isdecimal() for n in numbers[:2]):
            clean(*map(int, numbers[:2]))
        case [cause, *numbers] if cause in PUT_IN and all(n.isdecimal() for n in numbers[:2]):
            main(cause, *map(int, numbers[:2]))
        case _:
            sys.exit(__doc__)
