"""Whether running requests show their cap so plainly that a higher one cannot be what held."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stallscope.profiler.held_queue import Moment

_LEAST_MOMENTS = 4
_HEADS = 2.0  # of a usual request's KV: the queue's head may be larger than those that run


def only_decodes(moment: Moment) -> bool:
    """Tell whether all that run have their first token, so that no prompt is in work."""
    if "ttft_s_count" not in moment or "finished_total" not in moment:
        return False
    return moment["ttft_s_count"] - moment["finished_total"] == moment["running"]


def is_proven(moments: Sequence[Moment], most: float) -> bool:
    """Tell whether nothing but a cap of `most` can have kept the queue out, again and again.

    A prompt that is long in work keeps others out too, with running as flat. So in four moments or
    more no prompt is in work, or others were let in since and running came back to the same number;
    tokens are made, and KV has room for two like those that run.
    """
    found = [m for m in _proofs(moments, most)]
    made = [m["output_tokens_total"] for m in found if "output_tokens_total" in m]
    return len(found) >= _LEAST_MOMENTS and (not made or max(made) > min(made))


def _proofs(moments: Sequence[Moment], most: float) -> Iterator[Moment]:
    before: Moment | None = None
    for moment in moments:
        if moment["running"] != most or not _could_be_let_in(moment):
            continue
        if only_decodes(moment) or (before is not None and _let_in(before, moment)):
            yield moment
        before = moment


def _could_be_let_in(moment: Moment) -> bool:
    used = moment.get("kv_used_fraction")
    has_room = used is not None and 1.0 - used >= _HEADS * used / moment["running"]
    deferred = moment.get("waiting_deferred", 0.0)
    return has_room and moment["waiting"] > 0 and deferred <= moment["waiting"] / 2


def _let_in(before: Moment, after: Moment) -> bool:
    name = "input_tokens_total"
    return name in before and name in after and after[name] > before[name]
