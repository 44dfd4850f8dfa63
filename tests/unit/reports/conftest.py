"""Two diagnoses made by hand: one that saw nearly everything, one that saw nearly nothing."""

from __future__ import annotations

import pytest

from stallscope.analyzers.result import (
    BudgetPart,
    CaptureInfo,
    Change,
    Diagnosis,
    Distribution,
    DocumentVerdict,
    Figure,
    Gain,
    KvRow,
    LifeStage,
    Limits,
    Link,
    OperatorRow,
    PhaseBudget,
    PhaseWindow,
    Remedy,
    Roofline,
    RooflinePoint,
    RuleResult,
    Series,
    SourceInfo,
    State,
    StepPoint,
    Throughput,
    Verdict,
    Window,
    WontHelp,
)
from stallscope.analyzers.thresholds import Thresholds
from stallscope.profiler.evidence import Measure, NotObservable, Provenance
from stallscope.profiler.spec import DeviceSpec, ModelSpec, Subject

# Rich markup, Markdown, HTML, a terminal escape, a line break and a right-to-left override.
NASTY_NAME = "tiny[red]|`*_x_*`<b>&$1\x1b[31m\nnext\u202e"
# A path whose last byte is not UTF-8, as os.fsdecode returns it.
NASTY_PATH = "runs/[bold]a|b\udcff.sqlite"

USED = Measure("kv_used_share", 0.9975, "fraction", "measured", "engine: kv_used_bytes, p95")
PREEMPTIONS = Measure("preemptions", 14.0, "count", "measured", "events: preempt")
QUEUED = Measure("queue_wait_share", 0.31, "fraction", "derived", "requests: waiting / end-to-end")
BUSY = Measure("device_busy", 0.93, "fraction", "bound", "steps: device_ns / wall", "upper")
MBU = Measure("mbu_decode", 0.35, "fraction", "estimated", "bytes that must move / stream probe")
BANDWIDTH = Measure("stream_bandwidth", 20e9, "B/s", "measured", "probe: before, 1 GiB buffer")


def _part(part: str, time_s: float, share: float, kind: Provenance, source: str) -> BudgetPart:
    return BudgetPart(part, time_s, share, kind, source, "lower" if kind == "bound" else None)


def _budget(phase_s: float, shares: dict[str, float]) -> tuple[BudgetPart, ...]:
    kinds: dict[str, tuple[Provenance, str]] = {
        "weights": ("estimated", "linear probes at the step's rows"),
        "kv": ("estimated", "KV bytes / stream probe"),
        "compute": ("estimated", "linear probes at the step's rows"),
        "communication": ("derived", "one device"),
        "transfer": ("bound", "copies were not recorded"),
        "host": ("measured", "step minus forward call"),
        "unexplained": ("derived", "step minus all other parts"),
    }
    return tuple(
        _part(part, share * phase_s, share, *kinds[part]) for part, share in shares.items()
    )


# 218 steps in 3.000 s; a step's parts sum to 1 in each phase.
PHASES = (
    PhaseBudget(
        "prefill",
        8,
        0.24,
        0.08,
        0.030,
        _budget(
            0.24,
            {
                "weights": 0.10,
                "kv": 0.02,
                "compute": 0.70,
                "communication": 0.0,
                "transfer": 0.0,
                "host": 0.05,
                "unexplained": 0.13,
            },
        ),
        bottleneck="compute",
    ),
    PhaseBudget(
        "decode",
        180,
        2.16,
        0.72,
        0.012,
        _budget(
            2.16,
            {
                "weights": 0.30,
                "kv": 0.05,
                "compute": 0.20,
                "communication": 0.0,
                "transfer": 0.0,
                "host": 0.0004,
                "unexplained": 0.4496,
            },
        ),
        bottleneck="undetermined",
    ),
    PhaseBudget(
        "mixed",
        30,
        0.60,
        0.20,
        0.020,
        _budget(
            0.60, {"weights": 0.30, "kv": 0.04, "compute": 0.62, "host": 0.06, "unexplained": -0.02}
        ),
    ),
    PhaseBudget("all", 218, 3.0, 1.0, 0.013761, ()),
)

