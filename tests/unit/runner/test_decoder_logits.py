"""The decoder's logits equal transformers', from a saved checkpoint, in every way of running."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from torch.nn.attention import SDPBackend, sdpa_kernel

from stallscope.profiler.spec import ModelSpec, RopeScaling
from stallscope.runner.batch import Chunk
from stallscope.runner.decoder import Decoder, build_decoder
from stallscope.runner.kv_pool import KvPool
from stallscope.runner.linear import Kernel
from stallscope.runner.ragged import ragged
from stallscope.runner.weights import SafetensorsFolder

TOLERANCE = 1e-4
VOCAB = 97
CPU = torch.device("cpu")

GQA = ModelSpec("gqa", 64, 96, 2, 4, 2, 16, VOCAB, 256, rms_norm_eps=1e-6)
LLAMA3 = RopeScaling("llama3", 4.0, 1.0, 4.0, original_max_position=64)
SPECS = {
    "llama-gqa": GQA,
    "llama-mha-tied": replace(GQA, num_kv_heads=4, tied_embeddings=True),
    "llama-wide-heads": replace(GQA, num_heads=8),
    "llama-3-rope": replace(GQA, rope_theta=500.0, rope_scaling=LLAMA3),
    "llama-linear-rope": replace(GQA, rope_scaling=RopeScaling("linear", 2.0)),
    "qwen2-tied": replace(GQA, qkv_bias=True, tied_embeddings=True),
    "qwen2-mha": replace(GQA, qkv_bias=True, num_kv_heads=4),
    "qwen3": replace(GQA, qk_norm=True),
    "qwen3-tied-wide-heads": replace(GQA, qk_norm=True, head_dim=24, tied_embeddings=True),
    # Prompts below are up to 50 tokens, blocks 3 or 4: far past these windows, and across blocks.
    "mistral-window": replace(GQA, sliding_window=8),
    "mistral-window-odd": replace(GQA, sliding_window=13, num_kv_heads=4),
    "qwen2-window": replace(GQA, qkv_bias=True, sliding_window=2),
    "qwen3-window": replace(GQA, qk_norm=True, sliding_window=22),
}


@dataclass(frozen=True)
class Pair:
    """One model twice: transformers' and ours, read from what transformers saved."""

    theirs: Any
    ours: Decoder
    folder: Path

    def expected(self, tokens: list[int]) -> torch.Tensor:
        """Logits of every position in one uncached pass: [tokens, vocabulary]."""
        with torch.no_grad():
            logits: torch.Tensor = self.theirs(torch.tensor([tokens]), use_cache=False).logits
            return logits[0]

    def run(self, pool: KvPool, *chunks: Chunk) -> torch.Tensor:
        for chunk in chunks:
            pool.ensure(chunk.request, chunk.start + len(chunk.token_ids))
        logits = self.ours.forward(ragged(chunks, pool, CPU))
        for chunk in chunks:
            pool.slide(chunk.request, chunk.start + len(chunk.token_ids))
        return logits


def _family(name: str, kind: str) -> Any:
    return getattr(transformers, name.split("-")[0].capitalize() + kind)


