"""Plans against hand arithmetic: the document's models on its devices."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stallscope.analyzers.plan.options import PlanOptions
from stallscope.analyzers.plan.planner import plan
from stallscope.analyzers.plan.result import FLOOR_ERROR
from stallscope.profiler.devices import load_device
from stallscope.profiler.model_parts import Latent
from stallscope.profiler.models import load_model
from stallscope.profiler.spec import DeviceSpec, ModelSpec, ProductTime

LLAMA_7B, LLAMA_13B = load_model("llama-7b"), load_model("llama-13b")
GIB, MIB = 1 << 30, 1 << 20

# One layer of hidden 64 and one head of 64; no arithmetic limit, 1 MB/s of memory.
TOY = ModelSpec("toy", 64, 64, 1, 1, 1, 64, 64, 4096)
SLOW = DeviceSpec("slow", {"fp32": 1e15}, GIB, 1e6)


def test_kv_growth_of_the_document() -> None:
    table = plan(PlanOptions(LLAMA_13B, dtype="fp16", kv_lengths=(512, 1024, 2048, 4096))).kv_table
    assert [row.bytes for row in table] == [400 * MIB, 800 * MIB, 1600 * MIB, 3200 * MIB]
    (row,) = plan(PlanOptions(LLAMA_7B, dtype="fp16", kv_lengths=(2048,))).kv_table
    assert row.bytes == 1_073_741_824


def test_memory_of_the_documents_a10g() -> None:
    """512 in, 1024 out: 1535 tokens enter the cache, 96 blocks of 16, 0.5 MiB a token: 768 MiB."""
    a10g = load_device("a10g")
    memory = plan(
        PlanOptions(
            LLAMA_7B,
            a10g,
            dtype="fp16",
            input_tokens=512,
            output_tokens=1024,
            concurrency=8,
        )
    ).memory
    assert memory.weights_bytes == 2 * 6_738_415_616
    assert memory.kv_bytes_per_token == 524_288
    assert memory.kv_bytes == 8 * 768 * MIB
    # 2048 rows of (4 · 4096 + 2 · 11008) fp16 values, and 8 rows of 32,000 fp32 logits.
    assert memory.activation_bytes == 2048 * (4 * 4096 + 2 * 11008) * 2 + 8 * 32_000 * 4
    assert a10g.memory_bytes == 24 * GIB
    assert memory.usable_bytes == int(0.9 * 24 * GIB)
    room = memory.usable_bytes - memory.weights_bytes - memory.activation_bytes
    assert memory.free_bytes == room - memory.kv_bytes
    assert memory.max_concurrency == room // (768 * MIB) == 11


def test_what_does_not_fit_is_said() -> None:
    options = PlanOptions(
        LLAMA_7B, load_device("a10g"), dtype="fp16", output_tokens=1024, concurrency=16
    )
    found = plan(options)
    assert found.memory.free_bytes is not None
    assert found.memory.free_bytes < 0
    assert any("Only 11 of 16 requests fit" in note for note in found.notes)
    smaller = plan(PlanOptions(LLAMA_13B, load_device("t4"), dtype="fp16"))
    assert smaller.memory.max_concurrency == 0
    assert smaller.ttft_s is smaller.tpot_s is smaller.throughput_tokens_per_s is None


def test_floors_of_the_document_on_an_a100() -> None:
    """Decode at 640 tokens: (6,607,077,376 weights · 2 + 640 · 524,288 KV bytes) / 1.555 TB/s."""
    found = plan(PlanOptions(LLAMA_7B, load_device("a100-sxm4-40gb"), dtype="fp16"))
    prefill, decode = found.phases
    assert found.ridge == pytest.approx(200.6, abs=0.05)
    assert (prefill.bound, decode.bound) == ("compute", "bandwidth")
    by_hand = (6_607_077_376 * 2 + 640 * 524_288) / 1.555e12
    assert decode.time_s == pytest.approx(by_hand, rel=2e-3)  # activations come on top
    assert sum(part.time_s for part in decode.budget) == pytest.approx(decode.time_s)
    q = {row.phase: row for row in found.operators if row.name == "q_proj"}
    assert q["decode"].intensity == pytest.approx(1.0, abs=5e-3)
    assert q["prefill"].intensity == pytest.approx(409.6)
    assert found.ffn_share == pytest.approx(0.642, abs=5e-4)


def test_predictions_of_one_stream_by_hand() -> None:
    """The toy streams 8 · 64 · 64 · 4 = 131,072 bytes of weights a step at 1 MB/s."""
    found = plan(PlanOptions(TOY, SLOW, dtype="fp32", input_tokens=1, output_tokens=3))
    assert found.ttft_s is not None
    assert found.tpot_s is not None
    # Activations: 512 bytes for each of 8 linears and for attention. KV: 512 bytes a key.
    step = (131_072 + 8 * 512 + 512) / 1e6
    assert found.ttft_s.value == pytest.approx(step + 512e-6)
    assert found.tpot_s.value == pytest.approx(step + (2 + 3) / 2 * 512e-6)
    assert found.ttft_s.worst == pytest.approx(found.ttft_s.value / (1 - FLOOR_ERROR))


def test_without_a_device_counts_remain_and_times_are_not_observable() -> None:
    found = plan(PlanOptions(LLAMA_7B, dtype="fp16"))
    assert found.memory.max_concurrency is found.memory.free_bytes is found.ridge is None
    assert {p.time_s for p in found.phases} == {None}
    assert {row.bound for row in found.operators} == {None}
    (missing,) = found.not_observable
    assert "--gpu" in missing.how


def test_ranks_share_weights_and_whole_kv_heads() -> None:
    shared = plan(PlanOptions(load_model("llama-3-8b"), dtype="bf16", num_devices=16)).memory
    assert shared.kv_bytes_per_token == 2 * 32 * 1 * 128 * 2  # 8 KV heads on 16 ranks: one each
    # 65 norms lie whole on each rank, an eighth of k_proj and v_proj, a sixteenth of the rest.
    norms, keys = 65 * 4096, 32 * 2 * 4096 * 1024
    rest = 8_030_261_248 - norms - keys
    assert shared.weights_bytes == 2 * (norms + keys // 8 + rest // 16)


def test_lengths_beyond_the_model_are_noted() -> None:
    notes = plan(PlanOptions(LLAMA_7B, dtype="fp16", input_tokens=2000, output_tokens=100)).notes
    assert any("2,100 tokens are beyond the model's 2,048" in note for note in notes)


def test_a_window_bounds_memory_and_reading() -> None:
    """mistral-7b-v0.1: 128 KiB a token, a window of 4096 tokens, 257 blocks of 16 at worst."""
    mistral, h100 = load_model("mistral-7b-v0.1"), load_device("h100-sxm")
    options = PlanOptions(mistral, h100, input_tokens=8000, output_tokens=1000, concurrency=4)
    found = plan(options)
    # A step's 2048 prompt tokens take (4095 + 2048 + 15) / 16 = 385 blocks at worst: 128 more.
    block = 16 * 131_072
    assert found.memory.kv_bytes == (4 * 257 + 128) * block
    assert found.memory.usable_bytes is not None
    room = found.memory.usable_bytes - found.memory.weights_bytes - found.memory.activation_bytes
    assert found.memory.max_concurrency == (room - 128 * block) // (257 * block)
    assert found.memory.free_bytes == room - found.memory.kv_bytes
    attention = {row.phase: row for row in found.operators if row.name == "attention"}
    # Pairs of the prompt: 1 + 2 + … + 4096, and 4096 for each of the 3904 tokens after them.
    pairs = 4096 * 4097 // 2 + 3904 * 4096
    assert attention["prefill"].flops == 4 * 4096 * pairs
    # Decode at 8500 tokens: 4096 keys for each of four requests; 2 · 8 heads · 128 · 2 bytes.
    assert attention["decode"].bytes == 4 * 4096 * 4096 + 2 * 4 * 4096 * 2
    assert any("stops growing at 4,096 tokens" in note for note in found.notes)
    assert found.tpot_s is not None


def test_a_window_that_is_not_reached_changes_nothing() -> None:
    v1 = load_model("mistral-7b-v0.1")
    device = load_device("h100-sxm")
    found = plan(PlanOptions(v1, device))
    same = plan(PlanOptions(replace(v1, sliding_window=None), device))
    assert found.memory == same.memory
    assert (found.phases, found.ttft_s, found.tpot_s) == (same.phases, same.ttft_s, same.tpot_s)
    assert not any("sliding window" in note for note in found.notes)


def test_one_request_in_a_window_of_its_memory_still_runs() -> None:
    """Room for one request and the step that fills it: the simulated pool must take it."""
    toy = replace(TOY, sliding_window=100, max_position=40_000)
    tight = replace(SLOW, memory_bytes=14_000_000)
    found = plan(PlanOptions(toy, tight, dtype="fp32", input_tokens=6000, output_tokens=2))
    assert found.memory.max_concurrency is not None
    assert found.memory.max_concurrency >= 1
    assert found.ttft_s is not None


def test_what_is_not_predicted_says_why() -> None:
    """70B in fp16 on 24 GB: not one request fits."""
    found = plan(PlanOptions(load_model("llama-3-70b"), load_device("a10"), dtype="fp16"))
    assert (found.ttft_s, found.tpot_s, found.throughput_tokens_per_s) == (None, None, None)
    (missing,) = found.not_observable
    assert missing.what == "TTFT, TPOT and throughput"
    assert "not one request fits" in missing.reason
    single = plan(PlanOptions(TOY, SLOW, dtype="fp32", output_tokens=1))
    assert single.tpot_s is None
    assert [n.what for n in single.not_observable] == ["TPOT"]
    assert plan(PlanOptions(TOY, SLOW, dtype="fp32")).not_observable == ()


def test_sizes_over_four_devices_say_which_they_are() -> None:
    """llama-3-8b: 131,072 bytes a token over all, 32,768 on each of four."""
    model = load_model("llama-3-8b")
    options = PlanOptions(
        model, load_device("a100-sxm4-80gb"), num_devices=4, dtype="fp16", kv_lengths=(1,)
    )
    found = plan(options)
    assert found.memory.kv_bytes_per_token == 32_768
    assert found.kv_table[0].bytes == 131_072
    assert found.kv_table[0].source.endswith("over all 4 devices")


def test_a_plan_that_cannot_run_names_what_would() -> None:
    """llama-3-70b in bf16: 141 GB of weights; h100: 72 GiB usable each; int8 takes 72.6 GB."""
    found = plan(PlanOptions(load_model("llama-3-70b"), load_device("h100-sxm"), dtype="bf16"))
    (note,) = [n for n in found.notes if n.startswith("Nothing runs")]
    assert "2 devices (--gpus 2)" in note
    assert "--dtype int8" in note
    assert not any("queue or are preempted" in n for n in found.notes)


def test_clients_beyond_the_memory_only_wait_and_take_no_time_to_plan() -> None:
    """By Little's law 1,000 clients more, at x requests a second, wait 1,000 / x longer."""
    options = PlanOptions(TOY, SLOW, dtype="fp32", input_tokens=8, output_tokens=8)
    fits = plan(options).memory.max_concurrency
    assert fits is not None
    few, many = (
        plan(
            PlanOptions(
                TOY, SLOW, dtype="fp32", input_tokens=8, output_tokens=8, concurrency=clients
            )
        )
        for clients in (2 * fits, 2 * fits + 1000)
    )
    for found in (few, many):
        assert found.ttft_s is not None
        assert found.throughput_tokens_per_s is not None
        assert found.memory.max_concurrency == fits
    assert many.throughput_tokens_per_s == few.throughput_tokens_per_s
    requests_per_s = few.throughput_tokens_per_s.value / 8
    assert many.ttft_s.value - few.ttft_s.value == pytest.approx(1000 / requests_per_s)


