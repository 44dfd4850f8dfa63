"""KV cache size by formula and as allocated, and its four stages."""

from __future__ import annotations

import pytest
from capture_builders import event

from stallscope.analyzers.kv_life import allocated_rows, kv_rows, life_stages
from stallscope.analyzers.result import LifeStage
from stallscope.profiler.capture import Capture, Event
from stallscope.profiler.models import load_model
from stallscope.profiler.spec import Subject

MIB = 1 << 20


def test_the_documents_sizes() -> None:
    (row,) = kv_rows(load_model("llama-7b"), "fp16", (2048,))
    assert (row.bytes, row.provenance) == (1_073_741_824, "derived")
    sizes = [row.bytes for row in kv_rows(load_model("llama-13b"), "fp16", (512, 1024, 2048, 4096))]
    assert sizes == [400 * MIB, 800 * MIB, 1600 * MIB, 3200 * MIB]


def alloc(at: float, request: int, blocks: int) -> Event:
    return event("kv_alloc", at, request, blocks=blocks, bytes=blocks * 1000)


def test_the_longest_request_by_what_it_held() -> None:
    """Blocks of 16: request 1 grows to 16, 32, …, 96 tokens; request 0 stays at 32."""
    growth = tuple(alloc(i, 1, 1) for i in range(6))
    capture = Capture(subject=Subject(block_size=16), events=(alloc(0, 0, 2), *growth))
    rows = allocated_rows(capture)
    # Four of the six points: the first, the last, and two between.
    assert [(r.seq_len, r.bytes) for r in rows] == [(16, 1000), (32, 2000), (64, 4000), (96, 6000)]
    assert {r.provenance for r in rows} == {"measured"}


def test_after_a_free_it_grows_from_nothing() -> None:
    events = (alloc(0, 0, 2), event("kv_free", 1, 0, blocks=2, bytes=2000), alloc(2, 0, 1))
    rows = allocated_rows(Capture(subject=Subject(block_size=16), events=events))
    assert [(r.seq_len, r.bytes) for r in rows] == [(16, 1000), (32, 2000)]


@pytest.mark.parametrize("block_size", [None, 16])
def test_nothing_recorded_gives_no_rows(block_size: int | None) -> None:
    events = () if block_size else (alloc(0, 0, 2),)
    assert allocated_rows(Capture(subject=Subject(block_size=block_size), events=events)) == ()


def test_the_four_stages() -> None:
    events = (
        event("kv_init", 0, 0, tokens=10, bytes=100),
        event("kv_append", 1, 0, tokens=1, bytes=10),
        event("kv_append", 2, 0, tokens=1, bytes=10),
        event("kv_read", 2, None, tokens=11, bytes=110),
        event("kv_free", 3, 0, blocks=1, bytes=160),
        event("preempt", 3, 0, tokens=5),
    )
    filled = (
        LifeStage("initialised", 1, 10, 100),
        LifeStage("appended", 2, 2, 20),
        LifeStage("read", 1, 11, 110),
    )
    blocks_of_16 = Capture(subject=Subject(block_size=16), events=events)
    assert life_stages(blocks_of_16) == (*filled, LifeStage("freed", 1, 16, 160))
    blocks_unknown = Capture(events=events)
    assert life_stages(blocks_unknown) == (*filled, LifeStage("freed", 1, None, 160))
    assert life_stages(Capture()) == ()


def test_a_window_ends_the_growth() -> None:
    rows = kv_rows(load_model("mistral-7b-v0.1"), "bf16", (2048, 4096, 8192))
    # 2 x 32 layers x 8 heads x 128 x 2 bytes: 128 KiB a token.
    assert [row.bytes for row in rows] == [256 * MIB, 512 * MIB, 512 * MIB]
    assert rows[0].source.endswith("bytes · min(tokens, 4096)")


def test_blocks_given_back_on_the_way_do_not_shorten_a_request() -> None:
    """Blocks of 16: three, one given back, one more, one given back, one more, all freed."""
    back = tuple(event("kv_free", at, 0, blocks=1, bytes=1000) for at in (1, 3))
    last = event("kv_free", 5, 0, blocks=3, bytes=3000)
    events = (
        alloc(0, 0, 3),
        back[0],
        alloc(2, 0, 1),
        back[1],
        alloc(4, 0, 1),
        last,
        alloc(6, 0, 1),
    )
    rows = allocated_rows(Capture(subject=Subject(block_size=16), events=events))
    held = [(16, 1000), (48, 3000), (64, 3000), (80, 3000)]
    assert [(r.seq_len, r.bytes) for r in rows] == held