def _config(name: str) -> Any:
    spec = SPECS[name]
    rope: dict[str, Any] = {"rope_type": "default", "rope_theta": spec.rope_theta}
    if spec.rope_scaling:
        rope |= {"rope_type": spec.rope_scaling.kind, "factor": spec.rope_scaling.factor}
    if spec.rope_scaling is LLAMA3:
        rope |= {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
        rope |= {"original_max_position_embeddings": 64}
    window: dict[str, Any] = {"sliding_window": spec.sliding_window}
    window |= {"use_sliding_window": spec.sliding_window is not None, "max_window_layers": 0}
    return _family(name, "Config")(
        **({} if "llama" in name else window),
        hidden_size=spec.hidden_size,
        intermediate_size=spec.intermediate_size,
        num_hidden_layers=spec.num_layers,
        num_attention_heads=spec.num_heads,
        num_key_value_heads=spec.num_kv_heads,
        head_dim=spec.head_dim,
        vocab_size=spec.vocab_size,
        max_position_embeddings=spec.max_position,
        tie_word_embeddings=spec.tied_embeddings,
        rms_norm_eps=spec.rms_norm_eps,
        initializer_range=0.2,
        rope_parameters=rope,
    )


@pytest.fixture(scope="module", params=SPECS)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    spec = SPECS[request.param]
    torch.manual_seed(7)
    theirs = _family(request.param, "ForCausalLM")(_config(request.param)).eval()
    for name, tensor in theirs.named_parameters():
        if "norm" in name or name.endswith("bias"):  # ones and zeros would hide a fault
            torch.nn.init.normal_(tensor, mean=float("norm" in name), std=0.3)
    folder = tmp_path_factory.mktemp(request.param)
    theirs.save_pretrained(folder, max_shard_size="40KB" if spec.qkv_bias else "1GB")
    return Pair(theirs, build_decoder(spec, folder=folder), folder)


@pytest.fixture
def pool(pair: Pair) -> KvPool:
    return KvPool(pair.ours.spec, 64, 4, "fp32", "cpu")


def _tokens(count: int, seed: int = 0) -> list[int]:
    return random.Random(seed).choices(range(VOCAB), k=count)


def _near(got: torch.Tensor, want: torch.Tensor) -> bool:
    return got.shape == want.shape and (got - want).abs().max().item() <= TOLERANCE


def test_whole_prompt(pair: Pair, pool: KvPool) -> None:
    tokens = _tokens(50)
    want = pair.expected(tokens)
    assert want.std() > 0.5  # else the tolerance says nothing
    assert _near(pair.run(pool, Chunk(0, tokens, 0, True)), want[-1:])


def test_one_token_at_a_time_from_the_cache(pair: Pair, pool: KvPool) -> None:
    tokens = _tokens(50)
    steps = [pair.run(pool, Chunk(0, [token], i, True)) for i, token in enumerate(tokens)]
    assert _near(torch.cat(steps), pair.expected(tokens))


def test_next_to_transformers_own_cache(pair: Pair, pool: KvPool) -> None:
    tokens = _tokens(40)
    with torch.no_grad():
        out = pair.theirs(torch.tensor([tokens[:25]]), use_cache=True)
        want = [out.logits[0, -1]]
        for token in tokens[25:]:
            cache = out.past_key_values
            out = pair.theirs(torch.tensor([[token]]), cache=cache, use_cache=True)
            want.append(out.logits[0, -1])
    got = [pair.run(pool, Chunk(0, tokens[:25], 0, True))]
    got += [pair.run(pool, Chunk(0, [tokens[i]], i, True)) for i in range(25, 40)]
    assert _near(torch.cat(got), torch.stack(want))


def test_prompt_in_chunks(pair: Pair, pool: KvPool) -> None:
    tokens = _tokens(50)
    want = pair.expected(tokens)
    for first, last in ((0, 7), (7, 8), (8, 31), (31, 50)):
        got = pair.run(pool, Chunk(0, tokens[first:last], first, True))
        assert _near(got, want[last - 1 : last])


def test_requests_of_different_lengths_in_one_step(pair: Pair, pool: KvPool) -> None:
    prompts = [_tokens(length, seed=length) for length in (5, 23, 1, 12)]
    want = [pair.expected(prompt) for prompt in prompts]
    first = [Chunk(i, prompt[:-1], 0, False) for i, prompt in enumerate(prompts) if len(prompt) > 1]
    assert pair.run(pool, *first).shape == (0, VOCAB)
    # a decode, a decode, a whole prompt of one token, a chunk that starts over another's end
    last = [Chunk(i, prompt[-1:], len(prompt) - 1, i != 1) for i, prompt in enumerate(prompts)]
    got = pair.run(pool, *last)
    assert _near(got, torch.stack([want[i][-1] for i in (0, 2, 3)]))


def test_decode_beside_a_prefill_chunk(pair: Pair, pool: KvPool) -> None:
    old, new = _tokens(20, seed=1), _tokens(30, seed=2)
    pair.run(pool, Chunk(0, old[:-1], 0, False), Chunk(1, new[:11], 0, False))
    got = pair.run(pool, Chunk(0, old[-1:], 19, True), Chunk(1, new[11:], 11, True))
    assert _near(got, torch.stack([pair.expected(old)[-1], pair.expected(new)[-1]]))


def test_after_a_preemption(pair: Pair, pool: KvPool) -> None:
    tokens, others = _tokens(24, seed=3), _tokens(16, seed=4)
    pair.run(pool, Chunk(0, tokens[:20], 0, True), Chunk(1, others, 0, True))
    pool.free(0)
    pair.run(pool, Chunk(2, _tokens(40, seed=5), 0, True))  # overwrites what was freed
    got = [pair.run(pool, Chunk(0, tokens[:21], 0, True))]  # prompt and generated so far
    got += [pair.run(pool, Chunk(0, [tokens[i]], i, True)) for i in (21, 22, 23)]
    assert _near(torch.cat(got), pair.expected(tokens)[20:])


def test_request_that_lies_in_several_stretches(pair: Pair) -> None:
    pool = KvPool(pair.ours.spec, 12, 4, "fp32", "cpu")
    for other in (10, 11, 12, 13, 14, 15):
        pool.ensure(other, 8)
    for other in (10, 12, 14, 15):
        pool.free(other)
    tokens = _tokens(32, seed=6)
    want = pair.expected(tokens)
    assert _near(pair.run(pool, Chunk(0, tokens[:26], 0, True)), want[25:26])
    got = [pair.run(pool, Chunk(0, [tokens[i]], i, True)) for i in range(26, 32)]
    assert _near(torch.cat(got), want[26:])
    window = pair.ours.spec.sliding_window
    if window is None:
        assert len(pool.view(0, 0, 32).stretches) > 1


def _random_steps(rng: random.Random, tokens: list[list[int]]) -> Iterator[list[Chunk] | int]:
    """Steps of random chunks, now and then a preemption (the request), until all is done."""
    done = [0] * len(tokens)
    while any(d < len(t) for d, t in zip(done, tokens, strict=True)):
        if rng.random() < 0.15:
            lost = rng.randrange(len(tokens))
            done[lost] = 0
            yield lost
        chunks = []
        for request, all_of_it in enumerate(tokens):
            new = all_of_it[done[request] : done[request] + rng.choice((0, 1, 1, 2, 9))]
            if new:
                chunks.append(Chunk(request, new, done[request], True))
                done[request] += len(new)
        if chunks:
            yield rng.sample(chunks, len(chunks))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_random_steps_and_preemptions(pair: Pair, seed: int) -> None:
    rng = random.Random(seed)
    pool = KvPool(pair.ours.spec, 50, 3, "fp32", "cpu")
    tokens = [_tokens(rng.randint(20, 48), seed=i) for i in range(3)]
    want = [pair.expected(t) for t in tokens]
    compared = 0
    for step in _random_steps(rng, tokens):
        if isinstance(step, int):
            pool.free(step)
            continue
        ends = [(c.request, c.start + len(c.token_ids) - 1) for c in step]
        got = pair.run(pool, *step)
        assert _near(got, torch.stack([want[request][end] for request, end in ends]))
        compared += len(ends)
    assert compared > 25


@pytest.mark.parametrize("kernel", ["aten", "mv", "onednn", "widened"])
def test_every_linear_kernel(pair: Pair, pool: KvPool, kernel: Kernel) -> None:
    if kernel == "onednn" and not torch.backends.mkldnn.is_available():
        pytest.skip("this torch has no oneDNN")
    spec = pair.ours.spec
    source = SafetensorsFolder(pair.folder, spec, torch.float32, CPU)
    same = replace(pair, ours=Decoder(spec, source, kernel=kernel))
    tokens = _tokens(30)
    got = [same.run(pool, Chunk(0, tokens[:29], 0, True)), same.run(pool, Chunk(0, [1], 29, True))]
    assert _near(torch.cat(got), pair.expected([*tokens[:29], 1])[28:])


def test_attention_never_falls_back_to_the_slow_kernel(pair: Pair, pool: KvPool) -> None:
    tokens = _tokens(30)
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):  # raises where flash cannot be used
        whole = pair.run(pool, Chunk(0, tokens[:20], 0, True))
        chunk = pair.run(pool, Chunk(0, tokens[20:29], 20, True))
        one = pair.run(pool, Chunk(0, tokens[29:], 29, True))
    assert _near(torch.cat((whole, chunk, one)), pair.expected(tokens)[[19, 28, 29]])


