"""The layers of a model that draft its next tokens (multi-token prediction)."""

from __future__ import annotations

from dataclasses import replace

from stallscope.profiler.spec import ModelSpec


def draft_layer(spec: ModelSpec) -> ModelSpec | None:
    """Return one of a model's draft layers as a model of its own; None where it has none.

    A whole layer with attention over all tokens, with experts where the model has them. Its first
    product joins a token's embedding with the model's hidden state, each normed; both tables are
    the model's own, and the head is read for each drafted token.
    """
    if not spec.draft_layers:
        return None
    mixture = spec.mixture
    return replace(
        spec,
        name=f"{spec.name}'s draft layer",
        num_layers=1,
        mixture=None if mixture is None else replace(mixture, layers=1),
        linear_attention=None,
        local_layers=0,
        local_window=None,
        draft_layers=0,
        joins_hidden=True,
        warnings=(),
    )
