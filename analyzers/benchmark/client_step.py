"""What a mean step holds by the figures of the client that kept the server busy."""

from __future__ import annotations

from typing import NamedTuple

from stallscope.analyzers.benchmark.facts import judged_trial
from stallscope.analyzers.benchmark.others import others_note
from stallscope.analyzers.benchmark.step import batch_size
from stallscope.profiler.capture import Capture


class Held(NamedTuple):
    """Tokens generated and prompt tokens taken in by a step, a prompt's, and those in the cache."""

    rows: float
    prompts: float
    prompt_length: float
    context: float


def held_by_client(capture: Capture, seconds: float) -> Held | None:
    """Return what a step of so many seconds holds; None where others were served too.

    The client counts every token over its whole run. A request in decode holds its prompt and, on
    average, half of its output.
    """
    trial = judged_trial(capture)
    if trial is None or others_note(capture):
        return None
    taken, made, decoding = trial.input_tokens_per_s, trial.output_tokens_per_s, batch_size(trial)
    read, written = trial.input_tokens, trial.output_tokens
    if None in (taken, made, decoding, read, written):
        return None
    context = (decoding or 0.0) * ((read or 0.0) + (written or 0.0) / 2)
    return Held((made or 0.0) * seconds, (taken or 0.0) * seconds, read or 0.0, context)
