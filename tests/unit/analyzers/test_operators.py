"""A step's FLOPs and bytes: against torch's own counter and tensors on a real transformers model,
and the document's intensities by hand."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import pytest
from step_rows import TINY

from stallscope.analyzers.cost.arithmetic import BLOCK_LINEARS
from stallscope.analyzers.cost.operators import (
    Operator,
    StepShape,
    decode_shape,
    prefill_shape,
    step_operators,
)
from stallscope.profiler.models import load_model
from stallscope.profiler.spec import ModelSpec

if TYPE_CHECKING:
    import transformers


def operators(
    spec: ModelSpec, shape: StepShape, dtype: str = "fp16", kv_dtype: str = "fp16"
) -> dict[str, Operator]:
    return {o.name: o for o in step_operators(spec, shape, dtype=dtype, kv_dtype=kv_dtype)}


def test_intensities_of_the_document() -> None:
    llama = load_model("llama-7b")
    q = operators(llama, decode_shape(batch=1, context=640))["q_proj"]
    # 2 x 4096^2 FLOPs over 2 x 4096^2 weight bytes and 2 x 2 x 4096 of activations.
    assert q.intensity == pytest.approx(33_554_432 / (33_554_432 + 16_384))
    assert round(q.intensity, 2) == 1.00
    q = operators(llama, prefill_shape(512))["q_proj"]
    # 512 times the FLOPs and activations: 17,179,869,184 / (33,554,432 + 8,388,608).
    assert q.intensity == pytest.approx(409.6)


def test_order_and_instances_of_a_step() -> None:
    found = step_operators(TINY, decode_shape(2, 5), dtype="fp16", kv_dtype="fp16")
    assert [(o.name, o.instances, o.rows) for o in found] == [
        ("q_proj", 3, 2),
        ("k_proj", 3, 2),
        ("v_proj", 3, 2),
        ("attention", 3, 2),
        ("o_proj", 3, 2),
        ("gate_proj", 3, 2),
        ("up_proj", 3, 2),
        ("down_proj", 3, 2),
        ("lm_head", 1, 2),
    ]


def test_no_head_where_nothing_is_sampled() -> None:
    assert "lm_head" not in operators(TINY, StepShape(8, 0, 8, 36))


def test_shapes_by_hand() -> None:
    # Two requests, each attending to five keys.
    assert decode_shape(2, 5) == StepShape(2, 2, kv_read_tokens=10, attention_pairs=10)
    # Three new tokens over four cached: they attend to 5, 6 and 7 keys.
    assert prefill_shape(3, cached=4) == StepShape(3, 1, kv_read_tokens=7, attention_pairs=18)
    assert prefill_shape(3, requests=2) == StepShape(6, 2, kv_read_tokens=6, attention_pairs=12)
    # A prefill in two chunks has the pairs of one in one piece.
    first, second = prefill_shape(5), prefill_shape(7, cached=5)
    assert first.attention_pairs + second.attention_pairs == prefill_shape(12).attention_pairs


def test_attention_by_hand() -> None:
    # 4 heads of 16 with 2 KV heads, one request over ten keys: scores 2 x 64 x 10 FLOPs, weighted
    # sum the same; K and V 2 x 32 x 10 elements; q in and the result out 2 x 64 elements.
    attention = operators(TINY, decode_shape(1, 10), "int4", "fp8")["attention"]
    assert attention.flops == 2560
    assert attention.kv_bytes == 640  # fp8
    assert attention.activation_bytes == 256  # int4 weights, 16-bit activations
    assert attention.weight_bytes == 0


@pytest.fixture(scope="module")
def llama() -> transformers.LlamaForCausalLM:
    """TINY as transformers builds it; eager attention is matrix products that torch counts."""
    import transformers

    config = transformers.LlamaConfig(
        hidden_size=TINY.hidden_size,
        intermediate_size=TINY.intermediate_size,
        num_hidden_layers=TINY.num_layers,
        num_attention_heads=TINY.num_heads,
        num_key_value_heads=TINY.num_kv_heads,
        head_dim=TINY.head_dim,
        vocab_size=TINY.vocab_size,
        max_position_embeddings=TINY.max_position,
        attn_implementation="eager",
    )
    return transformers.LlamaForCausalLM(config).eval()


@pytest.fixture
def cache() -> transformers.DynamicCache:
    import transformers

    return transformers.DynamicCache()


def forward(
    llama: transformers.LlamaForCausalLM, cache: transformers.Cache, requests: int, tokens: int
) -> int:
    """Run new tokens over a cache, as generation does; return the FLOPs that torch counts."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    parameters = inspect.signature(llama.forward).parameters
    name = "cache" if "cache" in parameters else "past_key_values"
    ids = torch.zeros(requests, tokens, dtype=torch.long)
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        llama(ids, use_cache=True, logits_to_keep=1, **{name: cache})
    return counter.get_total_flops()


