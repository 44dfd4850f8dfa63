"""The sliding window of a config.json: in all layers, in some, in none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stallscope.errors import InputError
from stallscope.profiler.checked_json import Fields
from stallscope.profiler.hf_config import model_from_config
from stallscope.profiler.models import load_model
from stallscope.profiler.spec import ModelSpec

BASE: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 160,
    "num_hidden_layers": 3,
    "num_attention_heads": 8,
    "vocab_size": 500,
    "max_position_embeddings": 32768,
}
SLIDING, FULL = "sliding_attention", "full_attention"


def parse(**changes: Any) -> ModelSpec:
    return model_from_config(Fields("x.json", {**BASE, **changes}), "x")


@pytest.mark.parametrize(
    ("changes", "window"),
    [
        ({"model_type": "mistral", "sliding_window": 4096}, 4096),
        ({"model_type": "mistral", "sliding_window": None}, None),
        ({"model_type": "mistral"}, 4096),  # as transformers takes a field that is not there
        (
            {"model_type": "mistral", "sliding_window": 4096, "use_sliding_window": False},
            None,
        ),
        ({"model_type": "mistral", "sliding_window": 32768}, None),  # no context gets past it
        ({"model_type": "mistral", "sliding_window": 32767}, 32767),
        ({"model_type": "qwen2", "sliding_window": 4096}, None),
        ({"model_type": "qwen2", "sliding_window": 4096, "use_sliding_window": False}, None),
        # Layers from max_window_layers (else from 28) upwards have the window.
        (
            {"sliding_window": 64, "use_sliding_window": True, "model_type": "qwen2"},
            None,
        ),
        (
            {
                "sliding_window": 64,
                "use_sliding_window": True,
                "model_type": "qwen3",
                "max_window_layers": 0,
            },
            64,
        ),
        (
            {
                "sliding_window": 64,
                "use_sliding_window": True,
                "model_type": "qwen3",
                "max_window_layers": 3,
            },
            None,
        ),
        ({"sliding_window": 64, "layer_types": [SLIDING] * 3}, 64),
        ({"sliding_window": 64, "layer_types": [FULL] * 3}, None),
        ({"sliding_window": None, "layer_types": [FULL] * 3}, None),
    ],
)
def test_window_of_all_layers(changes: dict[str, Any], window: int | None) -> None:
    spec = parse(**changes)
    assert (spec.sliding_window, spec.warnings) == (window, ())


def test_llama_has_no_window_and_that_is_said() -> None:
    spec = parse(sliding_window=4096)
    assert spec.sliding_window is None
    assert spec.warnings == (
        "sliding_window 4096 is ignored: a llama's tokens attend to all before them",
    )


@pytest.mark.parametrize(
    ("changes", "layers"),
    [
        ({"layer_types": [SLIDING, FULL, FULL]}, 1),
        ({"model_type": "qwen3", "use_sliding_window": True, "max_window_layers": 1}, 2),
    ],
)
def test_layers_of_both_kinds_are_counted_and_not_run(changes: dict[str, Any], layers: int) -> None:
    spec = parse(sliding_window=4096, **changes)
    assert (spec.sliding_window, spec.local_layers, spec.local_window) == (None, layers, 4096)
    assert spec.not_runnable == "a sliding window in only some of the layers"
    # A window that no context gets past makes no difference between layers.
    assert parse(sliding_window=32768, **changes).local_layers == 0


@pytest.mark.parametrize(
    ("family", "full"),
    # Of 13 layers: every second of gemma-2 and gpt-oss, every sixth of gemma-3 has none.
    [("gemma2", 6), ("gpt_oss", 6), ("gemma3_text", 2)],
)
def test_families_whose_layers_alternate(family: str, full: int) -> None:
    spec = parse(model_type=family, num_hidden_layers=13, sliding_window=128)
    assert (spec.local_layers, spec.local_window) == (13 - full, 128)


def test_a_window_that_is_no_number_is_refused() -> None:
    with pytest.raises(InputError, match="sliding_window must be a positive whole number"):
        parse(model_type="mistral", sliding_window="4096")
    with pytest.raises(InputError, match="max_window_layers must be a whole number"):
        parse(
            model_type="qwen2", sliding_window=8, use_sliding_window=True, max_window_layers="all"
        )


@pytest.mark.parametrize(
    ("family", "fields"),
    [
        ("Mistral", {"sliding_window": 64}),
        ("Mistral", {"sliding_window": None}),
        ("Qwen2", {"sliding_window": 64, "use_sliding_window": True, "max_window_layers": 0}),
        ("Qwen2", {"sliding_window": 64, "use_sliding_window": False}),
        ("Qwen3", {"sliding_window": 64, "use_sliding_window": True, "max_window_layers": 0}),
        ("Qwen3", {}),
    ],
)
def test_what_transformers_saves_is_read_as_it_runs_it(
    family: str, fields: dict[str, Any], tmp_path: Path
) -> None:
    import transformers

    theirs = getattr(transformers, f"{family}Config")(
        hidden_size=64,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        **fields,
    )
    theirs.save_pretrained(tmp_path)
    assert load_model(str(tmp_path)).sliding_window == theirs.sliding_window
