"""A server's log on the command line: from a file, pasted, and with what its owner knows."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from derivation import faults

from stallscope.app import call

LINE = (
    "(APIServer pid=1) INFO 02-03 10:0{minute}:00 [loggers.py:259] Engine 000: "
    "Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: {made} tokens/s, Running: "
    "{running} reqs, Waiting: {waiting} reqs, GPU KV cache usage: {used}%, Prefix cache hit rate: "
    "0.0%\n"
)
QUEUE = "".join(
    LINE.format(minute=i, made=900, running=64, waiting=30, used=used)
    for i, used in enumerate((99.1, 99.5, 99.8))
)
# Llama-3-8B reads 15.0 GB of bf16 weights in a step (8.03e9 parameters less the embedding of
# 0.53e9, 2 bytes each). Of an A100's 2.04 TB/s at 90 steps a second that is 1.35 / 2.04 = 66 %.
DECODE = "".join(LINE.format(minute=i, made=90, running=1, waiting=0, used=1.0) for i in range(3))


def verdict(folder: Path, text: str, *options: str) -> dict[str, Any]:
    log, report = folder / "server.log", folder / "report.json"
    log.write_text(text)
    assert call(["diagnose", str(log), *options, "-o", str(report), "--force"]) == 0
    found: dict[str, Any] = json.loads(report.read_text())
    return found


def test_a_pasted_log() -> None:
    command = [sys.executable, "-m", "stallscope", "diagnose", "-", "--format", "json"]
    done = subprocess.run(command, input=QUEUE.encode(), capture_output=True, timeout=60)
    found = json.loads(done.stdout)
    assert found["verdict"]["class"] == "capacity"
    (source,) = found["capture"]["sources"]
    assert (source["kind"], source["path"]) == ("vllm log", "-")
    assert found["subject"]["engine"] == "vllm"


def test_a_pasted_log_with_a_table_of_nvidia_smi_below_it() -> None:
    table = (
        "| NVIDIA-SMI 590.48.01     Driver Version: 590.48.01     CUDA Version: 13.1     |\n"
        "|   0  NVIDIA H100 80GB HBM3          On  |   00000000:00:09.0 Off |     0 |\n"
        "| N/A   41C    P0            300W /  700W |   72000MiB /  81559MiB |     97% Default |\n"
    )
    command = [sys.executable, "-m", "stallscope", "diagnose", "-", "--format", "json"]
    pasted = (QUEUE + table).encode()
    done = subprocess.run(command, input=pasted, capture_output=True, timeout=60)
    found = json.loads(done.stdout)
    assert found["verdict"]["class"] == "capacity"
    assert found["subject"]["device"] == "h100-sxm"
    assert [s["path"] for s in found["capture"]["sources"]] == ["-", "-"]


def test_with_model_and_device_decode_is_bound_by_its_weights(tmp_path: Path) -> None:
    known = ("--model", "llama-3-8b", "--gpu", "a100-sxm4-80gb", "--dtype", "bf16")
    found = verdict(tmp_path, DECODE, *known)["verdict"]
    assert found["class"] == "bandwidth"
    assert "takes 66 % of memory bandwidth" in found["sentence"]
    assert verdict(tmp_path, DECODE)["verdict"]["class"] == "undetermined"


def test_the_derivation_for_who_asks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "explain" not in verdict(tmp_path, QUEUE)
    told = verdict(tmp_path, QUEUE, "--explain")
    assert faults(told) == []
    queue = next(step for step in told["explain"] if step["id"] == "queue")
    assert (queue["answer"], queue["comparisons"][0]["term"]) == ("decides", "held_by_capacity")
    capsys.readouterr()
    assert call(["diagnose", str(tmp_path / "server.log"), "--explain"]) == 0
    text = capsys.readouterr().out
    assert "How the verdict was derived" in text
    # 30 of 94 wait in each sample: 0.3191.
    assert "held_share 0.3191 ≥ 0.2 (threshold queue_wait_share): holds by 0.1191" in text
    assert call(["diagnose", str(tmp_path / "server.log")]) == 0
    assert "was derived" not in capsys.readouterr().out


def test_what_the_weights_take_is_derived(tmp_path: Path) -> None:
    known = ("--model", "llama-3-8b", "--gpu", "a100-sxm4-80gb", "--dtype", "bf16")
    told = verdict(tmp_path, DECODE, *known, "--explain")
    assert faults(told) == []
    step = next(step for step in told["explain"] if step["answer"] == "decides")
    assert step["terms"][0]["name"] == "weights_read_share"
    assert step["terms"][0]["value"] == pytest.approx(90 * 15.0e9 / 2.039e12, rel=0.01)


@pytest.mark.parametrize(
    ("own", "said"),
    [
        ("bfloat16", "The weights are taken to be bf16, as the model's config says; --dtype corr"),
        ("float32", None),  # engines convert it
        (None, None),
    ],
)
def test_weights_of_unknown_dtype_are_the_checkpoint_s(
    own: str | None, said: str | None, tmp_path: Path
) -> None:
    config = tmp_path / "config.json"
    shape = {"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32}
    shape |= {"num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256}
    shape |= {"max_position_embeddings": 8192}
    config.write_text(json.dumps({"model_type": "llama", **shape, "torch_dtype": own}))
    known = ("--model", str(config), "--gpu", "a100-sxm4-80gb")
    found = verdict(tmp_path, DECODE, *known)
    assert found["subject"]["dtype"] == (None if said is None else "bf16")
    told = [note for note in found["notes"] if note.startswith("The weights")]
    assert [note[:70] for note in told] == ([] if said is None else [said[:70]])
    assert verdict(tmp_path, DECODE, *known, "--dtype", "fp16")["subject"]["dtype"] == "fp16"


@pytest.mark.parametrize(
    ("given", "link", "knows_speed"),
    [("nvlink", "nvlink", True), ("ethernet", "ethernet", False), (None, "nvlink", True)],
)
def test_what_joins_the_devices(given: str | None, link: str, knows_speed: bool) -> None:
    from stallscope.named_specs import named_device

    device = named_device("a100-sxm4-80gb", None, given)
    assert device is not None
    assert (device.link or "").startswith(link)
    assert (device.link_bytes_per_s is not None) is knows_speed


def test_a_link_without_a_device_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "server.log"
    log.write_text(QUEUE)
    assert call(["diagnose", str(log), "--link", "pcie"]) == 2
    assert capsys.readouterr().err == "stallscope: --link joins devices; name them with --gpu\n"


def test_a_model_that_is_not_modelled_does_not_keep_the_log_from_being_judged(
    tmp_path: Path,
) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"model_type": "rwkv", "num_experts": 16}))
    found = verdict(tmp_path, QUEUE, "--model", str(config))
    assert found["verdict"]["class"] == "capacity"
    (tmp_path / "config.json").write_text("{")
    assert call(["diagnose", str(tmp_path / "server.log"), "--model", str(config)]) == 1