def total_flops(shape: StepShape) -> float:
    return sum(o.instances * o.flops for o in operators(TINY, shape).values())


@pytest.mark.parametrize("requests", [1, 3])
def test_flops_are_those_torch_counts(
    llama: transformers.LlamaForCausalLM, cache: transformers.Cache, requests: int
) -> None:
    prompt = cached = 24
    counted = forward(llama, cache, requests, prompt)
    # Eager attention multiplies every query with every key and masks afterwards: 24 x 24 pairs.
    pairs = requests * prompt * prompt
    full = StepShape(requests * prompt, requests, requests * prompt, pairs)
    assert counted == total_flops(full)
    # Ours counts the causal half, diagonal included: 24 x 23 / 2 pairs fewer per request, each
    # two multiply-adds wide over 64 elements in each of 3 layers.
    masked = requests * 276 * 4 * 64 * 3
    causal = total_flops(prefill_shape(prompt, requests=requests))
    assert counted == causal + masked

    counted = forward(llama, cache, requests, 1)
    # A decode step attends to everything there is: nothing is masked.
    assert counted == total_flops(decode_shape(requests, cached + 1))


def test_flops_of_a_chunk_over_a_cache(
    llama: transformers.LlamaForCausalLM, cache: transformers.Cache
) -> None:
    forward(llama, cache, 1, 10)
    counted = forward(llama, cache, 1, 6)
    full = StepShape(6, 1, 16, attention_pairs=6 * 16)
    assert counted == total_flops(full)
    # 6 x 10 + 6 x 7 / 2 = 81 pairs of 96 are causal.
    assert prefill_shape(6, cached=10).attention_pairs == 81


def test_weight_bytes_are_those_of_the_tensors(llama: transformers.LlamaForCausalLM) -> None:
    found = operators(TINY, decode_shape(1, 8), "fp32", "fp32")
    layer = dict(llama.model.layers[1].named_parameters())
    theirs = {n.split(".")[-2]: p.nbytes for n, p in layer.items() if "proj" in n}
    theirs["lm_head"] = llama.lm_head.weight.nbytes
    assert {n: o.weight_bytes for n, o in found.items() if o.weight_bytes} == theirs


def test_activation_bytes_are_those_of_the_tensors(
    llama: transformers.LlamaForCausalLM, cache: transformers.Cache
) -> None:
    seen: dict[str, int] = {}

    def record(name: str) -> Any:
        return lambda module, args, out: seen.__setitem__(name, args[0].nbytes + out.nbytes)

    modules = dict(llama.model.layers[1].named_modules())
    hooks = [
        module.register_forward_hook(record(name.split(".")[-1]))
        for name, module in modules.items()
        if name.split(".")[-1] in BLOCK_LINEARS
    ]
    forward(llama, cache, 1, 9)
    for hook in hooks:
        hook.remove()
    found = operators(TINY, prefill_shape(9), "fp32", "fp32")
    assert seen == {name: found[name].activation_bytes for name in BLOCK_LINEARS}


def test_kv_bytes_read_are_those_of_the_cache(
    llama: transformers.LlamaForCausalLM, cache: transformers.DynamicCache
) -> None:
    forward(llama, cache, 2, 15)
    forward(llama, cache, 2, 1)
    held = sum(layer.keys.nbytes + layer.values.nbytes for layer in cache.layers)
    attention = operators(TINY, decode_shape(2, 16), "fp32", "fp32")["attention"]
    assert attention.instances * attention.kv_bytes == held == 2 * 16 * 2 * 3 * 2 * 16 * 4
