"""Calibrations kept for a device, and what later commands make of them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from stallscope.analyzers.cost.calibration import build_cost_model
from stallscope.analyzers.cost.expected import expected_model
from stallscope.analyzers.cost.operators import decode_shape
from stallscope.analyzers.cost.roofline import CostModel
from stallscope.app import call
from stallscope.errors import CaptureError
from stallscope.kept_devices import find_kept, folder, keep_device, short_name
from stallscope.profiler.capture import Capture, Step
from stallscope.profiler.capture_amend import amend_capture
from stallscope.profiler.capture_file import read_capture
from stallscope.profiler.capture_writer import CaptureWriter, write_capture
from stallscope.profiler.devices import load_device
from stallscope.profiler.models import load_model
from stallscope.profiler.spec import Calibration, DeviceSpec, ProductTime, Subject
from stallscope.run_calibration import fit_run

A10G, LLAMA = load_device("a10g"), load_model("llama-7b")
PLAN = ["plan", "--model", "llama-7b", "--dtype", "fp16", "--format", "json", "--gpu"]
CPU = DeviceSpec(
    "Some(R) CPU @ 2.00GHz (2 cores)",
    {"fp32": 1e11},
    1 << 30,
    1e10,
    "achievable",
    is_cpu=True,
    products=(ProductTime("fp32", 64, 64, 1, 1e-6),),
    launch_s=1e-6,
    calibration=Calibration("2026-01-02", "builtin", 3, 6, 0.1),
)


@pytest.fixture(autouse=True)
def own_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path / "data" / "stallscope" / "devices"


def recorded(path: Path, *, host_s: float = 3e-3, sizes: tuple[int, ...] = (1, 4, 8)) -> Path:
    """Decode steps on an A10G: what kernels are expected to take, the host, 1 ms a request."""
    subject = Subject(LLAMA, A10G, 1, "fp16", "fp16", engine="vllm")
    cost = build_cost_model(Capture(subject=subject))
    assert isinstance(cost, CostModel)
    model = expected_model(cost)
    assert model is not None
    steps, at = [], 0
    for n in sizes:
        end = at + round(1e9 * (model.step_time(decode_shape(n, 600)).floor + host_s + n * 1e-3))
        row = dict.fromkeys(Step._fields) | {"id": n, "rank": 0, "phase": "decode"}
        row |= {"warmup": False, "prefill_requests": 0, "prefill_tokens": 0}
        work = {"context_tokens": n * 600, "attention_pairs": n * 600, "logit_rows": n}
        steps.append(Step(**{**row, **work, "decode_requests": n, "start_ns": at, "end_ns": end}))
        at = end
    write_capture(path, Capture(subject, steps=tuple(steps)))
    return path


def planned(capsys: pytest.CaptureFixture[str], *more: str) -> tuple[dict[str, object], str]:
    assert call([*PLAN, *more]) == 0
    out, err = capsys.readouterr()
    return json.loads(out), err


def test_the_folder_is_as_the_specification_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    for setting in ("", "data", "./data"):
        monkeypatch.setenv("XDG_DATA_HOME", setting)
        assert folder() == Path("/home/someone/.local/share/stallscope/devices")
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert folder() == Path("/data/stallscope/devices")


def test_names_that_files_and_shells_take() -> None:
    assert short_name("Intel(R) Xeon(R) Processor @ 2.10GHz (2 cores)") == (
        "intel-xeon-processor-2-10ghz-2-cores"
    )
    assert short_name("NVIDIA A100-SXM4-80GB") == short_name("A100-sxm4-80gb") == "a100-sxm4-80gb"
    assert short_name("../../etc/x") == "etc-x"


def test_what_was_saved_is_found_said_and_left_out_on_request(
    tmp_path: Path, own_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain, err = planned(capsys, "a10g")
    assert plain["calibration"] is None
    run = str(recorded(tmp_path / "run.sqlite"))
    _, err = planned(capsys, "a10g", "--calibrate", run)
    assert not own_data.exists()  # nothing is kept unasked
    learnt, err = planned(capsys, "a10g", "--calibrate", run, "--save-calibration")
    assert f"kept in {own_data / 'a10g.json'}" in err
    fitted = learnt["calibration"]
    assert isinstance(fitted, dict)
    assert (fitted["step_s"], fitted["tested"]) == (pytest.approx(3e-3, rel=1e-3), True)
    again, err = planned(capsys, "A10G")
    assert again["calibration"] == fitted
    assert again["tpot_s"] == learnt["tpot_s"]
    assert err.startswith(
        "stallscope: calibrated by 3 usual steps of 1 run, one of each batch size out of 3 (vllm) "
        "on 20"
    )
    assert err.endswith("--uncalibrated leaves it out\n")
    without, err = planned(capsys, "a10g", "--uncalibrated")
    assert (without["calibration"], without["tpot_s"], err) == (None, plain["tpot_s"], "")
    other, err = planned(capsys, "l4")
    assert (other["calibration"], err) == (None, "")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "not valid JSON"),
        ("\0", "not valid JSON"),
        ("[]", "must hold one JSON object"),
        ("{}", "name is missing"),
        (None, "form is 2, of another version"),
    ],
)
def test_a_damaged_file_is_left_out_with_a_line(
    text: str | None, complaint: str, own_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fitted = Calibration("2026-01-02", "vllm", 1, 3, 0.1, step_s=1e-3, request_s=0.0, form=2)
    path = keep_device(replace(A10G, calibration=fitted))
    capsys.readouterr()
    if text is not None:
        path.write_text(text)
    found, err = planned(capsys, "a10g")
    assert found["calibration"] is None
    assert complaint in err
    assert err.count("\n") == 1
    assert "left out: save it again with --save-calibration" in err


def test_a_file_of_another_device_is_left_out_with_a_line(
    own_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fitted = Calibration("2026-01-02", "vllm", 1, 3, 0.1, step_s=1e-3, request_s=0.0)
    path = keep_device(replace(load_device("l4"), calibration=fitted))
    path.rename(own_data / "a10g.json")
    capsys.readouterr()
    found, err = planned(capsys, "a10g")
    assert found["calibration"] is None
    assert "is of l4, not of a10g; it is left out" in err


def test_a_device_that_is_not_in_the_table_is_found_by_what_it_is_called(
    capsys: pytest.CaptureFixture[str],
) -> None:
    keep_device(CPU)
    for name in (CPU.name, short_name(CPU.name)):
        assert find_kept(name) == CPU
        assert call(["plan", "--model", "tiny-26m", "--dtype", "fp32", "--gpu", name]) == 0
        out, err = capsys.readouterr()
        assert "6 usual steps of 3 runs" in out
        assert "--uncalibrated leaves it out" in err
    assert call(["plan", "--model", "tiny-26m", "--gpu", "some-gpu"]) == 1
    assert "no device 'some-gpu'" in capsys.readouterr().err


def test_a_run_is_not_judged_by_what_was_learnt_from_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, other = recorded(tmp_path / "a.sqlite"), recorded(tmp_path / "b.sqlite", host_s=9e-3)
    planned(capsys, "a10g", "--calibrate", str(run), "--save-calibration")
    for path, is_itself in ((run, True), (other, False)):
        assert call(["diagnose", str(path), "--gpu", "a10g", "--format", "json"]) == 0
        out, err = capsys.readouterr()
        report = json.loads(out)
        assert "--uncalibrated leaves it out" in err
        assert report["calibration"]["used"]["step_s"] == pytest.approx(3e-3, rel=1e-3)
        (note,) = [note for note in report["notes"] if "calibration of" in note]
        assert ("fitted on: that they agree says nothing" in note) == is_itself
    assert call(["diagnose", str(run), "--uncalibrated", "--gpu", "a10g", "--format", "json"]) == 0
    out, err = capsys.readouterr()
    assert (json.loads(out)["calibration"], err) == (None, "")


def test_a_run_s_fit_is_stored_in_its_capture(
    tmp_path: Path, own_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = recorded(tmp_path / "run.sqlite")
    before = read_capture(run)
    fit_run(run, save=False)
    after = read_capture(run)
    assert not own_data.exists()
    assert capsys.readouterr() == ("", "")
    assert replace(after, meta=before.meta) == before
    held = after.meta["calibration"]
    assert (held["device"], held["provenance"], held["steps"]) == ("a10g", "derived", 3)
    assert (held["tested"], held["sizes"], held["captures"]) == (True, 3, 1)
    assert held["error"] < 1e-3
    assert call(["diagnose", str(run), "--format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["calibration"]["used"] is None
    assert report["calibration"]["fitted"]["step_s"] == held["step_s"]
    (note,) = [n for n in report["notes"] if "by its own steps" in n]
    assert "3 usual steps of 1 run" in note
    assert "Nothing here rests on it" in note


def test_one_run_does_not_replace_what_several_taught(
    tmp_path: Path, own_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = recorded(tmp_path / "run.sqlite")
    fit_run(run, save=True)
    first = find_kept("a10g")
    assert first is not None
    assert first.calibration is not None
    assert first.calibration.captures == 1
    several = replace(first, calibration=replace(first.calibration, captures=3, step_s=7e-3))
    keep_device(several)
    capsys.readouterr()
    fit_run(run, save=True)
    assert find_kept("a10g") == several
    assert "a calibration by 3 runs is kept and stays" in capsys.readouterr().err


def test_a_run_that_teaches_nothing_says_why_only_if_asked(
    tmp_path: Path, own_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = recorded(tmp_path / "run.sqlite", sizes=(4,))
    fit_run(run, save=False)
    assert capsys.readouterr().err == ""
    fit_run(run, save=True)
    assert "no calibration was saved: a calibration needs steps of two" in capsys.readouterr().err
    assert "calibration" not in read_capture(run).meta
    assert not own_data.exists()


def test_a_capture_that_is_being_recorded_takes_nothing(tmp_path: Path) -> None:
    writer = CaptureWriter(tmp_path / "run.sqlite")
    try:
        with pytest.raises(CaptureError, match="still being recorded"):
            amend_capture(tmp_path / "run.sqlite", "calibration", {})
    finally:
        writer.close()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ("--gpu a10g --save-calibration", "add --calibrate"),
        ("--gpu a10g --uncalibrated --calibrate x.sqlite", "give one of them"),
    ],
)
def test_options_that_do_nothing_are_refused(
    arguments: str, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(["plan", "--model", "llama-7b", *arguments.split()]) == 2
    assert complaint in capsys.readouterr().err
