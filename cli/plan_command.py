"""`stallscope plan`: what to expect of a model on a device, without running it."""

from __future__ import annotations

import dataclasses
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from stallscope import __version__
from stallscope.errors import UsageError
from stallscope.named_specs import named_device
from stallscope.options import (
    MODEL_HELP,
    Dtype,
    ForceOption,
    FormatOption,
    GpuFileOption,
    GpuOption,
    KvDtype,
    OutputOption,
)
from stallscope.output import Output, check_output, put, text_width, wants_color
from stallscope.plan_probe import (
    ProbedDevice,
    check_probing,
    deliver_reading,
    note_disturbance,
    take_reading,
)
from stallscope.sizes import parse_bytes

if TYPE_CHECKING:
    from stallscope.analyzers.plan.options import PlanOptions
    from stallscope.analyzers.plan.result import Plan
    from stallscope.profiler.spec import DeviceSpec


def plan(
    model: Annotated[str | None, typer.Option(help=MODEL_HELP)] = None,
    gpu: GpuOption = None,
    gpu_file: GpuFileOption = None,
    gpus: Annotated[
        int, typer.Option(min=1, metavar="N", help="How many share the model (tensor parallel).")
    ] = 1,
    dtype: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DTYPE[,…]",
            help="Of the weights; the checkpoint's own if not given. Several are compared.",
        ),
    ] = None,
    kv_dtype: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DTYPE[,…]",
            help="Of the KV cache; as the weights if they are 16 or 32 bit. Several are compared.",
        ),
    ] = None,
    input_tokens: Annotated[int, typer.Option(min=1, metavar="N", help="Prompt length.")] = 512,
    output_tokens: Annotated[
        int, typer.Option(min=1, metavar="N", help="Tokens to generate.")
    ] = 256,
    concurrency: Annotated[int, typer.Option(min=1, metavar="N", help="Requests at a time.")] = 1,
    kv_table: Annotated[
        str | None,
        typer.Option(metavar="N,N,…", help="Lengths at which to show the size of the KV cache."),
    ] = None,
    sweep: Annotated[
        bool, typer.Option("--sweep", help="Show how it goes with more requests at a time.")
    ] = False,
    cpu_offload: Annotated[
        str | None,
        typer.Option(metavar="BYTES", help="Of weights on each device, kept in host memory."),
    ] = None,
    speculate: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Tokens to draft before each step.")
    ] = None,
    acceptance: Annotated[
        float | None,
        typer.Option(
            min=0.0, max=1.0, metavar="P", help="Of each drafted token; 0.7 if not given."
        ),
    ] = None,
    draft: Annotated[
        str | None, typer.Option(metavar="MODEL", help="What drafts; looked up if not given.")
    ] = None,
    probe: Annotated[
        bool, typer.Option("--probe", help="Measure the device at hand first; takes a minute.")
    ] = False,
    device: Annotated[
        ProbedDevice | None, typer.Option(help="What --probe measures; auto if not given.")
    ] = None,
    write_gpu_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Keep what --probe measured, for --gpu-file."),
    ] = None,
    output: OutputOption = None,
    format: FormatOption = None,
    force: ForceOption = False,
) -> None:
    """Predict memory, speed and limits of a model on a device, without a run."""
    destination = check_output(output, format=format, force=force)
    probing = check_probing(
        probe,
        device=device,
        write_gpu_file=write_gpu_file,
        names_device=gpu is not None or gpu_file is not None,
        force=force,
    )
    weights = parse_dtypes(dtype, "--dtype", get_args(Dtype))
    caches = parse_dtypes(kv_dtype, "--kv-dtype", get_args(KvDtype))
    if model is None:
        if probing is None:
            raise UsageError("Missing option '--model': say what to plan, or add --probe")
        deliver_reading(take_reading(probing, named(weights)), destination)
        return
    from stallscope.analyzers.kv_life import DEFAULT_LENGTHS
    from stallscope.analyzers.plan.options import DEFAULT_ACCEPTANCE, PlanOptions
    from stallscope.analyzers.plan.planner import plan as plan_model
    from stallscope.profiler.models import load_model

    spec = load_model(model)
    if spec.num_heads % gpus:
        raise UsageError(
            f"--gpus {gpus}: {spec.name}'s {spec.num_heads} attention heads cannot be shared evenly"
        )
    if draft is not None and speculate is None:
        raise UsageError("--draft drafts nothing without --speculate: say how many tokens a step")
    if acceptance is not None and speculate is None:
        raise UsageError("--acceptance is of drafted tokens: add --speculate N, how many a step")
    planned = named_device(gpu, gpu_file)
    if probing is not None:
        reading = take_reading(probing, named(weights) or named((spec.dtype,)))
        note_disturbance(reading)
        planned = reading.device
    options = PlanOptions(
        model=spec,
        device=planned,
        num_devices=gpus,
        dtype=weights[0],
        kv_dtype=caches[0],
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        concurrency=concurrency,
        kv_lengths=DEFAULT_LENGTHS if kv_table is None else parse_lengths(kv_table),
        choices=tuple(product(weights, caches)),
        sweep=sweep,
        cpu_offload_bytes=offloaded(cpu_offload, planned),
        drafted=speculate,
        acceptance=DEFAULT_ACCEPTANCE if acceptance is None else acceptance,
        draft=None if draft is None else load_model(draft),
    )
    check_offload(options)
    deliver_plan(plan_model(options), destination)