def test_a_draft_takes_its_weights_and_its_cache() -> None:
    """llama-7b drafting for llama-13b on 80 GiB, 512 in and 256 out: 48 blocks of 16 tokens.

    A token takes 800 KiB in the one and 512 KiB in the other; the draft 13,476,831,232 bytes.
    """
    a100 = load_device("a100-sxm4-80gb")
    alone = PlanOptions(LLAMA_13B, a100, dtype="fp16", concurrency=4)
    drafted = replace(alone, drafted=4, draft=LLAMA_7B)
    without, found = plan(alone).memory, plan(drafted).memory
    assert found.weights_bytes == without.weights_bytes
    assert found.draft_weights_bytes == 2 * 6_738_415_616
    assert found.kv_bytes == 4 * 48 * 16 * (800 + 512) * 1024
    assert found.usable_bytes is not None
    assert without.free_bytes is not None
    assert found.free_bytes is not None
    more = found.draft_weights_bytes + 4 * 48 * 16 * 512 * 1024
    assert without.free_bytes - found.free_bytes == more
    logits = 4 * 32_000
    rows = found.activation_bytes - 4 * logits
    room = found.usable_bytes - found.weights_bytes - found.draft_weights_bytes - rows
    assert found.max_concurrency == room // (48 * 16 * 1312 * 1024 + logits)
    assert plan(replace(alone, draft=LLAMA_7B)).memory == without  # nothing is drafted


