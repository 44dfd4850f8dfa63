"""Copies and communication by way: their shares of the window, and what is advised on them."""

from __future__ import annotations

import pytest

from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.measures import measure
from stallscope.analyzers.result import Diagnosis
from stallscope.analyzers.trace_copies import copy_measures, prevailing_way
from stallscope.analyzers.trace_figures import trace_measures
from stallscope.analyzers.whatif.link_remedies import link_remedies, link_text
from stallscope.profiler.capture import Capture, DeviceSample, Event, KernelSummary
from stallscope.profiler.evidence import Measure

MS = 1_000_000
TO_DEVICE, TO_HOST = "copy, host to device", "copy, device to host"


def figure(name: str, value: float, device: str) -> Event:
    return Event(0, "trace_figure", None, {"name": name, "value": value, "device": device})


def row(kind: str, name: str, ms: int, exposed_ms: int | None, device: str) -> KernelSummary:
    exposed_ns = None if exposed_ms is None else exposed_ms * MS
    return KernelSummary(device, 0, "other", kind, name, 1, ms * MS, exposed_ns)


def two_devices(*rows: KernelSummary) -> Capture:
    """Windows of 2 s and 1 s; 40 GB and 10 GB from the host."""
    events = [
        figure("trace_window", 2.0, "cuda:0"),
        figure("trace_window", 1.0, "cuda:1"),
        figure("host_to_device_bytes", 40e9, "cuda:0"),
        figure("host_to_device_bytes", 10e9, "cuda:1"),
    ]
    return Capture(kernels=rows, events=tuple(events))


def test_shares_and_rates_are_of_each_devices_own_window() -> None:
    """1.6 of 2 s and 0.4 of 1 s: 60 % on average; 20 and 10 GB/s. One device copies back."""
    capture = two_devices(
        row("copy", TO_DEVICE, 1600, 1500, "cuda:0"),
        row("copy", TO_DEVICE, 400, 300, "cuda:1"),
        row("copy", TO_HOST, 200, 0, "cuda:1"),
        row("communication", "nccl", 500, 400, "cuda:0"),
    )
    found = {m.name: m for m in copy_measures(capture)}
    assert {name: m.value for name, m in found.items()} == {
        "copies_to_device": pytest.approx(0.6),
        "copies_to_host": pytest.approx(0.1),
        "copies_exposed": pytest.approx((0.75 + 0.3) / 2),
        "communication_exposed": pytest.approx(0.1),
        "host_to_device_rate": pytest.approx(15e9),
    }
    assert found["copies_to_device"].source.endswith("mean of cuda:0 80 %, cuda:1 40 %")
    assert found["host_to_device_rate"].source.endswith("cuda:0 20.0 GB/s, cuda:1 10.0 GB/s")


def test_without_a_window_or_with_unknown_exposure_nothing_is_claimed() -> None:
    copies = row("copy", TO_DEVICE, 900, None, "cuda:0")
    assert copy_measures(Capture(kernels=(copies,))) == ()
    assert {m.name for m in copy_measures(two_devices(copies))} == {
        "copies_to_device",
        "host_to_device_rate",
    }


def test_bytes_say_that_they_are_added_up() -> None:
    found = {m.name: m for m in trace_measures(two_devices())}
    assert found["host_to_device_bytes"].value == 50e9
    assert found["host_to_device_bytes"].source == "the trace, sum of 2 devices"
    assert found["trace_window"].source == "the trace, mean of 2 devices"


def seen(**values: float) -> dict[str, Measure]:
    return {name: measure(name, value, "measured", "hand") for name, value in values.items()}


def test_hidden_copies_do_not_beat_exposed_communication() -> None:
    hidden = seen(copies_to_device=0.9, copies_exposed=0.1, communication_exposed=0.4)
    assert prevailing_way(hidden) == "communication_exposed"
    shown = seen(copies_to_device=0.9, copies_exposed=0.5, communication_exposed=0.4)
    assert prevailing_way(shown) == "copies_to_device"
    back = seen(copies_to_device=0.1, copies_to_host=0.6, copies_exposed=0.5)
    assert prevailing_way(back) == "copies_to_host"
    assert prevailing_way(seen(copies_to_device=0.9)) is None
    assert prevailing_way({}) is None


def streamed(busy: float, pageable: float) -> Diagnosis:
    """In one second copies from the host run for 0.9, and nothing hides them."""
    return diagnose(
        Capture(
            kernels=(
                row("gemm", "k", round(busy * 1000), None, "cuda:0"),
                row("copy", TO_DEVICE, 900, 900, "cuda:0"),
            ),
            device_samples=(DeviceSample(MS, "cuda:0", "trace_kernel_busy", busy, "fraction"),),
            events=(
                figure("trace_window", 1.0, "cuda:0"),
                figure("host_to_device_bytes", 18e9, "cuda:0"),
                figure("pageable_share", pageable, "cuda:0"),
            ),
        )
    )


def test_streamed_data_gets_a_sentence_a_chain_and_remedies() -> None:
    found = streamed(0.05, 0.0)
    verdict = found.verdict
    assert verdict.bottleneck == "interconnect"
    assert verdict.sentence.endswith(
        "; copies from the host take 90 % of the traced window, 18.0 GB/s for each device."
    )
    assert [link.effect for link in verdict.chain] == ["kernels wait for copies"]
    assert {"copies_to_device", "host_to_device_rate"} <= set(verdict.chain[0].evidence)
    keep, fit = found.remedies
    assert keep.action.startswith("keep on the device")
    assert fit.action.startswith("where it does not fit")
    assert "copying while kernels run" in [w.action for w in found.wont_help]


def test_pinning_and_overlap_are_named_where_there_is_something_to_win() -> None:
    """A tenth of the bytes pageable; kernels in a tenth of the time."""

    def actions(busy: float, pageable: float) -> str:
        found = streamed(busy, pageable)
        assert found.verdict.bottleneck == "interconnect"
        return " ".join(r.action for r in found.remedies)

    assert "pinned" in actions(0.05, 0.1)
    assert "pinned" not in actions(0.05, 0.09)
    assert "second stream" in actions(0.1, 0.0)
    assert "second stream" not in actions(0.09, 0.0)


def test_communication_and_copies_back_have_their_own_advice() -> None:
    exchanged = seen(communication_exposed=0.6)
    assert link_text(exchanged) == "communication takes 60 % of the traced window"
    assert "split the model over fewer devices" in link_remedies(exchanged)[0].action
    back = seen(copies_to_host=0.6, copies_exposed=0.6, gpu_busy=0.3)
    assert [r.action.partition(":")[0] for r in link_remedies(back)] == [
        "copy less back to the host",
        "copy on a second stream, while kernels of another step run",
    ]


def test_nothing_is_said_of_links_without_a_trace() -> None:
    assert link_text({}) is None
