"""Advice on a device that waits for its host follows what the trace saw the host do."""

from __future__ import annotations

import pytest

from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.host_idle import GROUPS, host_idle
from stallscope.analyzers.measures import measure
from stallscope.analyzers.result import Diagnosis
from stallscope.analyzers.whatif.host_remedies import host_remedies, wont_help_the_host
from stallscope.profiler.capture import Capture, DeviceSample, Event, KernelSummary
from stallscope.profiler.evidence import Measure

MS = 1_000_000


def seen(**values: float) -> dict[str, Measure]:
    """The measures of a trace of one second."""
    figures = {"trace_window": 1.0, "kernel_rate": 10_000.0, **values}
    return {name: measure(name, value, "measured", "hand") for name, value in figures.items()}


def traced(busy: float, **figures: float) -> Diagnosis:
    """A trace of one second; by default of 10,000 kernels."""
    rows = {"trace_window": 1.0, "kernel_rate": 10_000.0, **figures}
    return diagnose(
        Capture(
            kernels=(
                KernelSummary("cuda:0", 0, "other", "gemm", "k", 9, round(busy * 1e3) * MS, None),
            ),
            device_samples=(DeviceSample(MS, "cuda:0", "trace_kernel_busy", busy, "fraction"),),
            events=tuple(
                Event(0, "trace_figure", None, {"name": n, "value": v, "device": "cuda:0"})
                for n, v in rows.items()
            ),
        )
    )


CAUSES = [
    ("idle_in_launch", "CUDA graphs or compilation", "while the host launched kernels"),
    ("idle_in_operator", "CUDA graphs or compilation", "ran a framework's operators"),
    ("idle_in_copy", "pinned memory", "while the host asked for copies"),
    ("idle_in_alloc", "after a warm-up", "allocated or freed memory"),
    ("idle_in_capture", "after the CUDA graphs are captured", "captured CUDA graphs"),
    ("idle_in_sync", ".item()", "while the host waited for the device"),
    ("idle_in_wait", "what the host waits for", "for something else"),
    ("idle_in_unseen", "find out first what the host does", "with nothing traced on the host"),
]


@pytest.mark.parametrize(("name", "action", "words"), CAUSES)
def test_advice_chain_and_sentence_follow_the_dominant_cause(
    name: str, action: str, words: str
) -> None:
    """The device idles 90 %; one cause holds 80 % of the window, two others 5 % each."""
    others = [n for n in ("idle_in_launch", "idle_in_sync", "idle_in_unseen") if n != name][:2]
    found = traced(0.1, **{name: 0.8, **dict.fromkeys(others, 0.05)})
    assert found.verdict.bottleneck == "host"
    assert "the largest part, 8" in found.verdict.sentence
    assert words in found.verdict.sentence
    assert action in found.remedies[0].action
    assert name in found.remedies[0].evidence
    assert [link.effect for link in found.verdict.chain] == ["the device waits for the host"]
    assert name in found.verdict.chain[0].evidence
    says_graphs = "CUDA graphs or compilation" in " ".join(r.action for r in found.remedies)
    assert says_graphs is (name in GROUPS["launch"])
    hopeless = [w.action for w in found.wont_help]
    assert ("CUDA graphs or compilation" in hopeless) is not says_graphs


def test_launches_and_operators_are_one_cause() -> None:
    """0.3 and 0.3 together are more than 0.35 in synchronisation, which is worth a word too."""
    idle = host_idle(seen(idle_in_launch=0.3, idle_in_operator=0.3, idle_in_sync=0.35))
    assert idle is not None
    assert idle.causes == ("launch", "sync")
    assert idle.total == pytest.approx(0.95)


@pytest.mark.parametrize(("sync", "causes"), [(0.2, ("unseen", "sync")), (0.19, ("unseen",))])
def test_a_quarter_of_the_waiting_is_worth_a_remedy(sync: float, causes: tuple[str, ...]) -> None:
    """0.2 of 0.8 is a quarter; 0.19 of 0.79 is 24 %."""
    idle = host_idle(seen(idle_in_unseen=0.6, idle_in_sync=sync))
    assert idle is not None
    assert idle.causes == causes


def test_work_that_was_queued_is_not_the_hosts() -> None:
    idle = host_idle(seen(idle_in_queued=0.5, idle_in_copy=0.1))
    assert idle is not None
    assert idle.shares == {"copy": 0.1}


def test_launches_of_over_a_millisecond_are_first_ones() -> None:
    """0.3 s for 299 kernels is more than 1 ms each; for 301 it is less."""

    def actions(rate: float, name: str) -> str:
        found = host_remedies(seen(kernel_rate=rate, **{name: 0.3}))
        return " ".join(r.action for r in found)

    assert "first launches load code" in actions(299, "idle_in_launch")
    assert "compute on the host" in actions(299, "idle_in_operator")
    for name in GROUPS["launch"]:
        assert actions(301, name) == "launch less from Python: CUDA graphs or compilation"


def test_a_trace_in_which_graphs_launch_already_is_not_told_to_use_them() -> None:
    def action(share: float) -> str:
        (remedy,) = host_remedies(seen(idle_in_launch=0.6, kernels_in_graphs=share))
        return remedy.action

    assert action(0.6).startswith("launch fewer, larger CUDA graphs")
    assert action(0.5).startswith("launch less from Python")


def test_a_trace_without_the_host_says_so_and_claims_no_cause() -> None:
    found = traced(0.1)
    assert found.verdict.sentence.endswith("; nothing of the host was traced that says why.")
    assert [r.action.partition(":")[0] for r in found.remedies] == [
        "find out first what the host does meanwhile"
    ]
    assert "CUDA graphs or compilation" not in [w.action for w in found.wont_help]


def test_without_a_trace_nothing_is_said_of_causes() -> None:
    assert host_idle({}) is None
    (remedy,) = host_remedies({})
    assert remedy.action == "launch less from Python: CUDA graphs or compilation"
    # Steps with a budget tell that time is not spent reading; lone kernels do not.
    stepped = {"host_per_step": measure("host_per_step", 0.01, "measured", "hand")}
    assert wont_help_the_host(stepped)[1].because == "the time is not spent reading weights"
    assert "weights" not in wont_help_the_host({})[1].because


def test_what_will_not_help_has_the_traces_numbers() -> None:
    graphs, faster = wont_help_the_host(
        seen(idle_in_unseen=0.93, idle_in_launch=0.02, gpu_busy=0.044)
    )
    assert graphs.because == (
        "launching kernels one by one explains only 2 % of the window, of which the device "
        "waited 95 %"
    )
    assert faster.because == "it shortens kernels, and those run in only 4 % of the time"
    (_, faster) = wont_help_the_host(seen(idle_in_unseen=0.9, gpu_busy=0.004))
    assert faster.because.endswith("those run in less than 1 % of the time")
    (_, faster) = wont_help_the_host(seen(idle_in_unseen=0.9))
    assert faster.because == "it shortens kernels, and the device waits between them"


def test_a_busy_device_gets_no_advice_on_its_host() -> None:
    """Busy 0.9: whatever the host did in the rest, it does not limit."""
    found = traced(0.9, idle_in_sync=0.1)
    assert found.verdict.bottleneck != "host"
    assert ".item()" not in " ".join(r.action for r in found.remedies)
    assert "the largest part" not in found.verdict.sentence
