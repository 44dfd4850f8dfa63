"""`stallscope plan` on the command line."""

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
from stallscope.profiler.capture import Capture, Step
from stallscope.profiler.capture_writer import write_capture
from stallscope.profiler.devices import load_device
from stallscope.profiler.models import load_model
from stallscope.profiler.spec import DeviceSpec, Subject


def test_kv_sizes_are_printed_in_bytes(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["plan", "--model", "llama-7b", "--dtype", "fp16", "--kv-table", "2048"]) == 0
    assert "1,073,741,824" in capsys.readouterr().out


def test_kv_table_of_llama_13b(capsys: pytest.CaptureFixture[str]) -> None:
    lengths = "512,1024,2048,4096"
    command = f"plan --model llama-13b --dtype fp16 --kv-table {lengths}".split()
    assert call([*command, "--format", "json"]) == 0
    table = json.loads(capsys.readouterr().out)["kv_table"]
    mib = [row["bytes"] / 2**20 for row in table]
    assert mib == [400, 800, 1600, 3200]  # 1.5625 GiB and 3.125 GiB
    assert call(command) == 0
    text = capsys.readouterr().out
    assert all(size in text for size in ("400 MiB", "800 MiB", "1.5625 GiB", "3.125 GiB"))


def test_dtypes_side_by_side_a_sweep_and_speculation(
    capsys: pytest.CaptureFixture[str],
) -> None:
    load = ["--gpu", "a10g", "--concurrency", "2", "--output-tokens", "32"]
    dtypes = ["--dtype", "fp16,int4", "--kv-dtype", "fp16", "--kv-dtype", "int8"]
    command = ["plan", "--model", "llama-7b", *load, *dtypes, "--sweep", "--speculate", "3"]
    assert call([*command, "--format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    pairs = [(c["dtype"], c["kv_dtype"]) for c in report["choices"]]
    assert pairs == [("fp16", "fp16"), ("fp16", "int8"), ("int4", "fp16"), ("int4", "int8")]
    assert report["subject"]["dtype"] == "fp16"
    assert report["choices"][0]["gain"] is None
    assert report["sweep"]["rows"][0]["concurrency"] == 1
    assert report["speculation"]["tokens"] == pytest.approx(1 + 0.7 + 0.49 + 0.343)
    assert call(command) == 0
    text = capsys.readouterr().out
    for title in ("Choices side by side", "More requests at once", "Speculative decoding"):
        assert title in text


@pytest.mark.parametrize("suffix", ["md", "json", "txt"])
def test_plan_is_written_by_suffix(
    suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / f"plan.{suffix}"
    command = ["plan", "--model", "llama-7b", "--gpu", "A100-SXM4-40GB", "-o", str(target)]
    assert call(command) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert err.endswith(f"stallscope: wrote {target}\n")
    start = {"md": "# stallscope plan", "json": "{", "txt": "llama-7b with fp16 weights"}[suffix]
    assert target.read_text().startswith(start)
    assert [path.name for path in tmp_path.iterdir()] == [target.name]
    assert call(command) == 2  # it exists now
    assert "add --force" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        ("", 2, "Missing option '--model'"),
        ("--model llama-8b", 1, "llama-8b"),
        ("--model llama-7b --gpu a100", 1, "a100-sxm4-40gb"),
        ("--model llama-7b --gpu-file none.json", 1, "none.json"),
        ("--model llama-7b --kv-table 512,x", 2, "--kv-table: '512,x' is not a list"),
        ("--model llama-7b --kv-table 512,0", 2, "--kv-table: '512,0' is not a list"),
        ("--model llama-7b --input-tokens 0", 2, "--input-tokens"),
        ("--model llama-7b --concurrency 0", 2, "--concurrency"),
        ("--model llama-7b --dtype fp17", 2, "fp17"),
        ("--model llama-7b --dtype fp16,fp17", 2, "--dtype: 'fp17' is not one of fp32, bf16"),
        ("--model llama-7b --kv-dtype mxfp4", 2, "--kv-dtype: 'mxfp4' is not one of"),
        ("--model llama-7b --acceptance 1.5", 2, "--acceptance"),
        ("--model llama-7b --speculate 0", 2, "--speculate"),
        ("--probe --gpu a10g", 2, "leave --gpu and --gpu-file out"),
        ("--model llama-7b --gpu a10g --write-gpu-file x.json", 2, "add --probe"),
        ("--model llama-7b --device cpu", 2, "add --probe"),
        ("--model llama-7b --calibrate none.sqlite", 2, "add --gpu, --gpu-file or --probe"),
        ("--model llama-7b --gpu a10g --calibrate none.sqlite", 1, "none.sqlite"),
        ("--probe --write-gpu-file none/x.json", 1, "none/x.json"),
        ("--model llama-7b --acceptance 0.9", 2, "add --speculate N"),
        ("--model llama-7b --cpu-offload much", 2, "--cpu-offload"),
        ("--model llama-7b --gpu gb10 --cpu-offload 4GiB", 2, "the link of gb10 to its host"),
        ("--model llama-7b --gpu a10g --link pcie4", 2, "--link joins devices: add --gpus N"),
        ("--model llama-7b --gpus 2 --link pcie4", 2, "--link is of a device"),
        ("--model llama-7b --gpu a10g --host-link pcie4", 2, "without --cpu-offload"),
        (
            "--model llama-7b --gpu a10g --gpus 2 --link nvlink",
            2,
            "'nvlink' is no link of a10g; write pcie, pcie3, pcie4, pcie5, or a rate",
        ),
        ("--model llama-7b --gpu a10g --gpus 2 --link 9B/s", 2, "less than any link has"),
        ("--model llama-7b -o plan.html", 2, "HTML reports are not built yet"),
    ],
)
def test_wrong_plan_is_refused_in_one_line(
    arguments: str, code: int, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(["plan", *arguments.split()]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert complaint in err
    assert err.count("\n") == 1


def test_no_more_weights_are_offloaded_than_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    plan = ["plan", "--model", "llama-7b", "--gpu", "a10g", "--dtype", "fp16"]
    assert call([*plan, "--cpu-offload", "12GiB"]) == 0
    capsys.readouterr()
    assert call([*plan, "--cpu-offload", "13GiB"]) == 2
    # 6,738,415,616 parameters of two bytes are 12.55 GiB.
    assert "llama-7b has 12.6 GiB of weights" in capsys.readouterr().err


def test_a_draft_without_speculation_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["plan", "--model", "llama-7b", "--draft", "tiny-26m"]) == 2
    assert "--speculate" in capsys.readouterr().err


def test_a_drafts_memory_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    plan = ["plan", "--model", "llama-13b", "--gpu", "a100-sxm4-80gb", "--dtype", "fp16"]
    assert call([*plan, "--speculate", "4", "--draft", "llama-7b"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    # 6,738,415,616 parameters of two bytes.
    assert "weights of what drafts 12.6 GiB 13,476,831,232" in said


def test_devices_without_a_known_link_say_so_and_how_to_tell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Half the work each and nothing to say to each other would be twice as fast for nothing."""
    mine = {"name": "mine", "peak_flops": {"fp16": 1e14}, "memory_bytes_per_s": 1e12}
    file = tmp_path / "mine.json"
    file.write_text(json.dumps({**mine, "memory_bytes": 40 << 30}))
    plan = ["plan", "--model", "llama-7b", "--dtype", "fp16", "--gpu-file", str(file)]
    assert call([*plan, "--gpus", "2", "--format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    (missing,) = report["not_observable"]
    assert "communication between the devices" in missing["what"]
    assert "link_bytes_per_s" in missing["how"]
    assert any("communication" in note for note in report["notes"])
    assert call([*plan, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["not_observable"] == []
    file.write_text(json.dumps({**mine, "memory_bytes": 40 << 30, "link_bytes_per_s": 1e10}))
    assert call([*plan, "--gpus", "2", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["not_observable"] == []


def test_a_calibration_is_kept_in_the_device_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Decode steps of one and of four requests on an A10G, with 3 ms and 1 ms a request of host."""
    spec, device = load_model("llama-7b"), load_device("a10g")
    subject = Subject(spec, device, 1, "fp16", "fp16", engine="vllm")
    cost = build_cost_model(Capture(subject=subject))
    assert isinstance(cost, CostModel)
    model = expected_model(cost)
    assert model is not None
    steps, at = [], 0
    for n in (1, 4):
        end = at + round(1e9 * (model.step_time(decode_shape(n, 600)).floor + 3e-3 + n * 1e-3))
        row = dict.fromkeys(Step._fields) | {"id": n, "rank": 0, "phase": "decode"}
        row |= {"warmup": False, "prefill_requests": 0, "prefill_tokens": 0}
        work = {"context_tokens": n * 600, "attention_pairs": n * 600, "logit_rows": n}
        steps.append(Step(**{**row, **work, "decode_requests": n, "start_ns": at, "end_ns": end}))
        at = end
    run, kept = tmp_path / "run.sqlite", tmp_path / "mine.json"
    write_capture(run, Capture(subject, steps=tuple(steps)))
    plan = ["plan", "--model", "llama-7b", "--dtype", "fp16", "--format", "json"]
    once = [*plan, "--gpu", "a10g", "--calibrate", str(run), "--write-gpu-file", str(kept)]
    assert call(once) == 0
    out, err = capsys.readouterr()
    assert (
        "calibrated on 2 usual steps of 1 run, one of each batch size out of 2, too few to tell "
        "how far it misses" in err
    )
    learnt = json.loads(out)["calibration"]
    assert learnt["step_s"] == pytest.approx(3e-3, rel=1e-3)
    assert learnt["request_s"] == pytest.approx(1e-3, rel=1e-3)
    assert call([*plan, "--gpu-file", str(kept)]) == 0
    again = json.loads(capsys.readouterr().out)
    assert (again["calibration"], again["tpot_s"]) == (learnt, json.loads(out)["tpot_s"])
    assert again["tpot_s"]["expected_error"] == 0.30  # as without
    assert call(once) == 2
    assert "--force" in capsys.readouterr().err


def test_a_run_of_another_device_calibrates_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run of a CPU for a GPU, of one GPU for another; the driver's name is the table's device."""
    a10g, run, kept = load_device("a10g"), tmp_path / "run.sqlite", tmp_path / "mine.json"
    cpu = DeviceSpec("Some CPU", {"fp32": 1e11}, 1 << 30, 1e10, "achievable", is_cpu=True)
    plan = ["plan", "--model", "llama-7b", "--gpu", "a10g", "--calibrate", str(run)]
    for device, complaint in (
        (cpu, "ran on Some CPU (a CPU), not on a10g (a GPU)"),
        (load_device("l4"), "ran on l4, not on a10g"),
        (replace(a10g, name="NVIDIA A10"), "ran on NVIDIA A10, not on a10g"),
        (replace(a10g, name="NVIDIA A10G"), "two batch sizes"),  # the same: its steps are asked
        (None, "does not say what it ran on; it is taken for a run of a10g"),
    ):
        write_capture(run, Capture(Subject(load_model("llama-7b"), device, 1, "fp16", "fp16")))
        assert call([*plan, "--write-gpu-file", str(kept)]) == 1
        assert complaint in capsys.readouterr().err
        assert not kept.exists()
        run.unlink()


def test_lengths_beyond_the_model_are_shown_and_noted_only_if_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    plan = ["plan", "--model", "llama-7b", "--dtype", "fp16", "--format", "json"]
    for more, lengths in (([], [512, 1024, 2048]), (["--kv-table", "4096"], [4096])):
        assert call([*plan, *more]) == 0
        report = json.loads(capsys.readouterr().out)
        assert [row["seq_len"] for row in report["kv_table"]] == lengths
        noted = [note for note in report["notes"] if "beyond the model's 2,048" in note]
        assert bool(noted) == bool(more)


def test_large_numbers_of_a_load_have_their_thousands_set_apart(
    capsys: pytest.CaptureFixture[str],
) -> None:
    load = ["--input-tokens", "1000000", "--output-tokens", "2000", "--concurrency", "1500"]
    assert call(["plan", "--model", "llama-7b", "--dtype", "fp16", *load]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "1,000,000 in, 2,000 out, 1,500 at once" in said
    assert "one prompt of 1,000,000 tokens" in said
    assert "1,002,000 tokens are beyond the model's 2,048." in said