def named(dtypes: tuple[str | None, ...]) -> tuple[str, ...]:
    """Return the dtypes that were given."""
    return tuple(dtype for dtype in dtypes if dtype is not None)


def check_offload(options: PlanOptions) -> None:
    """Refuse to keep more weights in host memory than there are."""
    from stallscope.analyzers.plan.memory import memory_map
    from stallscope.analyzers.plan.options import subject_of

    whole = dataclasses.replace(options, cpu_offload_bytes=0)
    there = memory_map(whole, subject_of(whole)).weights_bytes
    if options.cpu_offload_bytes > there:
        raise UsageError(
            f"--cpu-offload: {options.model.name} has {there / 2**30:.1f} GiB of weights on each "
            "device; give less"
        )


def offloaded(size: str | None, device: DeviceSpec | None) -> int:
    """Return the bytes that --cpu-offload names, where the link to the host is known."""
    if size is None:
        return 0
    if device is not None and device.to_host_bytes_per_s is None:
        raise UsageError(
            f"--cpu-offload: the link of {device.name} to its host is not known; "
            "give host_link_bytes_per_s in a --gpu-file"
        )
    return parse_bytes(size, "--cpu-offload")


def parse_dtypes(
    given: list[str] | None, option: str, known: tuple[str, ...]
) -> tuple[str | None, ...]:
    """Return the dtypes that an option names, once each, as a comma list or repeated."""
    names = tuple(dict.fromkeys(name for part in given or () for name in part.split(",")))
    for name in names:
        if name not in known:
            raise UsageError(f"{option}: {name!r} is not one of {', '.join(known)}")
    return names or (None,)


def parse_lengths(text: str) -> tuple[int, ...]:
    """Return the sequence lengths that --kv-table names."""
    try:
        lengths = tuple(int(part) for part in text.split(","))
    except ValueError:
        lengths = (0,)
    if min(lengths) < 1:
        raise UsageError(f"--kv-table: {text!r} is not a list of lengths; write 512,1024,2048")
    return lengths


def deliver_plan(planned: Plan, output: Output) -> None:
    """Print or write the plan."""
    from stallscope.reports.plan_report import render_json, render_markdown, render_terminal
    from stallscope.reports.plan_sections import plan_sentence

    if output.format == "json":
        text = render_json(planned, version=__version__)
    elif output.format == "markdown":
        text = render_markdown(planned, version=__version__)
    else:
        text = render_terminal(planned, width=text_width(output), color=wants_color(output))
    put(text, output, plan_sentence(planned))
