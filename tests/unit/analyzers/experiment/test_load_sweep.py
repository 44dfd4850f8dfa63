"""The knee of a table of loads; gains by hand."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from stallscope.analyzers.experiment.compare import compare
from stallscope.analyzers.experiment.result import Comparison, Figure, Run, Value

Row = tuple[float, float, float | None]
CHAT: tuple[Row, ...] = (
    (1, 98, 0.035),
    (8, 720, 0.06),
    (32, 2210, 0.15),
    (64, 2750, 0.9),
    (128, 2790, 9.1),
)


def runs(
    rows: Sequence[Row], name: str = "concurrency", **more: Sequence[Value]
) -> tuple[Run, ...]:
    found = []
    for i, (load, rate, ttft) in enumerate(rows):
        figures = {"output_tokens_per_s": Figure(rate, "tokens/s", "measured", "reported")}
        if ttft is not None:
            figures["mean_ttft_s"] = Figure(ttft, "s", "measured", "reported")
        settings: dict[str, Value] = {name: float(load)}
        found.append(Run(str(i), settings | {k: v[i] for k, v in more.items()}, figures))
    return tuple(found)


def judged(found: tuple[Run, ...], vary: str | None = None) -> Comparison:
    return compare(found, vary=vary, metric=None, version="0")


@pytest.mark.parametrize("name", ["concurrency", "max_concurrency", "users"])
def test_a_table_of_loads_has_a_knee(name: str) -> None:
    """2,750 ÷ 2,210 is 24 % more for 100 % more clients: a gain of 0.24, after 0.69 and 0.91."""
    found = judged(runs(CHAT, name))
    assert found.conclusion.bottleneck == "undetermined"
    assert found.conclusion.sentence.startswith(
        "The knee is at concurrency 32 with 2,210 output tokens/s: 100 % more load after it buys "
        "+24 % tokens/s, and TTFT goes from 0.15 to 0.9 s."
    )
    (finding,) = found.findings
    assert finding.says.endswith(
        "0.91 from 1 to 8, 0.69 from 8 to 32, 0.24 from 32 to 64, 0.01 from 64 to 128"
    )


@pytest.mark.parametrize(("rate", "knee"), [(310, False), (290, True)])
def test_the_knee_lies_where_twice_the_load_buys_half(rate: float, knee: bool) -> None:
    rows: list[Row] = [(1, 100, None), (2, 200, None), (4, rate, None)]
    assert judged(runs(rows)).conclusion.sentence.startswith("The knee is at") is knee


def test_two_loads_tell_no_knee() -> None:
    rows: list[Row] = [(1, 100, None), (2, 110, None)]
    assert "Fewer than 3 loads" in judged(runs(rows)).conclusion.sentence


def test_prompts_sent_may_grow_with_the_load_and_other_settings_may_not() -> None:
    sent = [10.0 * load for load, _, _ in CHAT]
    assert "knee is at concurrency 32" in judged(runs(CHAT, num_prompts=sent)).conclusion.sentence
    other = judged(runs(CHAT, num_prompts=sent, model=list("abcde")), "concurrency")
    assert "knee" not in other.conclusion.sentence


def test_without_tokens_per_second_there_is_no_knee() -> None:
    found = tuple(
        Run(str(n), {"concurrency": n}, {"tpot_s": Figure(n, "s", "measured", "reported")})
        for n in (1.0, 2.0, 4.0)
    )
    assert "not known here" in judged(found).conclusion.sentence


def test_each_of_several_groups_has_its_knee() -> None:
    """170 ÷ 150 for twice the clients is a gain of 0.13; with two devices 380 ÷ 200 is 0.9."""
    one: list[Row] = [(1, 100, None), (2, 150, None), (4, 170, None)]
    two: list[Row] = [(1, 110, None), (2, 200, None), (4, 380, None)]
    found = judged(runs(one + two, tp=[1.0, 1.0, 1.0, 2.0, 2.0, 2.0]), "concurrency")
    assert "At tp 1: The knee is at concurrency 2 with 150" in found.conclusion.sentence
    assert "At tp 2: No knee up to concurrency 4" in found.conclusion.sentence
    assert [f.group for f in found.findings] == ["tp 1", "tp 2"]
