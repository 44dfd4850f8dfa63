"""`stallscope plan`: what to expect of a model on a device, without running it."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from stallscope import __version__
from stallscope.calibrate import keep, with_calibration
from stallscope.described_device import described_device
from stallscope.errors import UsageError
from stallscope.kept_devices import keep_device
from stallscope.link_values import check_links, linked_devices
from stallscope.options import (
    MOST,
    Dtype,
    ForceOption,
    FormatOption,
    GpuFileOption,
    GpuOption,
    KvDtype,
    ModelOption,
    OutputOption,
    UncalibratedOption,
)
from stallscope.output import Output, check_output, put, text_width, wants_color
from stallscope.plan_probe import (
    ProbedDevice,
    check_probing,
    deliver_reading,
    note_disturbance,
    take_reading,
)
from stallscope.plan_values import (
    LOOK_UP,
    check_offload,
    kv_lengths,
    named,
    offloaded,
    parse_dtypes,
)
from stallscope.same_files import check_not_read

if TYPE_CHECKING:
    from stallscope.analyzers.plan.result import Plan


def plan(
    model: ModelOption = None,
    gpu: GpuOption = None,
    gpu_file: GpuFileOption = None,
    gpus: Annotated[
        int,
        typer.Option(
            min=1, max=MOST, metavar="N", help="How many share the model (tensor parallel)."
        ),
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
    input_tokens: Annotated[
        int, typer.Option(min=1, max=MOST, metavar="N", help="Prompt length.")
    ] = 512,
    output_tokens: Annotated[
        int, typer.Option(min=1, max=MOST, metavar="N", help="Tokens to generate.")
    ] = 256,
    concurrency: Annotated[
        int, typer.Option(min=1, max=MOST, metavar="N", help="Requests at a time.")
    ] = 1,
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
    link: Annotated[
        str | None,
        typer.Option(
            metavar="LINK[,…]",
            help="What joins the devices: nvlink, pcie, pcie4, 50GB/s, …; the device's own if not "
            "given. Several are compared.",
        ),
    ] = None,
    host_link: Annotated[
        str | None,
        typer.Option(metavar="LINK[,…]", help="To the host, for --cpu-offload; likewise."),
    ] = None,
    speculate: Annotated[
        int | None,
        typer.Option(min=1, max=MOST, metavar="N", help="Tokens to draft before each step."),
    ] = None,
    acceptance: Annotated[
        float | None,
        typer.Option(
            min=0.0, max=1.0, metavar="P", help="Of each drafted token; 0.7 if not given."
        ),
    ] = None,
    draft: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL|lookup",
            help="What drafts; the model's own draft layers if not given, else a look-up.",
        ),
    ] = None,
    probe: Annotated[
        bool,
        typer.Option(
            "--probe",
            help="Measure the device at hand first: a minute or, where others use it, several.",
        ),
    ] = False,
    device: Annotated[
        ProbedDevice | None, typer.Option(help="What --probe measures; auto if not given.")
    ] = None,
    write_gpu_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Keep what was measured, for --gpu-file."),
    ] = None,
    calibrate: Annotated[
        list[Path] | None,
        typer.Option(metavar="CAPTURE", help="Learn from this run what the engine takes; repeat."),
    ] = None,
    save_calibration: Annotated[
        bool,
        typer.Option("--save-calibration", help="Keep what --calibrate learns for later commands."),
    ] = False,
    uncalibrated: UncalibratedOption = False,
    output: OutputOption = None,
    format: FormatOption = None,
    force: ForceOption = False,
) -> None:
    """Predict memory, speed and limits of a model on a device, without a run."""
    recorded = calibrate or ()
    check_not_read({"-o": output}, (*recorded, model, draft, gpu_file))
    check_not_read({"--write-gpu-file": write_gpu_file}, (*recorded, model, draft))
    destination = check_output(output, format=format, force=force)
    if save_calibration and not recorded:
        raise UsageError("--save-calibration keeps what --calibrate learns: add --calibrate")
    if uncalibrated and recorded:
        raise UsageError("--uncalibrated leaves out what --calibrate learns; give one of them")
    check_probing(
        probe,
        device=device,
        write_gpu_file=write_gpu_file,
        names_device=gpu is not None or gpu_file is not None,
        calibrates=bool(recorded),
        force=force,
    )
    weights = parse_dtypes(dtype, "--dtype", get_args(Dtype))
    caches = parse_dtypes(kv_dtype, "--kv-dtype", get_args(KvDtype))
    if model is None and not probe:
        raise UsageError("Missing option '--model': say what to plan, or add --probe")
    from stallscope.profiler.models import load_model

    spec = None if model is None else load_model(model)
    reading = None
    if probe:
        own = (spec.dtype,) if spec is not None else ()
        reading = take_reading(device, named(weights) or named(own))
    is_anew = uncalibrated or bool(recorded)
    described = (
        described_device(gpu, gpu_file, uncalibrated=is_anew) if reading is None else reading.device
    )
    described = with_calibration(described, recorded)
    if save_calibration and described is not None:
        keep_device(described)
    if write_gpu_file is not None and described is not None:
        keep(described, write_gpu_file)
    if spec is None:
        if reading is not None:
            deliver_reading(reading, destination)
        return
    if reading is not None:
        note_disturbance(reading)
    from stallscope.analyzers.plan.options import DEFAULT_ACCEPTANCE, PlanOptions
    from stallscope.analyzers.plan.planner import plan as plan_model

    check_links(link, host_link, gpus=gpus, offload=cpu_offload)
    links = linked_devices(described, link, host_link)
    described = links[0] if links else None
    if spec.num_heads % gpus:
        raise UsageError(
            f"--gpus {gpus}: {spec.name}'s {spec.num_heads} attention heads cannot be shared evenly"
        )
    if draft is not None and speculate is None:
        raise UsageError("--draft drafts nothing without --speculate: say how many tokens a step")
    if acceptance is not None and speculate is None:
        raise UsageError("--acceptance is of drafted tokens: add --speculate N, how many a step")
    options = PlanOptions(
        model=spec,
        device=described,
        num_devices=gpus,
        dtype=weights[0],
        kv_dtype=caches[0],
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        concurrency=concurrency,
        kv_lengths=kv_lengths(kv_table, spec),
        choices=tuple(product(weights, caches)),
        sweep=sweep,
        cpu_offload_bytes=offloaded(cpu_offload, described),
        drafted=speculate,
        acceptance=DEFAULT_ACCEPTANCE if acceptance is None else acceptance,
        draft=None if draft in (None, LOOK_UP) else load_model(draft),
        looks_up=draft == LOOK_UP,
        links=links,
    )
    check_offload(options)
    deliver_plan(plan_model(options), destination)


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
