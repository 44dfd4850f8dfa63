"""Models whose costs are modelled but that are not executed are refused before anything starts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stallscope.app import call

MIXTRAL = {
    "model_type": "mixtral",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 256,
    "max_position_embeddings": 512,
}


@pytest.mark.parametrize("engine", ["builtin", "transformers"])
def test_experts_are_planned_and_not_run(
    engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(MIXTRAL))
    assert call(["run", "--model", str(path), "--engine", engine]) == 1
    err = capsys.readouterr().err
    assert "mixture of experts is modelled, but not run" in err
    assert err.count("\n") == 1
    assert call(["plan", "--model", str(path), "--gpu", "l4"]) == 0
    assert "expert_up_proj" in capsys.readouterr().out
