"""What experiments prove: reports whose cause is known, in the figures that were reported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from stallscope.analyzers.experiment.compare import compare
from stallscope.analyzers.experiment.result import Conclusion, Figure, Run, Value
from stallscope.analyzers.experiment.settings import SETTINGS


def runs_of(
    settings: Sequence[Mapping[str, Value]], figure: str, values: Sequence[float]
) -> tuple[Run, ...]:
    unit = "s" if not figure.endswith("_per_s") else "tokens/s"
    return tuple(
        Run(f"run {i}", dict(one), {figure: Figure(value, unit, "measured", "reported")})
        for i, (one, value) in enumerate(zip(settings, values, strict=True))
    )


def judged(vary: str, xs: Sequence[Value], figure: str, values: Sequence[float]) -> Conclusion:
    runs = runs_of([{vary: x} for x in xs], figure, values)
    return compare(runs, vary=vary, metric=None, version="0").conclusion


@pytest.mark.parametrize(
    ("vary", "xs", "figure", "values", "bottleneck"),
    [
        # vllm#57771: 35 GB left on the host, 2,434 → 120 tokens/s.
        ("cpu_offload_gb", [0.0, 35.0], "output_tokens_per_s", [2434, 120], "interconnect"),
        # vllm#58266: pages a second with 1, 2 and 6 threads of one interpreter.
        ("threads", [1.0, 2.0, 6.0], "pages_per_s", [14.0, 16.8, 4.0], "host"),
        # llama.cpp#1665: 64 threads against 7, all layers on the GPU.
        ("threads", [64.0, 7.0], "output_tokens_per_s", [0.1, 8.5], "host"),
        # vllm#11500: eight stages give 4 % more than one.
        ("pipeline_parallel", [1.0, 8.0], "output_tokens_per_s", [564.8, 586.0], "scheduling"),
        # exllamav2#734: prefill by layers over one link, and with every layer on both.
        ("tensor_parallel", [1.0, 2.0], "input_tokens_per_s", [1045.8, 378.9], "interconnect"),
        # club-3090#356: two cards without and with access to each other's memory.
        ("p2p", ["off", "on"], "output_tokens_per_s", [50, 66], "interconnect"),
        # TensorRT-LLM#16827: admission that the KV pool cannot hold.
        (
            "capacity_scheduler_policy",
            ["GUARANTEED_NO_EVICT", "MAX_UTILIZATION"],
            "output_tokens_per_s",
            [161, 96],
            "capacity",
        ),
        # A real vLLM: raising the cap from 16 to 64 gave 57 % more.
        ("max_num_seqs", [16.0, 64.0], "output_tokens_per_s", [100, 157], "scheduling"),
    ],
)
def test_the_class_that_responded(
    vary: str, xs: list[Value], figure: str, values: list[float], bottleneck: str
) -> None:
    found = judged(vary, xs, figure, values)
    assert found.bottleneck == bottleneck
    assert 0.4 < found.confidence <= 0.9


@pytest.mark.parametrize(
    ("vary", "xs", "values", "excluded"),
    [
        # vllm#6610: the network twice as fast, the same tokens/s.
        ("network_gbps", [400.0, 800.0], [31.2, 31.0], "interconnect"),
        # A real vLLM: from 64 to 128 running a few per cent.
        ("max_num_seqs", [64.0, 128.0], [100, 104], "scheduling"),
        ("client", ["a", "b"], [503, 494], "client"),
    ],
)
def test_no_response_excludes_a_class(
    vary: str, xs: list[Value], values: list[float], excluded: str
) -> None:
    found = judged(vary, xs, "output_tokens_per_s", values)
    assert found.bottleneck == "undetermined"
    assert found.excluded == (excluded,)
    assert found.sentence.startswith(f"Not {excluded}: ")


def test_serial_work_a_request_in_two_groups() -> None:
    # vllm#3567: TPOT free and guided, at 10 and at 100 running: 14 and 16.25 ms a request.
    settings = [
        {"running": 10.0, "guided_requests": 0.0},
        {"running": 10.0, "guided_requests": 10.0},
        {"running": 100.0, "guided_requests": 0.0},
        {"running": 100.0, "guided_requests": 100.0},
    ]
    runs = runs_of(settings, "tpot_s", [0.020, 0.160, 0.075, 1.700])
    found = compare(runs, vary="guided_requests", metric=None, version="0")
    assert found.conclusion.bottleneck == "host"
    assert [f.share for f in found.findings] == pytest.approx([140 / 160, 1625 / 1700])
    assert [g.label for g in found.groups] == ["running 10", "running 100"]


def test_a_client_that_fails_at_one_length_only() -> None:
    # vllm#39963: two tools against one server.
    settings = [
        {"tool": tool, "input_tokens": float(length)}
        for length in (8000, 32000, 50000)
        for tool in ("first", "second")
    ]
    runs = runs_of(settings, "output_tokens_per_s", [503, 494, 591, 640, 486, 44])
    found = compare(runs, vary="tool", metric=None, version="0").conclusion
    assert found.bottleneck == "client"
    assert "input_tokens 50,000" in found.sentence
    assert not found.excluded


def test_a_format_of_fewer_bytes_that_is_slower() -> None:
    # bitsandbytes#490: int8 five times slower than bf16. Its kernels, and not the bandwidth.
    found = judged("load_option", ["bf16", "int8"], "output_tokens_per_s", [50, 10])
    assert found.bottleneck == "undetermined"
    assert found.between == ("host", "compute")
    assert found.excluded == ("bandwidth",)


def test_a_format_of_fewer_bytes_that_is_faster() -> None:
    # Half the bytes, 0.6 of the time: (1 − 0.6) / (1 − 0.5) = 0.8 of it follows them.
    found = judged("dtype", ["fp16", "int8"], "tpot_s", [0.010, 0.006])
    assert found.bottleneck == "bandwidth"
    assert "80 % of the time" in found.sentence


@pytest.mark.parametrize(("share", "is_it"), [(0.401, True), (0.399, False)])
def test_the_share_that_decides(share: float, is_it: bool) -> None:
    # Two points at x = 1 and 2: t(2) = 1 − share / 2.
    found = judged("link_gbps", [1.0, 2.0], "tpot_s", [1.0, 1.0 - share / 2])
    assert (found.bottleneck == "interconnect") == is_it


@pytest.mark.parametrize(("ratio", "is_it"), [(1.251, True), (1.249, False)])
def test_the_difference_that_decides_between_two(ratio: float, is_it: bool) -> None:
    found = judged("p2p", ["on", "off"], "tpot_s", [1.0, ratio])
    assert (found.bottleneck == "interconnect") == is_it


def test_what_offloading_costs_a_step_is_a_speed() -> None:
    # 10 GB add 400 ms to a step: 25 GB/s.
    found = judged("cpu_offload_gb", [0.0, 10.0], "tpot_s", [0.020, 0.420])
    assert "as if it passed at 25 GB/s" in found.sentence


def test_repeats_count_once_by_their_median() -> None:
    runs = runs_of(
        [{"link_gbps": x} for x in (100.0, 100.0, 100.0, 200.0)], "tpot_s", [1.0, 5.0, 1.1, 1.1]
    )
    found = compare(runs, vary="link_gbps", metric=None, version="0")
    assert found.groups[0].values == (100.0, 200.0)
    assert found.groups[0].shown == (1.1, 1.1)
    assert found.conclusion.excluded == ("interconnect",)


def test_the_one_setting_that_differs_is_found() -> None:
    runs = runs_of([{"dtype": "bf16", "threads": x} for x in (8.0, 2.0)], "tpot_s", [2.0, 1.0])
    found = compare(runs, vary=None, metric=None, version="0")
    assert found.vary == "threads"


def test_abstains_where_nothing_can_be_read() -> None:
    two = runs_of([{"a": 1.0, "b": 1.0}, {"a": 2.0, "b": 2.0}], "tpot_s", [1.0, 2.0])
    assert (
        "differ in a and b" in compare(two, vary=None, metric=None, version="0").conclusion.sentence
    )
    unknown = compare(two, vary="a", metric=None, version="0").conclusion
    assert unknown.bottleneck == "undetermined"
    assert "not known here" in unknown.sentence
    alike = runs_of([{"threads": 1.0}] * 2, "tpot_s", [1.0, 2.0])
    assert compare(alike, vary="threads", metric=None, version="0").conclusion.confidence == 0
    bare = (Run("a", {"threads": 1.0}, {}), Run("b", {"threads": 2.0}, {}))
    sentence = compare(bare, vary="threads", metric=None, version="0").conclusion.sentence
    assert "no figure in common" in sentence


@pytest.mark.parametrize(("most", "tells"), [(1.26, True), (1.24, False)])
def test_a_setting_that_hardly_changed_tells_nothing(most: float, tells: bool) -> None:
    found = judged("link_gbps", [1.0, most], "tpot_s", [1.0, 1.0 / most])
    assert (found.bottleneck == "interconnect") == tells
    assert ("varied too little" in found.sentence) != tells


def test_values_that_are_no_numbers() -> None:
    found = judged("workers", ["few", "many"], "tpot_s", [1.0, 2.0])
    assert found.bottleneck == "undetermined"
    assert "are not numbers" in found.sentence
    # Fewer threads too slow or more of them: either way it is the host.
    assert judged("threads", ["default", 7.0], "tpot_s", [2.0, 1.0]).bottleneck == "host"


def test_an_option_that_was_not_given_has_its_default() -> None:
    # 10 GB add 400 ms to a step: 25 GB/s.
    found = judged("cpu_offload_gb", ["default", 10.0], "tpot_s", [0.020, 0.420])
    assert "as if it passed at 25 GB/s" in found.sentence


@pytest.mark.parametrize(("slow", "is_it"), [(2.19, True), (2.21, False)])
def test_a_speed_explains_no_more_than_its_own_ratio(slow: float, is_it: bool) -> None:
    """Half the clock takes at most twice as long, and a tenth more is noise."""
    for name in ("sm_clock_mhz", "memory_clock_mhz", "link_gbps"):
        found = judged(name, [2000.0, 1000.0], "tpot_s", [1.0, slow])
        assert (found.bottleneck != "undetermined") == is_it
        assert ("cannot explain that" in found.sentence) != is_it


@pytest.mark.parametrize(("slow", "is_it"), [(2.15, True), (2.25, False)])
def test_a_pcie_generation_stands_for_its_bandwidth(slow: float, is_it: bool) -> None:
    """The fourth is twice as fast as the third, not a third faster; and a tenth is noise."""
    found = judged("pcie_gen", [3.0, 4.0], "tpot_s", [slow, 1.0])
    assert (found.bottleneck == "interconnect") == is_it
    # Twice the bandwidth saves 0.3 of 1.3: the link takes 0.6 of 1.3 at the third.
    part = judged("pcie_gen", [3.0, 4.0], "tpot_s", [1.3, 1.0])
    assert part.bottleneck == "interconnect"
    assert "46 % of the time follows the PCIe generation where that is 3" in part.sentence


def test_no_speed_is_no_bound() -> None:
    """A KV pool half as large may take any time: what it held is computed again."""
    assert judged("kv_gib", [2.0, 1.0], "tpot_s", [1.0, 9.0]).bottleneck == "capacity"


def test_settings_of_one_class_that_changed_in_step() -> None:
    settings = [{"p2p": "off", "pcie_gen": 3.0}, {"p2p": "on", "pcie_gen": 4.0}]
    runs = runs_of(settings, "output_tokens_per_s", [50, 66])
    found = compare(runs, vary="p2p", metric=None, version="0").conclusion
    assert found.bottleneck == "interconnect"
    assert "(pcie_gen changed with it)" in found.sentence
    # Of another class, it may be what made the difference.
    settings = [{"p2p": "off", "threads": 3.0}, {"p2p": "on", "threads": 4.0}]
    runs = runs_of(settings, "output_tokens_per_s", [50, 66])
    assert compare(runs, vary="p2p", metric=None, version="0").conclusion.confidence == 0


def test_one_format_out_of_order_is_not_hidden_by_the_others() -> None:
    """4 bits are faster than 16, and 8 bits slower: the bytes do not explain the order."""
    found = judged("dtype", ["bf16", "int8", "int4"], "output_tokens_per_s", [30, 6, 50])
    assert (found.bottleneck, found.between) == ("undetermined", ("host", "compute"))


def test_estimates_make_a_conclusion_less_sure() -> None:
    xs, values = [1.0, 2.0], [1.0, 0.5]
    sure = judged("link_gbps", xs, "tpot_s", values).confidence
    runs = tuple(
        Run(str(x), {"link_gbps": x}, {"tpot_s": Figure(value, "s", "estimated", "a model")})
        for x, value in zip(xs, values, strict=True)
    )
    less = compare(runs, vary="link_gbps", metric=None, version="0").conclusion.confidence
    assert less == pytest.approx(0.4 * sure)


def test_every_name_of_a_setting_is_one_row() -> None:
    names = [name for row in SETTINGS for name in row.names]
    assert len(names) == len(set(names))


def test_a_column_that_may_be_a_result_is_named() -> None:
    settings: list[dict[str, Value]] = [
        {"cpu_offload_gb": 0.0, "speed": 50.0, "dtype": "bf16"},
        {"cpu_offload_gb": 35.0, "speed": 1.6, "dtype": "bf16"},
    ]
    two = runs_of(settings, "tpot_s", [0.02, 0.62])
    says = "Speed was taken for a setting: leave it out if it is a result"
    one = compare(two, vary="cpu_offload_gb", metric=None, version="0").conclusion.sentence
    assert one.startswith("No two runs differ in cpu_offload_gb alone")
    assert says in one
    assert says in compare(two, vary=None, metric=None, version="0").conclusion.sentence


def test_settings_that_are_known_are_not_taken_for_results() -> None:
    two = runs_of(
        [{"threads": 1.0, "concurrency": 1.0}, {"threads": 2.0, "concurrency": 8.0}],
        "tpot_s",
        [1.0, 2.0],
    )
    said = compare(two, vary="threads", metric=None, version="0").conclusion.sentence
    assert "taken for" not in said


def test_a_mean_stands_for_its_figure() -> None:
    # 35 GB add 600 ms to a step: 58.3 GB/s. TPOT is preferred to the column before it.
    runs = tuple(
        Run(
            str(gb),
            {"cpu_offload_gb": gb},
            {
                "mean_ttft_s": Figure(1.0, "s", "measured", "reported"),
                "mean_tpot_s": Figure(tpot, "s", "measured", "reported"),
            },
        )
        for gb, tpot in ((0.0, 0.02), (35.0, 0.62))
    )
    found = compare(runs, vary=None, metric=None, version="0")
    assert found.metric == "mean_tpot_s"
    assert "as if it passed at 58.3 GB/s" in found.conclusion.sentence
