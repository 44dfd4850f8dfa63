"""What more running requests would bring at the most, and when that cannot be told."""

from __future__ import annotations

import math

import pytest
from capture_builders import MS, gauges

from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.load.more_running import Growth, observe_growth
from stallscope.analyzers.load.span import Span
from stallscope.profiler.capture import Capture, EngineSample
from stallscope.profiler.spec import Subject

S = 1000 * MS


def stairs(
    *levels: tuple[int, float], held: int = 4, waiting: int = 0, kv: float = 0.001, **change: float
) -> tuple[EngineSample, ...]:
    """Each (running, tokens a second) for so many intervals of a second, one after the other."""
    running = [r for r, _ in levels for _ in range(held)] + [levels[-1][0]]
    made, taken = [0.0], [0.0]
    for _, rate in levels:
        for _ in range(held):
            made.append(made[-1] + rate)
            taken.append(taken[-1] + change.get("prompts", 0.5) * rate)
    return gauges(
        1000.0,
        running=tuple(running),
        waiting=tuple(waiting if r == levels[-1][0] else 0 for r in running),
        kv_used_fraction=tuple(kv * r for r in running),
        output_tokens_total=tuple(made),
        input_tokens_total=tuple(taken),
    )


def growth(samples: tuple[EngineSample, ...]) -> Growth | None:
    return observe_growth(samples, Span(0, 1000 * S))


def test_the_exponent_between_two_numbers_that_were_held() -> None:
    """10 make 200 a second and 20 make 300; each may be 2 % off: 306 ÷ 196 for twice as many."""
    found = growth(stairs((10, 200.0), (20, 300.0)))
    assert found is not None
    assert (found.low, found.high, found.rate_low, found.rate_high) == (10, 20, 200, 300)
    assert found.exponent == pytest.approx(math.log(306 / 196) / math.log(2))
    # Twice as many again bring no more than the same again; as many bring nothing.
    assert found.most(40) == pytest.approx(306 / 196 - 1)
    assert found.most(20) == found.most(10) == 0.0


def test_no_step_that_grows_with_its_batch_is_above_the_bound() -> None:
    """A step of a + b · running seconds, for any a and b: the bound is never passed."""
    for base, each in ((0.02, 0.001), (0.001, 0.002), (0.05, 0.0001), (0.0, 0.001)):
        rates = {r: r / (base + each * r) for r in (16, 32, 64, 200)}
        found = growth(stairs((16, rates[16]), (32, rates[32]), (64, rates[64])))
        assert found is not None
        for more in (64, 200):
            assert rates[more] / rates[64] - 1.0 <= found.most(more)


def test_fewer_tokens_with_more_running_promise_nothing() -> None:
    found = growth(stairs((10, 300.0), (20, 250.0)))
    assert found is not None
    assert (found.exponent, found.most(400)) == (0.0, 0.0)