@pytest.mark.parametrize(
    ("dtype", "kv_dtype", "tolerance"),
    # One rounding is 2^-8 of a value in bf16, 2^-11 in fp16; logits reach about 5, and errors of
    # two layers add up.
    [("bf16", "bf16", 0.35), ("fp16", "fp16", 0.05), ("fp32", "bf16", 0.2)],
)
def test_reduced_precision_stays_near(
    pair: Pair, dtype: str, kv_dtype: str, tolerance: float
) -> None:
    tokens = _tokens(40)
    low = replace(pair, ours=build_decoder(pair.ours.spec, folder=pair.folder, dtype=dtype))
    pool = KvPool(low.ours.spec, 64, 4, kv_dtype, "cpu")
    got = [low.run(pool, Chunk(0, tokens[:30], 0, True))]
    got += [low.run(pool, Chunk(0, [tokens[i]], i, True)) for i in range(30, 40)]
    assert got[0].dtype == low.ours.dtype
    differences = (torch.cat(got).float() - pair.expected(tokens)[29:]).abs()
    assert 1e-6 < differences.mean().item() < tolerance / 4
    assert differences.max().item() < tolerance


def _first_layer_group(decoder: Decoder, group: str) -> Callable[[torch.Tensor], torch.Tensor]:
    return decoder.linears()[group][0]


def test_linears_are_the_models_own(pair: Pair) -> None:
    spec, layer = pair.ours.spec, pair.theirs.model.layers[0]
    x = torch.randn(3, spec.hidden_size, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        attention = layer.self_attn
        want = torch.cat([p(x) for p in (attention.q_proj, attention.k_proj, attention.v_proj)], 1)
        got = _first_layer_group(pair.ours, "qkv")(x)
        assert _near(got, want)
        want = torch.cat([layer.mlp.gate_proj(x), layer.mlp.up_proj(x)], 1)
        assert _near(_first_layer_group(pair.ours, "gate_up")(x), want)
        assert _near(_first_layer_group(pair.ours, "lm_head")(x), pair.theirs.lm_head(x))
    counts = {group: len(ops) for group, ops in pair.ours.linears().items()}
    assert counts == {"qkv": 2, "o": 2, "gate_up": 2, "down": 2, "lm_head": 1}
