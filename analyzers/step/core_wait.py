"""Whether a run's threads waited for cores that others had: processes beside it, or machines."""

from __future__ import annotations

from dataclasses import dataclass

from stallscope.analyzers.load.span import Span, run_span
from stallscope.analyzers.result import PhaseBudget
from stallscope.analyzers.step.host_means import host_mean
from stallscope.analyzers.step.limit import CLASS_PARTS, QUALITY, Decision, part_share
from stallscope.analyzers.thresholds import Thresholds
from stallscope.analyzers.words import both, percent
from stallscope.profiler.capture import Capture

FINDING = "cores-taken"
_MOST = 0.9  # confidence: which of the process's threads make a step is not known
_WORTH_SAYING = 0.05  # of a core, or of the time


@dataclass(frozen=True, slots=True)
class CoreWait:
    """What threads of a process waited for cores, and who had these.

    `longest` is the share of the time that the thread waited that waited longest, `threads` how
    many waited on average, `own`, `others` and `stolen` how many of the `usable` cores this
    process, other processes and the hypervisor took.
    """

    longest: float
    threads: float
    own: float
    others: float
    stolen: float
    usable: float

    @property
    def displaced(self) -> float:
        """How many threads waited for a core that another process had.

        What others take displaces as much and no more. A process with more threads than cores makes
        them wait for each other: that takes nothing from it as long as it fills its cores.
        """
        return min(self.threads, self.others, max(0.0, self.usable - self.own))

    @property
    def lost(self) -> float:
        """The least share of the time that others took from the process.

        A thread that waits for a core computes nothing, and those that wait for its part neither:
        the longest wait is a lower bound, as waits of several threads need not overlap. What a
        hypervisor takes from busy cores it takes from this process's part of them too.
        """
        waited = self.longest * self.displaced / self.threads if self.threads > 0 else 0.0
        busy = self.own + self.others + self.stolen
        stolen = self.stolen / busy if busy > 0 else 0.0
        return waited + (1.0 - waited) * stolen


def core_wait(capture: Capture, span: Span | None = None) -> CoreWait | None:
    """Return what was sampled of a CPU run over a span, by default the whole run.

    None on a GPU, and where the recording could not tell.
    """
    device, usable = capture.subject.device, (capture.meta.get("host") or {}).get("usable_cores")
    span = span or run_span(capture)
    if device is None or not device.is_cpu or not usable or span is None:
        return None
    names = ("run_wait", "run_wait_threads", "cpu_cores", "neighbour_cores", "steal_cores")
    longest, threads, own, others, stolen = (host_mean(capture, f"host_{n}", span) for n in names)
    if longest is None or threads is None or own is None or others is None or stolen is None:
        return None
    return CoreWait(longest, threads, own, others, stolen, float(usable))


def taken_cores(
    budget: PhaseBudget, decision: Decision, waited: CoreWait, t: Thresholds
) -> Decision | None:
    """Return the device as what limits where others took a large and clear share of the step.

    Large is `core_wait`, clear is `limit_margin` times every class's own part.
    """
    shares = {name: part_share(budget, *parts) for name, parts in CLASS_PARTS.items()}
    after = max(shares, key=lambda name: shares[name])
    if waited.lost < t.core_wait or waited.lost < t.limit_margin * shares[after]:
        return None
    left = max(0.0, decision.unexplained - waited.lost)
    quality = QUALITY["bound"]
    reason = _reason(waited)
    next_class = after if shares[after] > 0.05 else None
    return Decision(
        "device",
        waited.lost,
        shares[after],
        next_class,
        left,
        quality,
        reason,
        cap=_MOST,
        finding=FINDING,
    )


def _reason(waited: CoreWait) -> str:
    told = []
    if waited.displaced > 0 and waited.longest >= _WORTH_SAYING:
        told.append(
            f"a thread of this run was ready and had no core {percent(waited.longest)} of the "
            f"time, while other processes kept {waited.others:.1f} of its {waited.usable:g} cores "
            "busy"
        )
    if waited.stolen >= _WORTH_SAYING:
        stolen = f"{waited.stolen:.1f} of its {waited.usable:g} cores"
        told.append(f"the hypervisor gave {stolen} to other machines (steal)")
    return f"{both(told)}: at least {percent(waited.lost)} of the step's time is theirs"
