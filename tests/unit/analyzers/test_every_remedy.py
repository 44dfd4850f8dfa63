"""All remedies: flags of every engine, what each costs, and no gain that no model made."""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_diagnose_random import random_capture
from test_remedies import COST, COSTS, SPEED, T, replay

from stallscope.analyzers import advice
from stallscope.analyzers.classes import CLASSES
from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.host_idle import GROUPS
from stallscope.analyzers.load.queue_limits import LIMIT_CLASS
from stallscope.analyzers.measures import measure
from stallscope.analyzers.result import Gain, Remedy
from stallscope.analyzers.whatif.engine_flags import ENGINES, LEVERS, POOL, SEQUENCES, at
from stallscope.analyzers.whatif.out_of_memory import remedies_after_refusal
from stallscope.analyzers.whatif.remedies import remedies_for, wont_help
from stallscope.analyzers.whatif.replay import Replay

__all__ = ["replay"]  # a fixture

FOLDER = Path(advice.__file__).parent
# Where a gain may be made: from a replayed schedule, a bound of the sampled step, fewer bytes read.
MODELS = {"whatif/replay.py", "whatif/sampled_gain.py", "whatif/fewer_bytes.py"}
# Words for a number that nobody computed: "30 %", "2 ×", "3 times", "x2".
PROMISE = re.compile(r"\d+(?:\.\d+)?\s*(?:%|×|x\b|times\b|-fold)|twice as fast|double the", re.I)


def sources() -> Iterator[tuple[str, ast.AST]]:
    for path in sorted(FOLDER.rglob("*.py")):
        yield str(path.relative_to(FOLDER)), ast.parse(path.read_text())


def calls(tree: ast.AST, name: str) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
            yield node


def gain_of(call: ast.Call) -> ast.expr:
    named = [k.value for k in call.keywords if k.arg == "gain"]
    return named[0] if named else call.args[2]


def is_from_a_model(gain: ast.expr) -> bool:
    """None, a model's own (`lifted.gain if lifted else None`), or a name, checked below."""
    if isinstance(gain, ast.IfExp):
        return is_from_a_model(gain.body) and is_from_a_model(gain.orelse)
    if isinstance(gain, ast.Constant):
        return gain.value is None
    return (isinstance(gain, ast.Attribute) and gain.attr == "gain") or isinstance(gain, ast.Name)


def test_gains_are_made_by_models_alone() -> None:
    assert {path for path, tree in sources() if list(calls(tree, "Gain"))} == MODELS


def test_every_remedy_takes_its_gain_from_a_model() -> None:
    found = [(path, call) for path, tree in sources() for call in calls(tree, "Remedy")]
    assert len(found) >= 50
    assert [(path, c.lineno) for path, c in found if not is_from_a_model(gain_of(c))] == []


def test_every_remedy_in_the_code_states_a_cost() -> None:
    found = [(path, call) for path, tree in sources() for call in calls(tree, "Remedy")]
    assert [(p, c.lineno) for p, c in found if "cost" not in {k.arg for k in c.keywords}] == []


def test_a_name_that_is_a_gain_was_given_by_a_model() -> None:
    made = ("fewer_weight_bytes", "fewer_kv_bytes")
    for path, tree in sources():
        names = {g.id for c in calls(tree, "Remedy") if isinstance(g := gain_of(c), ast.Name)}
        given = [n for n in ast.walk(tree) if isinstance(n, ast.Assign)]
        for assign in given:
            if isinstance(assign.targets[0], ast.Name) and assign.targets[0].id in names:
                told = ast.unparse(assign.value)
                assert told.startswith(made), f"{path}: {told}"


def test_the_check_finds_a_planted_figure() -> None:
    for text in ("Gain('m', 'u', 1.0, 2.0, 0.1)", "guess(3)", "0.3"):
        call = next(calls(ast.parse(f"Remedy('a', {{}}, {text}, 'c')"), "Remedy"))
        assert not is_from_a_model(gain_of(call))
    assert PROMISE.search("raises tokens/s by 30 %")
    assert PROMISE.search("makes it 2 × as fast")


def every_remedy(replay: Replay | None = None) -> Iterator[Remedy]:
    for stage in (None, "start", "weights", "kv", "kv_sizing", "graphs"):
        yield from remedies_after_refusal(stage)
    yield from remedies_after_refusal("warmup", "logits")
    names = {n for group in GROUPS.values() for n in group} | {"copies_to_host"}
    names |= {"copies_to_device", "copies_between_devices", "communication_exposed"}
    seen = [{}, *({"trace_window": 1.0, "gpu_busy": 0.3, n: 0.6} for n in sorted(names))]
    for values in seen:
        found = {n: measure(n, v, "measured", "a test") for n, v in values.items()}
        for bottleneck in CLASSES:
            for limit in (None, *LIMIT_CLASS):
                yield from remedies_for(
                    bottleneck,
                    limit=limit,
                    replay=replay,
                    costs=COSTS,
                    cost=COST,
                    tokens_per_s=SPEED,
                    t=T,
                    found=found,
                )


def test_every_remedy_tells_its_cost_and_how_to_check_it() -> None:
    found = list(every_remedy())
    assert len({r.action for r in found}) >= 30
    for remedy in found:
        assert remedy.cost, remedy.action
        assert remedy.check, remedy.action
        told = " ".join([remedy.action, remedy.check, remedy.cost, *remedy.flag.values()])
        assert not PROMISE.search(told), told


def test_every_lever_is_named_for_every_engine() -> None:
    for name, flags in LEVERS.items():
        assert set(ENGINES) <= set(flags), name
        assert all(flags.values())


def test_a_value_goes_where_the_flag_has_room_for_it() -> None:
    assert at(SEQUENCES, None) == dict(SEQUENCES)
    eight = at(SEQUENCES, 8)
    assert eight["vllm"] == "--max-num-seqs 8"
    assert eight["transformers"] == "ContinuousBatchingConfig(max_requests_per_batch=8)"
    assert POOL["transformers"] == "ContinuousBatchingConfig(max_memory_percent=…)"


@pytest.mark.parametrize(
    "bottleneck",
    ["capacity", "bandwidth", "scheduling", "compute", "host", "interconnect", "client", "device"],
)
def test_two_popular_fixes_are_ruled_out_for_each_class(bottleneck: str) -> None:
    assert len(wont_help(bottleneck)) >= 2


@pytest.mark.parametrize("seed", range(150))
def test_a_gain_needs_a_model_of_this_very_run(seed: int) -> None:
    """None without a cost model, or a queue that was sampled; and each has its error."""
    found = diagnose(random_capture(random.Random(seed)))
    gains: list[Gain] = [r.gain for r in found.remedies if r.gain is not None]
    has_model = any(p.budget for p in found.phases)
    is_sampled = any(m.name == "growth_exponent" for m in found.measures)
    assert not gains or has_model or is_sampled
    for gain in gains:
        assert gain.error > 0
        assert gain.before > 0