# q_proj is 512 × 512 in fp32: 2·rows·512·512 FLOP over 1,048,576 + rows·1024·4 bytes.
OPERATORS = (
    OperatorRow("prefill", "q_proj", 8, 67_108_864, 1_572_864, 42.6667, "compute", 1.78957e-3),
    OperatorRow("prefill", "lm_head", 1, 8_388_608, 16_812_032, 0.49897, "memory", 0.840602e-3),
    OperatorRow("decode", "q_proj", 8, 3_145_728, 1_073_152, 2.93130, "memory", 0.429261e-3),
    OperatorRow("decode", "lm_head", 1, 50_331_648, 16_986_112, 2.96311, "memory", 0.849306e-3),
)

RULES = (
    RuleResult(
        "capacity",
        "memory use ≥ 95 % and an allocation failure",
        "not met",
        "no allocation failed: this engine preempts instead",
        (USED,),
    ),
    RuleResult(
        "bandwidth",
        "SM throughput < 30 % and DRAM bandwidth > 80 %",
        "not observable",
        "a CPU has no SM counter; MBU alone cannot prove DRAM high",
        (MBU,),
    ),
    RuleResult(
        "scheduling",
        "queue wait ≥ 20 % of end-to-end time and utilisation ≤ 70 %",
        "not observable",
        "busy time is an upper bound and lies above the line",
        (QUEUED, BUSY),
    ),
    RuleResult("decode-focus", "decode share > 90 %", "not met", "72 % by the engine", ()),
)

TIMELINE = (
    StepPoint(0.000, 0.030, "prefill", 0.20, 2, 6),
    StepPoint(0.030, 0.012, "decode", 0.45, 4, 4),
    StepPoint(0.042, 0.020, "mixed", 0.80, 5, 3),
    StepPoint(0.062, 0.012, "decode", 0.9975, 5, 3),
    StepPoint(0.074, 0.013, "decode", None, None, None),
)
ROOFLINE = Roofline(
    peak_flops=300e9,
    peak_bytes_per_s=20e9,  # ridge 15 FLOP/B
    kind="achievable",
    points=(RooflinePoint("prefill", 24.0, 210e9), RooflinePoint("decode", 2.9, 18e9)),
)


PHASES_APART = (PhaseWindow("prefill", "compute", 0.25), PhaseWindow("decode", "bandwidth", 0.75))
FILLED_LESS = Change(
    2.0,
    0.01,
    "all",
    State("capacity", "overloaded", None, "the KV cache is full"),
    State("none", "underloaded", None, "little is asked for"),
    (
        Figure("running", "running requests", "requests", 5.0, 1.0, "measured", "engine samples"),
        Figure("kv_used", "KV pool in use", "fraction", 0.9975, 0.12, "measured", "engine samples"),
    ),
)
DECODED_FASTER = Change(
    2.25,
    0.25,
    "decode",
    State("bandwidth", "served", None, "memory bandwidth limits"),
    State("undetermined", "served", None, "no limit stands out"),
    (Figure("step_time", "time of a step", "s", 0.012, 0.024, "measured", "steps"),),
)


