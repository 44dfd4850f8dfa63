"""Running requests that get a token once in many batches of prompts: prompts always go first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from stallscope.analyzers.load.engines import Moment, clip, moments
from stallscope.analyzers.load.span import Span
from stallscope.analyzers.measures import measure
from stallscope.analyzers.result import Remedy, WontHelp
from stallscope.analyzers.step.limit import QUALITY, Decision
from stallscope.profiler.capture import Capture
from stallscope.profiler.evidence import Measure
from stallscope.profiler.wording import figure

# Where prompts of 128k tokens come in chunks of 4,096 and answers have 100 tokens, eight running
# requests see 2 or 3 batches of prompts for each of their tokens. Ten is a scheduler's choice.
BETWEEN = 10.0
_LEAST_RUNNING = 8.0  # with fewer, they may just have been let in
_LEAST_BATCHES = 20.0
_MOST_SURE = 0.75
_BATCHES, _MADE = "prefill_batches_total", "output_tokens_total"


@dataclass(frozen=True, slots=True)
class Starved:
    """Batches of prompts between two tokens of a running request, and seconds between them."""

    between: float
    gap_s: float
    running: float


def observe_starved(capture: Capture, span: Span) -> Starved | None:
    """Return what the engine that waits longest shows; None where batches are not counted.

    A decode batch makes one token for each running request: tokens ÷ running are its batches.
    Several of one step, as drafts bring, make it fewer still.
    """
    rows = clip(moments(capture.engine_samples), span.start_ns, span.end_ns)
    engines = sorted({name for m in rows for name in m.engines})
    found = (_of_engine([m for m in rows if _tells(m, name)], name) for name in engines)
    return max((one for one in found if one), key=lambda one: one.between, default=None)


def _tells(moment: Moment, engine: str) -> bool:
    values = moment.engines.get(engine, {})
    return _BATCHES in values and _MADE in values


def _of_engine(rows: Sequence[Moment], engine: str) -> Starved | None:
    """Count from the first rise of the tokens to the last: what was made before is not told."""
    values = [(m.start_ns * 1e-9, m.engines[engine]) for m in rows]
    rises = [i for i, (a, b) in enumerate(pairwise(values), 1) if b[1][_MADE] > a[1][_MADE]]
    if len(rises) < 2:
        return None
    inside = values[rises[0] : rises[-1] + 1]
    (begin_s, first), (end_s, last) = inside[0], inside[-1]
    held = sum((b - a) * v["running"] for (a, v), (b, _) in pairwise(inside))
    made, batches = last[_MADE] - first[_MADE], last[_BATCHES] - first[_BATCHES]
    running = held / (end_s - begin_s)
    if batches < _LEAST_BATCHES or running < _LEAST_RUNNING:
        return None
    return Starved(batches * running / made, held / made, running)


def decide_starved(capture: Capture, span: Span) -> Decision | None:
    """Name the scheduler where prompts leave so little to running requests."""
    found = observe_starved(capture, span)
    if found is None or found.between < BETWEEN:
        return None
    reason = (
        f"{found.between:.0f} batches of prompts run for each token of the {found.running:.0f} "
        f"requests that run ({figure(found.gap_s)} s between two of its tokens): prompts always go "
        "first, and as long as they come decode waits"
    )
    share, quality = 1.0 - 1.0 / found.between, QUALITY["derived"]
    sure, name = _MOST_SURE, "starved"
    return Decision("scheduling", share, 0.0, None, 0.0, quality, reason, cap=sure, finding=name)


def starved_measure(capture: Capture, span: Span) -> tuple[Measure, ...]:
    """Return the batches of prompts for each token of a running request."""
    found = observe_starved(capture, span)
    if found is None:
        return ()
    source = "batches of prompts × running requests ÷ tokens generated, as logged"
    return (measure("prefills_per_token", found.between, "derived", source),)


def decode_first(capture: Capture, span: Span) -> tuple[Remedy, ...]:
    """Say how running requests get their turn."""
    if decide_starved(capture, span) is None:
        return ()
    return (
        Remedy(
            "let decode take part: batches that hold prompts and running requests, or a bound on "
            "how many batches of prompts may follow each other",
            {
                "sglang": "--enable-mixed-chunk (not with speculative decoding), or "
                "--prefill-decode-interval where the version has it",
                "vllm": "--enable-chunked-prefill (on by default in V1)",
            },
            None,
            "ITL falls to the time of a batch; TTFT rises somewhat",
            ("prefills_per_token",),
            cost="prompts take longer: TTFT grows",
        ),
        Remedy(
            "prefill on other devices, or admit fewer arrivals",
            {"sglang": "--disaggregation-mode prefill and decode", "vllm": "--kv-transfer-config"},
            None,
            "batches of prompts no longer stand between tokens",
            ("prefills_per_token",),
            cost="more devices and KV moved between them, or requests turned away",
        ),
    )


def useless_to_the_starved(capture: Capture, span: Span) -> tuple[WontHelp, ...]:
    """Name what a busy GPU with room in its KV cache suggests."""
    if decide_starved(capture, span) is None:
        return ()
    return (
        WontHelp("raising the sequence cap", "more requests would wait for their next token"),
        WontHelp("smaller chunks alone", "the next chunk goes first as well"),
    )
