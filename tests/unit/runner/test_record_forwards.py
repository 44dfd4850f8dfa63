"""Each forward pass is one step, whichever thread it ran in and however blocks are nested."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
import torch
from hf_pair import LLAMA, EnginePair, write_config

from stallscope.profiler.capture import Capture
from stallscope.profiler.capture_file import read_capture
from stallscope.profiler.recorder import Recorder
from stallscope.runner.forward_watch import CACHE_NAMES
from stallscope.runner.record_forwards import record_forwards

PROMPT, NEW = 10, 30
# The first new token comes from the prompt's pass; each decode reads the prompt and what is new.
DECODES = NEW - 1
CONTEXT = sum(PROMPT + i for i in range(1, NEW))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return EnginePair(write_config(tmp_path_factory.mktemp("model"), LLAMA)).hf_model().module


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[Recorder]:
    with Recorder(tmp_path / "run.sqlite", sample_hz=0) as made:
        yield made


def generate(model: Any, new: int = NEW) -> None:
    ids = torch.full((1, PROMPT), 5)
    model.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=new,
        do_sample=False,
        pad_token_id=0,
        eos_token_id=None,
    )


@torch.inference_mode()
def forward(model: Any, ids: list[list[int]], **given: Any) -> Any:
    return model(torch.tensor(ids), **given)


def in_threads(count: int, work: Callable[[], None]) -> None:
    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def closed(recorder: Recorder, tmp_path: Path) -> Capture:
    recorder.close()
    return read_capture(tmp_path / "run.sqlite")


def assert_generated(capture: Capture, times: int) -> None:
    phases = Counter(s.phase for s in capture.steps)
    assert phases == {"prefill": times, "decode": times * DECODES}
    assert sum(s.prefill_tokens for s in capture.steps) == times * PROMPT
    decodes = [s for s in capture.steps if s.phase == "decode"]
    assert {s.decode_requests for s in decodes} == {1}
    assert sum(s.context_tokens or 0 for s in decodes) == times * CONTEXT
    assert len({s.id for s in capture.steps}) == len(capture.steps)
    assert all(s.end_ns >= s.start_ns and (s.host_ns or 0) >= 0 for s in capture.steps)


def test_the_figures_by_hand() -> None:
    # 29 decode passes at 11 to 39 tokens: 29 · 25.
    assert (DECODES, CONTEXT) == (29, 725)


def test_three_threads_in_one_block(model: Any, recorder: Recorder, tmp_path: Path) -> None:
    with record_forwards(model, recorder):
        in_threads(3, lambda: generate(model))
    assert_generated(closed(recorder, tmp_path), 3)


def test_three_threads_in_blocks_of_their_own(
    model: Any, recorder: Recorder, tmp_path: Path
) -> None:
    def work() -> None:
        with record_forwards(model, recorder):
            generate(model)

    in_threads(3, work)
    generate(model)  # no block is open any more
    assert_generated(closed(recorder, tmp_path), 3)


def test_nested_blocks_count_once(model: Any, recorder: Recorder, tmp_path: Path) -> None:
    with record_forwards(model, recorder):
        with record_forwards(model, recorder):
            generate(model)
        generate(model)  # the outer block goes on
    assert_generated(closed(recorder, tmp_path), 2)


def test_two_recorders_each_count(model: Any, recorder: Recorder, tmp_path: Path) -> None:
    with (
        Recorder(tmp_path / "other.sqlite", sample_hz=0) as other,
        record_forwards(model, recorder),
        record_forwards(model, other),
    ):
        generate(model)
    assert_generated(closed(recorder, tmp_path), 1)
    assert_generated(read_capture(tmp_path / "other.sqlite"), 1)


class Wrapped(torch.nn.Module):
    """A model around a model, as adapters are."""

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner, self.config = inner, inner.config

    def forward(self, input_ids: torch.Tensor) -> Any:
        return self.inner(input_ids)


def test_a_model_within_a_model_is_part_of_its_step(
    model: Any, recorder: Recorder, tmp_path: Path
) -> None:
    wrapped = Wrapped(model)
    with record_forwards(model, recorder), record_forwards(wrapped, recorder):
        forward(wrapped, [[5] * 4])
        forward(model, [[5] * 6])  # alone it is a step
    assert [s.prefill_tokens for s in closed(recorder, tmp_path).steps] == [4, 6]


def test_a_block_may_end_while_another_threads_pass_runs(
    model: Any, recorder: Recorder, tmp_path: Path
) -> None:
    """The pass that runs on has nobody to write it; the next one is a step again."""
    inside, go_on = threading.Event(), threading.Event()
    between = threading.Barrier(2)

    def hold(*_: object) -> None:
        inside.set()
        assert go_on.wait(10)

    def work() -> None:
        forward(model, [[5] * 4])
        between.wait(10)
        between.wait(10)
        forward(model, [[5] * 6])

    thread = threading.Thread(target=work)
    with record_forwards(model, recorder):
        holding = model.model.register_forward_pre_hook(hold)
        thread.start()
        assert inside.wait(10)
    holding.remove()
    go_on.set()
    between.wait(10)
    with record_forwards(model, recorder):
        between.wait(10)
        thread.join()
    assert [s.prefill_tokens for s in closed(recorder, tmp_path).steps] == [6]


def test_a_pass_that_fails_is_no_step_and_the_next_one_is(
    model: Any, recorder: Recorder, tmp_path: Path
) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("another's hook")

    with record_forwards(model, recorder), record_forwards(model, recorder):
        with pytest.raises(IndexError):
            forward(model, [[LLAMA["vocab_size"]] * 2])  # no such token
        for prepend in (True, False):  # before our hook, and after it
            hook = model.register_forward_pre_hook(refuse, prepend=prepend)
            with pytest.raises(RuntimeError, match="another's hook"):
                forward(model, [[5] * 3])
            hook.remove()
        forward(model, [[5] * 4])
    assert [s.prefill_tokens for s in closed(recorder, tmp_path).steps] == [4]


def test_a_nested_block_adds_its_idle_tokens(
    model: Any, recorder: Recorder, tmp_path: Path
) -> None:
    with record_forwards(model, recorder), record_forwards(model, recorder, idle_tokens=[7]):
        cache = forward(model, [[5] * 4] * 2, use_cache=True).past_key_values
        name = next(n for n in CACHE_NAMES if n in signature(model.forward).parameters)
        forward(model, [[5], [7]], **{name: cache})
    steps = closed(recorder, tmp_path).steps
    assert [(s.phase, s.decode_requests) for s in steps] == [("prefill", 0), ("decode", 1)]
