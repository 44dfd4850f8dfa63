"""Options that several commands share, each declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

MOST = 2**31 - 1  # engines keep counts of requests and tokens in 32 bits

OutputOption = Annotated[
    Path | None,
    typer.Option(
        "-o",
        "--output",
        metavar="FILE",
        help="Write the report to FILE: .md (plots beside it), .json or .txt.",
    ),
]
FormatOption = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="text|markdown|json",
        help="Form of the report, whatever the suffix of -o says.",
    ),
]
ForceOption = Annotated[bool, typer.Option("--force", help="Overwrite files that exist.")]
FailOnOption = Annotated[
    str | None,
    typer.Option(
        "--fail-on",
        metavar="CLASS[,CLASS]",
        help="Exit with code 4 when the verdict is one of these: capacity, bandwidth, …",
    ),
]
ThresholdsOption = Annotated[
    Path | None,
    typer.Option("--thresholds", metavar="FILE", help="TOML file that moves the rules' lines."),
]
ExplainOption = Annotated[
    bool, typer.Option("--explain", help="Derive the verdict step by step, to check by hand.")
]
GoalOption = Annotated[
    Literal["ttft", "tpot", "throughput"] | None,
    typer.Option("--goal", help="What you want better; it picks the headline."),
]
GpuOption = Annotated[
    str | None, typer.Option("--gpu", metavar="NAME", help="Device, such as a100-sxm4-80gb.")
]
GpuFileOption = Annotated[
    Path | None,
    typer.Option("--gpu-file", metavar="FILE", help="A device that is not in the table, as JSON."),
]
UncalibratedOption = Annotated[
    bool, typer.Option("--uncalibrated", help="Leave out what was learnt of the device before.")
]
Dtype = Literal["fp32", "bf16", "fp16", "fp8", "int8", "int4", "mxfp4", "nvfp4"]
KvDtype = Literal["fp32", "bf16", "fp16", "fp8", "int8", "int4"]
MODEL_HELP = "A preset, a config.json, or a folder with one."
ModelOption = Annotated[str | None, typer.Option("--model", help=MODEL_HELP)]
GpusOption = Annotated[
    int | None, typer.Option("--gpus", min=1, max=MOST, metavar="N", help="How many.")
]
DtypeOption = Annotated[Dtype | None, typer.Option("--dtype", help="Of the weights.")]
KvDtypeOption = Annotated[KvDtype | None, typer.Option("--kv-dtype", help="Of the KV cache.")]
CapOption = Annotated[
    int | None,
    typer.Option(
        "--max-num-seqs", min=1, max=MOST, metavar="N", help="The engine's cap on running requests."
    ),
]
KeepOption = Annotated[
    Path | None,
    typer.Option("--capture", metavar="FILE", help="Keep what is judged here, to diagnose it."),
]
