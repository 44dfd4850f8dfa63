"""What this capture cannot show, and the cheapest way to see it."""

from __future__ import annotations

from collections.abc import Sequence

from stallscope.analyzers import isolated
from stallscope.analyzers.benchmark.facts import is_benchmark_only
from stallscope.analyzers.cost.calibration import NoCostModel
from stallscope.analyzers.phase_counters import unobserved_phases
from stallscope.analyzers.result import RuleResult
from stallscope.analyzers.rules import UNSEEN, by_id
from stallscope.analyzers.step.budget import StepCost
from stallscope.analyzers.step.contention import contention
from stallscope.analyzers.step.trace import trace_busy
from stallscope.profiler.capture import Capture
from stallscope.profiler.evidence import NotObservable
from stallscope.profiler.spec import Subject

_HOW = {
    "capacity": "record on the machine that runs the model, so that memory and failures are seen",
    "bandwidth": "profile a few decode steps with ncu (sm__throughput, dram__throughput) or nsys "
    "with GPU metrics",
    "scheduling": "sample SM throughput (nsys GPU metrics, DCGM) while requests queue",
    "decode-focus": "record prefill and decode as separate steps",
}


_TRACE = "trace a few steps with nsys (cuda, nvtx)"


_BESIDE = "give the server's log and the GPU's telemetry of the same time beside the results"


def _of_rules(
    rules: Sequence[RuleResult], subject: Subject, *, is_client_only: bool
) -> list[NotObservable]:
    how = dict(_HOW)
    is_cpu = subject.device is not None and subject.device.is_cpu
    if is_cpu:
        how["bandwidth"] = "run on a GPU; on a CPU read the bandwidth share of the step budget"
        how["scheduling"] = "run on a GPU; on a CPU the verdict goes by the queue and the caps"
    scheduling = by_id(rules, "scheduling")
    if not any(m.name == "queue_wait_share" for m in scheduling.measures):
        how["scheduling"] = "record requests, or the engine's waiting and running"
    elif any(m.name == "queue_wait_share" and m.side for m in scheduling.measures):
        how["scheduling"] = "record how long preempted requests wait (preempted_ns)"
    focus = {m.name for m in by_id(rules, "decode-focus").measures}
    if focus == {"decode_share_requests", "decode_share_engine"}:
        how["decode-focus"] = "add --model and --gpu: they tell what of a mixed step is decode"
    if is_client_only:
        how |= dict.fromkeys(("capacity", "scheduling", "decode-focus"), _BESIDE)
    if subject.isolated_phases:
        how |= dict.fromkeys(("scheduling", "decode-focus"), isolated.HOW)
    return [
        NotObservable(f"the {r.id} rule", r.reason, how[r.id]) for r in rules if r.status == UNSEEN
    ]


def where_to_look(capture: Capture) -> str:
    """Say what to trace when a step's time is not explained."""
    if capture.subject.engine == "plan":
        return "run it and trace a few steps: kernels are expected to take more than their floor"
    if capture.subject.device is not None and capture.subject.device.is_cpu:
        if contention(capture) is not None:
            return "run again with the machine to itself"
        return "profile a few steps with torch.profiler"
    if trace_busy(capture) is not None:
        return "profile the longest kernels with ncu: they run below what the device could do"
    return "trace a few steps with nsys (cuda, nvtx): launch gaps show as an idle device"


def _moves(capture: Capture, costs: Sequence[StepCost]) -> list[NotObservable]:
    """Name the transfers that a budget holds as unknown."""
    subject, rest = capture.subject, "the time stays in unexplained"
    if subject.device is None or subject.device.is_cpu:
        return []
    found = []
    is_linked = subject.num_devices == 1 or subject.device.link_bytes_per_s is not None
    if not is_linked and any("communication" not in c.traced for c in costs):
        reason = f"{subject.num_devices} devices, and no bandwidth between them is known; {rest}"
        how = f"give the link's bandwidth with --gpu-file, or {_TRACE}"
        found.append(NotObservable("communication between devices", reason, how))
    if subject.engine != "builtin" and any(
        "transfer" not in c.traced and c.copied_s is None for c in costs
    ):
        reason = f"nothing recorded tells of copies over the host link; {rest}"
        found.append(NotObservable("transfer over the host link", reason, _TRACE))
    return found


def unobserved(
    capture: Capture,
    costs: Sequence[StepCost],
    rules: Sequence[RuleResult],
    missing: NoCostModel | None,
) -> tuple[NotObservable, ...]:
    """List what is missing for rules, budget and its parts."""
    is_cpu = capture.subject.device is not None and capture.subject.device.is_cpu
    is_client = is_benchmark_only(capture)
    found = [
        *isolated.unobserved_load(capture),
        *_of_rules(rules, capture.subject, is_client_only=is_client),
        *unobserved_phases(capture),
    ]
    if missing is not None:
        found.append(NotObservable("the step budget", missing.reason, missing.how))
    is_traced = bool(costs) and all("host" in c.traced for c in costs)
    if costs and not is_cpu and not is_traced:
        found.append(
            NotObservable(
                "launch gaps inside the forward call",
                "no kernel trace says when no kernel ran; they stay in unexplained",
                _TRACE,
            )
        )
    if missing is None and not costs and capture.engine_samples and not is_cpu:
        found.append(
            NotObservable(
                "launch gaps and host time inside a step",
                "samples tell of a step no more than its length; they stay in unexplained",
                _TRACE,
            )
        )
    if missing is None:
        found += _moves(capture, costs)
    if costs and not is_traced and all(c.step.host_ns is None for c in costs):
        found.append(
            NotObservable(
                "host time inside a step",
                "the forward call was not marked; only gaps between steps count as host",
                _BESIDE if is_client else "mark it: with step.forward(): …",
            )
        )
    return tuple(found)
