"""What record_forwards is given wrongly is said before a hook is set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from stallscope.profiler.recorder import Recorder
from stallscope.runner.record_forwards import record_forwards


@pytest.mark.parametrize(
    ("model", "kind"), [(object(), "object"), (None, "NoneType"), (torch.nn.Linear(1, 1), "Linear")]
)
def test_what_is_no_model_of_transformers(model: Any, kind: str, tmp_path: Path) -> None:
    with (
        Recorder(tmp_path / "a.sqlite", sample_hz=0) as recorder,
        pytest.raises(TypeError, match=f"takes a model of Hugging Face .*, not a {kind}$"),
        record_forwards(model, recorder),
    ):
        pass


def test_what_is_no_recorder() -> None:
    class Model(torch.nn.Linear):
        class config:
            @staticmethod
            def get_text_config() -> object:
                return object()

    recorder: Any = "run.sqlite"
    with (
        pytest.raises(TypeError, match="takes a Recorder after the model, not a str$"),
        record_forwards(Model(1, 1), recorder),
    ):
        pass
