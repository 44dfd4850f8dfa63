"""What limits a served step: the largest part of its budget, if it is large enough and clear."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stallscope.analyzers.result import PhaseBudget
from stallscope.analyzers.thresholds import Thresholds
from stallscope.analyzers.words import percent

_HARDLY = 0.05  # of the step: less than this is no candidate, and not worth a word
_NOTHING = 0.005  # of the step: what would be told as 0 % is not the largest of anything
MOST_SURE = 0.99  # of any evidence
# Launch gaps that nothing shows lie in the unexplained: were all of it the host's, no class would
# be clear of the next.
_HOST_UNSEEN = 0.65
MUCH_UNEXPLAINED = 0.25  # from this share on it may hide what limits, and is worth a trace
IN_KERNELS = ("bandwidth", "compute")  # what limits a kernel
CLASS_PARTS: Mapping[str, tuple[str, ...]] = {
    "bandwidth": ("weights", "kv"),
    "compute": ("compute",),
    "host": ("host",),
    "interconnect": ("communication", "transfer"),
}


@dataclass(frozen=True, slots=True)
class Decision:
    """A class with the share that won and the next; `between` when it stays undetermined.

    `quality` rates the evidence the decision used, 0 to 1; `reason` is a clause for the sentence;
    `limit` names the admission limit that held a queue, where that decided; `headline` says it all,
    where there was no run to say anything of.
    """

    bottleneck: str
    share: float
    next_share: float
    next_class: str | None
    unexplained: float
    quality: float
    reason: str
    between: tuple[str, ...] = ()
    cap: float = MOST_SURE  # the most confidence this kind of evidence allows
    limit: str | None = None  # a key of admission.LIMIT_CLASS
    finding: str | None = None  # in docs/findings.md, where no class and no limit tells
    headline: str | None = None


# How far a decision may rest on evidence of each provenance.
QUALITY: Mapping[str, float] = {"measured": 1.0, "bound": 0.8, "derived": 0.7, "estimated": 0.4}


def part_share(budget: PhaseBudget, *parts: str) -> float:
    """Return the share of a phase's time under some parts."""
    return sum(p.share for p in budget.budget if p.part in parts)


def _quality(budget: PhaseBudget, bottleneck: str) -> float:
    used = [p for p in budget.budget if p.part in CLASS_PARTS[bottleneck] and p.time_s > 0]
    weight = sum(p.time_s for p in used)
    if not weight:
        return QUALITY["estimated"]
    return sum(QUALITY[p.provenance] * p.time_s for p in used) / weight


def _is_model_error(budget: PhaseBudget, t: Thresholds) -> bool:
    return part_share(budget, "unexplained") < t.model_error


def _most_sure(budget: PhaseBudget, first: str, share: float, t: Thresholds) -> float:
    """Return the most confidence that a class may have which the unseen host might exceed."""
    host = next((p for p in budget.budget if p.part == "host"), None)
    if first == "host" or host is None or host.side is None:
        return MOST_SURE
    is_clear = share >= t.limit_margin * part_share(budget, "host", "unexplained")
    return MOST_SURE if is_clear else _HOST_UNSEEN


def limit_of_budget(budget: PhaseBudget, t: Thresholds) -> Decision:
    """Decide from a step budget; `unexplained` never competes.

    The largest class must reach `limit_share` of the step and `limit_margin` times the next. A
    floor above the measured step is an error of the model: it blocks bandwidth and compute.
    """
    shares = {c: part_share(budget, *parts) for c, parts in CLASS_PARTS.items()}
    ranked = sorted(shares.items(), key=lambda item: (-item[1], item[0]))
    (first, share), (second, next_share) = ranked[0], ranked[1]
    unexplained = part_share(budget, "unexplained")
    what = f"{_parts_text(first)} {percent(share)} of step time"
    if _is_model_error(budget, t) and first in ("bandwidth", "compute"):
        reason = _excess(budget)
        quality = QUALITY["estimated"]
        return Decision(
            "undetermined", share, next_share, None, unexplained, quality, reason, (first, second)
        )
    if _is_model_error(budget, t):
        what += f"; yet {_excess(budget)}"
    quality = _quality(budget, first)
    if share >= t.limit_share and share >= t.limit_margin * next_share:
        after = second if next_share > _HARDLY else None
        most = _most_sure(budget, first, share, t)
        return Decision(first, share, next_share, after, unexplained, quality, what, cap=most)
    between: tuple[str, ...]
    if share < t.limit_share:
        if share < _NOTHING:
            what = "every known part takes less than 1 % of step time"
        else:
            what += ", the largest known part"
        reason = f"{what}; {percent(unexplained)} is unexplained"
        reason += _excess_text(budget)
        if budget.is_host_traced and unexplained > _HARDLY:
            reason += "; kernels ran in that time, so it is not the host's"
        between = _candidates(ranked, unexplained, is_host_traced=budget.is_host_traced)
    else:
        reason = f"{what} and {_parts_text(second)} {percent(next_share)}, too close to call"
        between = (first, second)
    return Decision("undetermined", share, next_share, None, unexplained, quality, reason, between)


def _candidates(
    ranked: Sequence[tuple[str, float]], unexplained: float, *, is_host_traced: bool
) -> tuple[str, ...]:
    """Name the two that may limit a step in which no class fills enough.

    Launch gaps hide in the unexplained: while that is more than the second, host may be more. Where
    a trace shows them, kernels fill it, and these read or compute more slowly than they could.
    """
    (first, share), (second, next_share) = ranked[0], ranked[1]
    if unexplained <= next_share:
        return (first, second)
    if is_host_traced:
        return (first, *(c for c, _ in ranked if c in IN_KERNELS and c != first))
    if share < _HARDLY:
        return ("host",)
    if first != "host":
        return (first, "host")
    return (first, second) if next_share >= _HARDLY else (first,)


def _excess_text(budget: PhaseBudget) -> str:
    """Say how much of the step linears take for other reasons than their bytes and FLOPs."""
    share = budget.excess_s / budget.time_s if budget.time_s else 0.0
    if share < _HARDLY:
        return ""
    if share >= part_share(budget, "unexplained"):  # timed apart, linears take longer than here
        return ", all of it in linears beyond what their bytes and FLOPs explain"
    return f", {percent(share)} of the step in linears beyond what their bytes and FLOPs explain"


def _excess(budget: PhaseBudget) -> str:
    """Say by how much the parts exceed the step."""
    floor = "the cost model's floor"
    if part_share(budget, "host") > 0:
        floor += " and the host's time together are"
    else:
        floor += " is"
    return f"{floor} {percent(-part_share(budget, 'unexplained'))} above the measured step"


def compute_phase(budgets: Sequence[PhaseBudget]) -> str:
    """Name the phase that holds most of the arithmetic; mixed steps are full of their prompts."""
    seconds = {"decode": 0.0, "prefill": 0.0}
    for budget in budgets:
        if budget.phase != "all":
            phase = "decode" if budget.phase == "decode" else "prefill"
            seconds[phase] += part_share(budget, "compute") * budget.time_s
    return "decode" if seconds["decode"] > seconds["prefill"] else "prefill"


def _parts_text(bottleneck: str) -> str:
    return {
        "bandwidth": "reading weights and KV takes",
        "compute": "arithmetic takes",
        "host": "the host takes",
        "interconnect": "communication and transfer take",
    }[bottleneck]