def test_rates_that_swing_count_against_us() -> None:
    """240 and 360 by turns: 300 ± 69, of which two standard errors of four are 69 ÷ 300 = 23 %."""
    even = growth(stairs((10, 200.0), (20, 300.0)))
    swings = growth(
        tuple(
            s._replace(value=s.value + (60 if s.t_ns // S % 2 else 0))
            if s.name == "output_tokens_total" and s.t_ns > 4 * S
            else s
            for s in stairs((10, 200.0), (20, 300.0))
        )
    )
    assert even is not None
    assert swings is not None
    assert swings.exponent > even.exponent + 0.2


@pytest.mark.parametrize(
    "samples",
    [
        stairs((20, 300.0)),  # one number
        stairs((14, 200.0), (20, 300.0)),  # too near
        stairs((10, 200.0), (20, 300.0), held=2),  # passed through
        stairs((10, 40.0), (20, 50.0)),  # sixteen steps, and ten
        (),
    ],
)
def test_too_little_spread_tells_nothing(samples: tuple[EngineSample, ...]) -> None:
    assert growth(samples) is None


def test_a_lower_number_with_far_fewer_prompts_did_other_work() -> None:
    rows = stairs((10, 200.0), (20, 300.0))
    few = tuple(
        s._replace(value=min(s.value, 0.0) if s.t_ns <= 4 * S else s.value - 400.0)
        if s.name == "input_tokens_total"
        else s
        for s in rows
    )
    assert growth(few) is None
    other = tuple(s._replace(engine="1") for s in rows)
    assert growth(rows + other) is None  # two engines: whose tokens they were is told, not summed


CAPPED = Subject(max_num_seqs=20)


def at_the_cap(*levels: tuple[int, float], **facts: float) -> Capture:
    waiting = int(facts.pop("waiting", 20))
    return Capture(subject=CAPPED, engine_samples=stairs(*levels, held=6, waiting=waiting, **facts))


def test_a_small_gain_is_said_in_the_headline() -> None:
    """300 for 200 more … 10 make 290, 20 make 300: (306 ÷ 284.2) - 1 = 7.7 % for twice as many."""
    found = diagnose(at_the_cap((10, 290.0), (20, 300.0)))
    assert (found.verdict.bottleneck, found.verdict.limit) == ("scheduling", "seqs")
    assert ", but raising the cap buys at most 8 %: the step itself is the limit." in (
        found.verdict.sentence
    )
    (gain,) = [r.gain for r in found.remedies if "sequence cap" in r.action]
    assert gain is not None
    assert gain.before == 300.0
    assert gain.after * (1 + gain.error) == pytest.approx(300 * 306 / 284.2)
    assert gain.after * (1 - gain.error) == pytest.approx(300.0)
    (exponent,) = [m for m in found.measures if m.name == "growth_exponent"]
    assert (exponent.provenance, exponent.side) == ("bound", "upper")
    assert exponent.value == pytest.approx(math.log(306 / 284.2) / math.log(2))
    assert "raising the sequence cap would buy" not in str(found.not_observable)


def test_a_larger_gain_is_a_bound_too() -> None:
    found = diagnose(at_the_cap((10, 200.0), (20, 300.0))).verdict
    assert "; raising the cap would buy at most 56 % tokens/s." in found.sentence
    wide = diagnose(at_the_cap((10, 200.0), (20, 390.0), waiting=60)).verdict
    assert "; what raising the cap would buy cannot be told." in wide.sentence


def test_the_pool_may_hold_no_more() -> None:
    """20 fill 90 % of it: 22.2 fit, and so many could bring 2 ÷ 9 of an octave, 1.2 %."""
    found = diagnose(at_the_cap((10, 290.0), (20, 300.0), kv=0.045)).verdict
    assert "raising the cap buys at most 1 %: capacity binds right behind it" in found.sentence
    assert found.next_limit == "capacity"


def test_with_one_number_the_gain_is_not_observable() -> None:
    found = diagnose(at_the_cap((20, 300.0)))
    assert found.verdict.sentence.endswith("of their time).")
    (missing,) = [n for n in found.not_observable if n.what.startswith("what raising")]
    assert "did not stand for a few samples at two numbers" in missing.reason
    # Nor where it stood at two numbers far below the cap.
    low = Capture(subject=Subject(max_num_seqs=64), engine_samples=stairs((10, 200.0), (20, 300.0)))
    assert not [m for m in diagnose(low).measures if m.name == "growth_exponent"]


def test_of_several_engines_it_is_not_observable_either() -> None:
    one = at_the_cap((10, 200.0), (20, 300.0))
    other = tuple(s._replace(engine="1") for s in one.engine_samples)
    both = Capture(subject=CAPPED, engine_samples=one.engine_samples + other)
    (missing,) = [n for n in diagnose(both).not_observable if n.what.startswith("what raising")]
    assert missing.reason == "the samples are of 2 engines, which share the load unevenly"
