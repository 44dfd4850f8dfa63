"""Capture checks: what ends the procedure before any verdict, and what is worth a note."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from capture_builders import ON_CPU, batch_one, decodes, event, gauges, request, samples
from step_rows import MS, step

from stallscope.analyzers.checks import check
from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.result import Limits
from stallscope.profiler.capture import Capture, Cut, Event, Step

EMPTY = (
    "Undetermined: nothing was recorded: the capture holds no step, request or sample of a load."
)


def with_events(*events: Event) -> Capture:
    return dataclasses.replace(batch_one(), events=(*batch_one().events, *events))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ({"stage": "step", "bytes": None}, "out of memory while running a step"),
        (
            {"stage": "probe", "bytes": 9},
            "out of memory while probing the device (9 bytes asked for)",
        ),
        ({"stage": "sampling"}, "out of memory while in stage sampling"),
        ({}, "out of memory"),
    ],
)
def test_out_of_memory_is_capacity_with_the_stage(data: dict[str, Any], reason: str) -> None:
    verdict = diagnose(with_events(event("oom", **data))).verdict
    assert (verdict.bottleneck, verdict.confidence) == ("capacity", 0.99)
    assert verdict.limits == Limits("capacity", "capacity", "capacity")
    assert verdict.sentence == f"Memory capacity limits this run: {reason}."


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (
            {"stage": "weights"},
            "out of memory while loading the weights. To let it start, load the weights in a "
            "smaller dtype: --dtype bf16.",
        ),
        (
            {"stage": "kv", "bytes": 512 << 20},
            "out of memory while allocating the KV cache (512 MiB asked for). To let it start, ask "
            "for a smaller KV cache: --kv-budget.",
        ),
    ],
)
def test_a_start_that_failed_limits_no_run(data: dict[str, Any], said: str) -> None:
    capture = with_events(event("oom", **data))
    subject = dataclasses.replace(capture.subject, engine="builtin")
    verdict = diagnose(dataclasses.replace(capture, subject=subject)).verdict
    assert (verdict.bottleneck, verdict.confidence) == ("capacity", 0.99)
    assert verdict.sentence == f"The start failed: {said}"
    # Of an engine for which no flag is known, only the remedy is named.
    nameless = dataclasses.replace(capture, subject=dataclasses.replace(subject, engine="mine"))
    assert "--" not in diagnose(nameless).verdict.sentence


def test_what_was_gone_at_the_end_is_in_the_headline_once() -> None:
    said = "At the end the server no longer answered."
    found = diagnose(with_events(event("check", sentence=said, ends=True)))
    assert found.verdict.sentence.endswith(f" {said}")
    assert found.verdict.bottleneck == diagnose(batch_one()).verdict.bottleneck
    assert said not in found.notes


@pytest.mark.parametrize(
    ("stage", "first"),
    [
        ("weights", "load the weights in a smaller dtype"),
        ("kv", "ask for a smaller KV cache"),
        ("step", "put fewer tokens into a step: activations grow with them"),
    ],
)
def test_remedies_make_room_where_it_was_missing(stage: str, first: str) -> None:
    found = diagnose(with_events(event("oom", stage=stage)))
    assert found.remedies[0].action == first
    assert all(remedy.gain is None for remedy in found.remedies)
    assert not any("more room" in remedy.action for remedy in found.remedies)
    assert found.wont_help[0].action == "giving the KV cache more room"


def test_out_of_memory_before_the_first_step() -> None:
    """A start that failed for memory: no step, no request, a whole report."""
    found = diagnose(Capture(subject=ON_CPU, events=(event("oom", stage="kv", bytes=1 << 40),)))
    assert found.verdict.bottleneck == "capacity"
    assert "(1,048,576 MiB asked for)" in found.verdict.sentence
    assert found.verdict.chain == ()


def test_out_of_memory_while_requests_queue_is_not_told_as_a_full_pool() -> None:
    rows = tuple(request(i, 0, 20 * i, 20 * i + 1, 20 * i + 20) for i in range(8))
    steps = decodes(160, waiting=3, running=1, blocked_by="seqs")
    events = (event("oom", stage="step", bytes=1 << 20),)
    found = diagnose(Capture(subject=ON_CPU, requests=rows, steps=steps, events=events)).verdict
    assert (found.load, found.bottleneck) == ("overloaded", "capacity")
    assert "out of memory while running a step" in found.sentence
    assert "KV cache is full" not in found.sentence
    assert found.chain == ()


def test_an_exception_that_says_out_of_memory_in_somebodys_own_loop() -> None:
    error = event("error", type="OutOfMemoryError", message="CUDA out of memory.", step=7)
    found = diagnose(with_events(error))
    assert found.verdict.bottleneck == "capacity"
    assert "while running a step" in found.verdict.sentence
    assert "An error was recorded: OutOfMemoryError: CUDA out of memory." in found.notes


def test_another_exception_is_a_note_and_no_verdict() -> None:
    found = diagnose(with_events(event("error", type="ValueError", message="bad shape")))
    assert found.verdict.bottleneck == "bandwidth"
    assert found.notes == ("An error was recorded: ValueError: bad shape.",)


@pytest.mark.parametrize(
    ("blocked", "start"), [("telemetry", "The telemetry"), ("profiler", "What was recorded")]
)
def test_a_check_that_blocks_the_verdict(blocked: str, start: str) -> None:
    sentence = "Every clock reads zero."
    data = {"sentence": sentence, "class": blocked, "blocks": ["verdict"]}
    found = diagnose(with_events(event("check", **data)))
    assert found.verdict.bottleneck == blocked
    assert found.verdict.limits == Limits(blocked, blocked, blocked)
    assert found.verdict.sentence.startswith(start)
    assert found.verdict.sentence.endswith("Every clock reads zero.")
    assert found.notes == (sentence,)


def test_a_check_that_does_not_block_is_a_note() -> None:
    data = {"sentence": "Two clocks drift.", "class": "telemetry", "blocks": ["bandwidth"]}
    found = diagnose(with_events(event("check", **data)))
    assert (found.verdict.bottleneck, found.notes) == ("bandwidth", ("Two clocks drift.",))


def test_out_of_memory_goes_before_a_check() -> None:
    blocked = event("check", sentence="x", blocks=["verdict"], **{"class": "profiler"})
    decision = check(with_events(blocked, event("oom", stage="kv"))).decision
    assert decision is not None
    assert decision.bottleneck == "capacity"


def test_an_empty_capture_is_undetermined_and_says_so() -> None:
    verdict = diagnose(Capture()).verdict
    assert verdict.bottleneck == "undetermined"
    assert verdict.sentence == EMPTY


def test_only_warm_up_is_empty_too_and_any_other_row_is_not() -> None:
    assert check(Capture(steps=decodes(3, warmup=True))).decision is not None
    assert check(Capture(steps=decodes(1))).decision is None
    assert check(Capture(requests=(request(0, 0, 0, 1, 2),))).decision is None
    assert check(Capture(engine_samples=gauges(waiting=(0, 0)))).decision is None


def test_notes_on_the_run() -> None:
    capture = dataclasses.replace(
        with_events(
            event("gap", what="host", reason="OSError(5)"),
            event("probe", probe="stream", when="before", value=100.0, buffer_bytes=1 << 20),
            event("probe", probe="stream", when="after", value=80.0, buffer_bytes=1 << 20),
        ),
        meta={"flags": ["unstable", "interrupted"]},
        cut=Cut(60_000_000, "cut at 0.1 s: the run did not end"),
    )
    assert diagnose(capture).notes == (
        "Unstable machine: its probes before and after the run differ (stream -20 %).",
        "The run was interrupted before its workload was done.",
        "Samples of host are missing: OSError(5).",
        "The capture is incomplete: cut at 0.1 s: the run did not end.",
    )


def test_a_cut_capture_is_judged_and_says_where_it_was_cut() -> None:
    note = "cut at 0.1 s: the run did not end"
    found = diagnose(dataclasses.replace(batch_one(), cut=Cut(60_000_000, note)))
    assert found.verdict.bottleneck == "bandwidth"
    assert (found.capture.cut, found.capture.cut_note) == (True, note)


@pytest.mark.parametrize(("ended", "most"), [(None, 0.8), (40, 0.99)])
def test_the_beginning_of_a_run_is_no_ground_for_certainty(
    ended: float | None, most: float
) -> None:
    """Two of four wait at the cap from the first step to the cut, and one of the others ends."""
    rows = (
        *(request(i, 0, 0, 10, ended if i == 0 else None) for i in range(2)),
        *(request(i, 0, None, None, None, status="waiting") for i in (2, 3)),
    )
    steps = tuple(
        step(10 * i, 10 * i + 10, decode_requests=2, waiting=2, running=2, blocked_by="seqs")
        for i in range(10)
    )
    capture = Capture(requests=rows, steps=steps, cut=Cut(100 * MS, "the run did not end"))
    found = diagnose(capture).verdict
    assert (found.bottleneck, found.confidence) == ("scheduling", most)


def test_warnings_of_the_model_are_notes() -> None:
    model = dataclasses.replace(ON_CPU.model, warnings=("sliding_window is not modelled",))  # type: ignore[type-var]
    subject = dataclasses.replace(ON_CPU, model=model)
    assert diagnose(Capture(subject=subject)).notes == ("sliding_window is not modelled",)


def test_what_samplers_could_not_read_is_repeated_once() -> None:
    rows = [event("not_observable", i, what="PSI", reason="no kernel support") for i in range(2)]
    (found,) = check(with_events(*rows)).not_observable
    assert (found.what, found.reason, found.how) == ("PSI", "no kernel support", "")


def test_fields_that_are_missing_for_one_reason_are_one_line() -> None:
    rows = [
        event("not_observable", 0, what="power_mw", reason="no driver", how="load it"),
        event("not_observable", 0, what="PSI", reason="no kernel support", how="load it"),
        event("not_observable", 0, what="energy_mj", reason="no driver", how="load it"),
    ]
    found = check(with_events(*rows)).not_observable
    assert [(f.what, f.reason) for f in found] == [
        ("power_mw, energy_mj", "no driver"),
        ("PSI", "no kernel support"),
    ]


def test_samples_of_the_host_or_of_a_probe_are_no_load() -> None:
    host = samples("cpu_busy", 1.0, 2.0, device="host")
    gpu = samples("power", 1.0, 2.0)
    own = {"load_generator": "stallscope run"}
    assert check(Capture(device_samples=host)).is_empty
    assert not check(Capture(device_samples=gpu)).is_empty
    assert check(Capture(device_samples=gpu, meta=own)).is_empty
    assert not check(Capture(steps=decodes(1), device_samples=gpu, meta=own)).is_empty
    refused = check(Capture(events=(event("oom", stage="probe"),), meta=own))
    assert (refused.is_empty, refused.decision is not None) == (False, True)
    assert not diagnose(Capture(steps=decodes(1))).capture.empty
    assert diagnose(Capture(device_samples=host)).verdict.confidence == 0


def overlaps(*steps: Step) -> bool:
    return any(note.startswith("Steps overlap: ") for note in check(Capture(steps=steps)).notes)


def test_steps_that_overlap_are_said() -> None:
    first, second, third = decodes(3)
    assert not overlaps(first, second, third)
    inside = second._replace(id=9, start_ns=second.start_ns + 1, end_ns=second.end_ns - 1)
    assert overlaps(first, second, third, inside)
    assert not overlaps(first, second, third, inside._replace(rank=1))  # ranks run side by side
    assert not overlaps(first, second, third, inside._replace(warmup=True))
    # A hundredth of the covered 3 ms is 30 µs: more is said, less is not.
    late = third._replace(id=9, start_ns=third.end_ns - 29_000)
    assert not overlaps(first, second, third, late._replace(end_ns=third.end_ns))
    assert overlaps(first, second, third, late._replace(start_ns=third.end_ns - 31_000))
    (note,) = check(Capture(steps=(first, first._replace(id=9)))).notes
    assert note.startswith("Steps overlap: together they are 200 % of the time that they cover, so")
