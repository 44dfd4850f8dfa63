"""What a forward pass is given tells its phase and its padding, whoever calls the model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from hf_pair import LLAMA, EnginePair, write_config

from stallscope.profiler.capture import Capture
from stallscope.profiler.capture_file import read_capture
from stallscope.profiler.recorder import Recorder
from stallscope.runner.forward_watch import ForwardWatch, LiveRow
from stallscope.runner.hf_model import HfModel
from stallscope.runner.record_forwards import record_forwards


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> HfModel:
    return EnginePair(write_config(tmp_path_factory.mktemp("model"), LLAMA)).hf_model()


@pytest.fixture
def watch(model: HfModel) -> Iterator[ForwardWatch]:
    made = ForwardWatch(model.module)
    yield made
    made.close()


@torch.inference_mode()
def test_a_padded_prefill_and_a_decode_with_an_ended_row(
    model: HfModel, watch: ForwardWatch
) -> None:
    mask = torch.tensor([[1, 1, 1], [0, 0, 1]])
    _, cache = model.forward(torch.ones_like(mask), mask, torch.zeros_like(mask), None)
    seen = watch.last()
    assert (seen.phase, seen.rows, seen.new, seen.cached) == ("prefill", 2, 3, 0)
    assert seen.live == (LiveRow(3, 0), LiveRow(1, 0))
    assert seen.tokens == 6
    assert seen.logit_rows == 2  # the last position's alone

    mask = torch.tensor([[1, 1, 1, 0], [0, 0, 1, 1]])
    model.forward(torch.ones(2, 1, dtype=torch.int64), mask, torch.tensor([[3], [1]]), cache)
    seen = watch.last()
    assert (seen.phase, seen.new, seen.cached) == ("decode", 1, 3)
    assert seen.live == (LiveRow(1, 1),)  # the first row's new token is hidden
    assert seen.tokens == 2


@torch.inference_mode()
def test_without_a_mask_every_row_is_live(model: HfModel, watch: ForwardWatch) -> None:
    model.module(torch.ones(2, 5, dtype=torch.int64))  # positional, and all logits kept
    seen = watch.last()
    assert seen.live == (LiveRow(5, 0), LiveRow(5, 0))
    assert seen.logit_rows == 10


@torch.inference_mode()
def test_ranges_are_named_by_phase_and_closed_by_errors(
    model: HfModel, watch: ForwardWatch
) -> None:
    seen: list[tuple[str, Any]] = []

    @contextmanager
    def mark(phase: str, tokens: int) -> Iterator[None]:
        seen.append((phase, tokens))
        yield
        seen.append(("end", None))

    watch.mark = mark
    ids = torch.ones(1, 4, dtype=torch.int64)
    _, cache = model.forward(ids, ids, torch.arange(4)[None], None)
    model.forward(ids[:, :1], torch.ones(1, 5), torch.tensor([[4]]), cache)
    with pytest.raises(IndexError):
        model.module(torch.full((1, 2), 97))  # no such token
    assert seen == [
        *(("prefill", 4), ("end", None)),
        *(("decode", 1), ("end", None)),
        *(("prefill", 2), ("end", None)),
    ]


def generated(model: HfModel, path: Path, **options: Any) -> tuple[Capture, list[list[int]]]:
    ids = torch.tensor([[5, 6, 7, 8], [0, 0, 9, 10]])
    mask = torch.tensor([[1, 1, 1, 1], [0, 0, 1, 1]])
    idle = [token for token in (options["pad_token_id"], options["eos_token_id"]) if token]
    arguments = {"attention_mask": mask, "do_sample": False, "max_new_tokens": 6, **options}
    with Recorder(path, sample_hz=0) as recorder:
        with record_forwards(model.module, recorder, idle_tokens=idle):
            out = model.module.generate(ids, **arguments)
        plain = model.module.generate(ids, **arguments)  # the hooks are off again
    assert torch.equal(out, plain)
    return read_capture(path), out[:, 4:].tolist()


def test_generate_is_recorded_by_the_same_hook(model: HfModel, tmp_path: Path) -> None:
    capture, _ = generated(model, tmp_path / "a.sqlite", pad_token_id=96, eos_token_id=None)
    assert [s.phase for s in capture.steps] == ["prefill", *["decode"] * 5]
    prefill, first = capture.steps[:2]
    assert (prefill.prefill_requests, prefill.prefill_tokens, prefill.padded_tokens) == (2, 6, 2)
    assert (first.decode_requests, first.context_tokens) == (2, 5 + 3)
    assert (first.padded_tokens, first.padded_context_tokens) == (0, 2)
    assert all(
        a.end_ns <= b.start_ns for a, b in zip(capture.steps, capture.steps[1:], strict=False)
    )


def test_a_row_that_generate_feeds_padding_has_ended(model: HfModel, tmp_path: Path) -> None:
    _, rows = generated(model, tmp_path / "a.sqlite", pad_token_id=96, eos_token_id=None)
    ends = next(i for i in range(5) if rows[0][i] not in rows[1] and rows[0][i] not in rows[0][:i])
    options = {"pad_token_id": 96, "eos_token_id": rows[0][ends]}
    capture, _ = generated(model, tmp_path / "b.sqlite", **options)
    decodes = [s.decode_requests for s in capture.steps if s.phase == "decode"]
    assert decodes == [2] * ends + [1] * (5 - ends)
