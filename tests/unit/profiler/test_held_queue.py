"""A cap that no source states, seen where it lets nobody in."""

from __future__ import annotations

import pytest

from stallscope.profiler.capture import EngineSample
from stallscope.profiler.held_queue import running_while_held
from stallscope.profiler.sequence_cap import seen_cap

S = 1_000_000_000
Series = tuple[float, ...] | float
# A second in which ten run, five wait, and every one of the ten gets five tokens.
HELD: dict[str, Series] = {
    "running": 10,
    "waiting": 5,
    "kv_used_fraction": 0.94,
    "input_tokens_total": 700,
    "output_tokens_total": (0, 50),
}


def samples(count: int = 2, **series: Series) -> list[EngineSample]:
    return [
        EngineSample(i * S, "0", name, v[i] if isinstance(v, tuple) else v)
        for name, v in {**HELD, **series}.items()
        for i in range(count)
    ]


def test_nobody_was_let_in_though_there_was_room() -> None:
    assert running_while_held(samples()) == [10]
    assert running_while_held([]) == []


@pytest.mark.parametrize(
    "changed",
    [
        {"output_tokens_total": (0, 49)},  # fewer than five steps
        {"input_tokens_total": (700, 701)},  # a prompt was taken in
        {"kv_used_fraction": (0.94, 0.95)},
        {"waiting": (5, 0)},
        {"running": (10, 9)},  # one ended, and its slot may be free for a step
        {"running": 0, "output_tokens_total": (0, 0)},  # that is a standstill
    ],
)
def test_something_else_may_have_held_them(changed: dict[str, Series]) -> None:
    assert running_while_held(samples(**changed)) == []


@pytest.mark.parametrize("name", sorted(HELD))
def test_what_is_not_sampled_tells_nothing(name: str) -> None:
    assert running_while_held([s for s in samples() if s.name != name]) == []


def test_engines_are_held_each_by_itself() -> None:
    other = [s._replace(engine="1") for s in samples(running=(10, 9))]
    assert running_while_held([*samples(), *other]) == [10]


def turnover(held: int) -> list[EngineSample]:
    """Ten run for some seconds; then all end but one, and one by one others come in."""
    ramp = tuple(range(1, 10))
    count = held + 1 + len(ramp)
    return samples(
        count,
        running=(10,) * (held + 1) + ramp,
        output_tokens_total=tuple(60 * i for i in range(count)),
        input_tokens_total=(700,) * (held + 1) + tuple(700 + 30 * r for r in ramp),
    )


def test_the_cap_is_where_nobody_was_let_in() -> None:
    """Ten in 5 of 14 samples is no plateau, but in four stretches nobody was let in at ten."""
    found = seen_cap(turnover(4), "sglang", source="page", moment="page")
    assert found is not None
    assert found.running == 10
    assert found.sentence == (
        "The page states no cap on running requests; 10 ran in 4 of 4 stretches between pages in "
        "which requests waited, tokens were made, KV had room and no prompt was let in."
    )
    assert seen_cap(turnover(3), "sglang") is None


def test_a_number_below_the_highest_is_no_cap() -> None:
    """Eleven ran once: whatever kept the others out at ten, it was no cap of ten."""
    higher = [
        s._replace(value=11) if s.name == "running" and s.t_ns == 13 * S else s for s in turnover(4)
    ]
    assert seen_cap(higher, "sglang") is None


def plateau(count: int, **series: Series) -> list[EngineSample]:
    return samples(count, running=40, waiting=9, kv_used_fraction=0.3, **series)


def test_readings_on_which_no_token_moved_are_one_reading() -> None:
    """Of nine pages a second apart two differ in tokens: that is not seen four times."""
    frozen = plateau(9, output_tokens_total=(0,) * 4 + (50,) * 5)
    assert seen_cap(frozen, "sglang", source="page", moment="page") is None
    # A last one with the gauges of that before may be a log's repeated line: four of five count.
    moving = plateau(5, output_tokens_total=(0, 50, 100, 150, 200))
    found = seen_cap(moving, "sglang", source="page", moment="page")
    assert found is not None
    assert found.sentence.endswith("running stood at 40 in 4 of 4 pages with a queue.")


def test_a_frontend_that_works_on_is_no_other_reading() -> None:
    frozen = plateau(9, output_tokens_total=0, frontend_cpu_s_total=tuple(range(9)))
    assert seen_cap(frozen, "sglang") is None
