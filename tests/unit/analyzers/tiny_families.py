"""The tiny model with what the families of models have instead of plain attention and MLPs."""

from __future__ import annotations

from dataclasses import replace

from step_rows import TINY

from stallscope.analyzers.cost.draft import draft_layer
from stallscope.profiler.model_parts import Experts, Latent, LinearAttention, StateSpace
from stallscope.profiler.spec import ModelSpec

MIXED = replace(TINY, mixture=Experts(8, 2, 96, 2, shared_size=32))
NEAR = replace(TINY, local_layers=2, local_window=4)
LATENT = replace(TINY, latent=Latent(32, 8, 16, 16, 24))
LINEAR = replace(TINY, linear_attention=LinearAttention(2, 2, 4, 8, 8, 4))
# Of three layers one attends and two are Mamba-2: 4 heads, 128 channels that keep 8 elements each,
# two groups of maps, a convolution of 4; then the first Mamba; then both in each layer.
SECOND = replace(TINY, attention_in=1, state_space=StateSpace(2, 128, 8, 4, heads=4, groups=2))
FIRST = replace(TINY, attention_in=1, state_space=StateSpace(2, 128, 8, 4, step_rank=4))
BESIDE = replace(TINY, attention_in=3, state_space=StateSpace(3, 128, 8, 4, heads=4))
# Three blocks, one of each kind; ungated, with experts of 32 behind a projection.
BLOCKS = replace(
    TINY,
    attention_in=1,
    mlp_in=1,
    mlp_gated=False,
    layer_norms=1,
    mixture=Experts(8, 2, 96, 1, shared_size=48, width=32),
    state_space=StateSpace(1, 128, 8, 4, heads=4),
)


def _drafts(spec: ModelSpec) -> ModelSpec:
    found = draft_layer(replace(spec, draft_layers=1))
    assert found is not None
    return found


FAMILIES = {
    "experts": MIXED,
    "windows in some layers": NEAR,
    "latent": LATENT,
    "linear attention": LINEAR,
    "the first Mamba": FIRST,
    "the second Mamba": SECOND,
    "Mamba beside attention": BESIDE,
    "blocks of one kind": BLOCKS,
    "a draft layer": _drafts(TINY),
    "a latent draft layer with experts": _drafts(replace(LATENT, mixture=MIXED.mixture)),
}