@pytest.fixture
def busy() -> Diagnosis:
    """A run in which the KV pool was full: everything a report can show, and hostile names."""
    return Diagnosis(
        version="0.1.0",
        capture=CaptureInfo(
            (SourceInfo("stallscope", NASTY_PATH),),
            True,
            3.25,
            "cut at 3.25 s: the run did not end",
        ),
        subject=Subject(
            model=ModelSpec(NASTY_NAME, 512, 1408, 6, 8, 4, 64, 8192, 4096),
            device=DeviceSpec("cpu", {"fp32": 300e9}, 24 << 30, 20e9, "achievable", True),
            num_devices=2,
            dtype="fp32",
            kv_dtype="fp32",
            engine="builtin",
            workload="16 requests of 128 + 128 tokens, 8 clients",
        ),
        thresholds=Thresholds(near_limit=0.9),
        goal="throughput",
        verdict=Verdict(
            bottleneck="capacity",
            confidence=0.86,
            load="overloaded",
            phase="all",
            sentence=(
                "The KV cache is full (99.8 % of 8 MiB) while 3 requests wait, and 14 requests "
                "were thrown out and computed again: memory capacity limits this run."
            ),
            limits=Limits("capacity", "compute", "capacity"),
            next_limit="compute",
            chain=(
                Link("KV cache full", "preemption", ("kv_used_share", "preemptions")),
                Link("preemption", "prompts computed again", ("recomputed_tokens",)),
                Link("prompts computed again", "queue", ("queue_wait_share",)),
            ),
        ),
        document=DocumentVerdict(
            classes=(),
            advice=None,
            differs_because="no OOM: this engine preempts instead",
            sentence="By the document's rules: no rule is met; two are not observable.",
        ),
        rules=RULES,
        latency={
            "ttft_s": Distribution(0.412, 0.398, 0.801, 0.952, 16),
            "tpot_s": Distribution(0.0131, 0.0128, 0.0154, 0.0161, 16),
            "queue_s": Distribution(0.0, 0.0, 0.0000005, 0.31, 16),
        },
        throughput=Throughput(683.4, 682.7, None),
        phases=PHASES,
        operators=OPERATORS,
        kv_table=(
            # 12,288 bytes a token.
            KvRow(256, 3_145_728, "measured", "tensors of the pool"),
            KvRow(512, 6_291_456, "derived", "2 · 6 · 4 · 64 · 4 bytes a token"),
            KvRow(2048, 25_165_824, "derived", "2 · 6 · 4 · 64 · 4 bytes a token"),
        ),
        kv_life=(
            LifeStage("initialised", 30, 2_688, 33_030_144),
            LifeStage("appended", 210, 2_048, 25_165_824),
            LifeStage("read", 210, 500_000, 6_144_000_000),
            LifeStage("freed", 30, 4_736, 58_195_968),
        ),
        measures=(USED, PREEMPTIONS, QUEUED, BUSY, MBU, BANDWIDTH),
        remedies=(
            Remedy(
                "Give the KV pool room for 8 whole requests",
                {"builtin": "--kv-budget 24MiB", "vLLM": "--gpu-memory-utilization 0.95"},
                Gain("output_tokens_per_s", "tokens/s", 682.7, 911.0, 0.12),
                "preemptions fall to 0 in the next run",
                ("kv_used_share", "preemptions"),
            ),
            Remedy("Admit fewer requests at once", {"builtin": "--max-num-seqs 4"}, None, ""),
        ),
        wont_help=(WontHelp("Raise max_num_seqs", "the pool is full before the cap is reached"),),
        not_observable=(
            NotObservable("SM throughput", "a CPU has no such counter", "run on a CUDA device"),
            NotObservable("PSI", "not supported by this kernel", ""),
        ),
        windows=(
            Window(0.0, 1.0, "capacity", "overloaded", phases=PHASES_APART),
            Window(1.0, 2.0, "capacity", "overloaded", phases=PHASES_APART),
            Window(2.0, 3.0, "none", "underloaded", phases=PHASES_APART[1:]),
        ),
        changes=(FILLED_LESS, DECODED_FASTER),
        notes=("The probes before and after differ by 18 %: the machine was not steady.",),
        series=Series(TIMELINE, ROOFLINE),
    )


@pytest.fixture
def blind() -> Diagnosis:
    """A file from which nothing could be read but that it exists."""
    return Diagnosis(
        version="0.1.0",
        capture=CaptureInfo((), False, None),
        subject=Subject(),
        thresholds=Thresholds(),
        goal=None,
        verdict=Verdict(
            bottleneck="undetermined",
            confidence=0.0,
            load="idle",
            phase="all",
            sentence="Nothing was observed: add --gpu and --model to judge.",
            limits=Limits("undetermined", "undetermined", "undetermined"),
            between=("bandwidth", "host"),
        ),
        document=DocumentVerdict((), None, None, "By the document's rules: nothing observable."),
        rules=(),
        latency={},
        throughput=Throughput(None, None, None),
        phases=(),
        operators=(),
        kv_table=(),
        kv_life=(),
        measures=(),
        remedies=(),
        wont_help=(),
        not_observable=(),
        windows=(),
        notes=(),
    )
