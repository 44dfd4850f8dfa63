"""Whether causes that were put in are found: `injected_causes.py CAUSE [FIRST [COUNT]]`.

CAUSE is host, interconnect, capacity, scheduling, device or clean. Run number n takes seed n and
the sizes in turn, so that a table of twenty may be made in pieces: FIRST is the number to begin
with, 0 if not given, COUNT how many runs, 20 if not given. For clean the machine must be otherwise
idle: a neighbour is a cause of its own. "others" tells, where it was observed, the cores that other
processes had, and the share of the time that they took.
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
SIZES = {"capacity": QUEUES, "scheduling": QUEUES}


def sizes_of(cause: str) -> tuple[Size, ...]:
    """Return the loads that a cause is put into; a clean run takes all of them."""
    return STEPS + QUEUES if cause == "clean" else SIZES.get(cause, STEPS)


def line(cause: str, seed: int, size: Size, diagnosis: Diagnosis) -> str:
    """Say what was found: class, confidence and the share that decided."""
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
    """Run, and print a line for each run and how many named the cause, or one with none put in."""
    sizes, named, wrong = sizes_of(cause), 0, 0
    for seed in range(first, first + count):
        size = sizes[seed % len(sizes)]
        diagnosis = diagnose(capture_of(cause, seed, size))
        named += diagnosis.verdict.bottleneck == cause
        wrong += cause == "clean" and diagnosis.verdict.bottleneck in PUT_IN
        print(line(cause, seed, size, diagnosis), flush=True)
    counted = {"named wrongly": wrong} if cause == "clean" else {"named": named}
    print(json.dumps({"cause": cause, "runs": count, **counted}))


if __name__ == "__main__":
    match sys.argv[1:]:
        case [cause, *numbers] if cause in (*PUT_IN, "clean") and all(
            n.isdecimal() for n in numbers[:2]
        ):
            main(cause, *map(int, numbers[:2]))
        case _:
            sys.exit(__doc__)