@pytest.mark.parametrize(
    ("heads", "ranks", "bytes_of_all"),
    [
        (8, 4, 2 * 32 * 8 * 128 * 2),  # two heads on each
        (8, 16, 2 * 32 * 16 * 128 * 2),  # one on each, every one there twice
    ],
)
def test_the_growth_table_is_of_what_all_devices_hold(
    heads: int, ranks: int, bytes_of_all: int
) -> None:
    model = replace(load_model("llama-3-8b"), num_kv_heads=heads)
    (row,) = plan(PlanOptions(model, dtype="fp16", num_devices=ranks, kv_lengths=(1,))).kv_table
    assert row.bytes == bytes_of_all


def test_a_latent_lies_whole_on_each_of_eight_devices() -> None:
    """61 layers of (512 + 64) elements in bf16 are 70,272 bytes a token: eight times over eight."""
    model = replace(
        load_model("llama-3-8b"),
        num_layers=61,
        num_heads=128,
        latent=Latent(512, 64, 128, 128, 1536),
    )
    one, eight = (
        plan(PlanOptions(model, dtype="bf16", num_devices=n, kv_lengths=(1000,))).kv_table[0]
        for n in (1, 8)
    )
    assert one.bytes == 1000 * 70_272
    assert eight.bytes == 8 * 1000 * 70_272
    assert "8 copies, over all 8 devices" in eight.source


def test_at_best_of_a_probed_machine_is_what_was_measured_of_it() -> None:
    """One product of 64 × 64 in 1 ms at any rows up to 8: no peak of the machine says that."""
    probed = ProductTime("fp32", 64, 64, 1, 1e-3), ProductTime("fp32", 64, 64, 8, 1e-3)
    measured = replace(SLOW, kind="achievable", products=probed)
    notes = {
        device: " ".join(plan(PlanOptions(TOY, spec, dtype="fp32")).notes)
        for device, spec in (("measured", measured), ("datasheet", SLOW))
    }
    assert "At best every product takes what was measured of products like it" in notes["measured"]
    assert "At best every operator runs at the device's peak" in notes["datasheet"]
