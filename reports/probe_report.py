"""What a probe of the machine found, in each format that a plan has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict

from stallscope.profiler.spec import DeviceSpec, MachineReading, ProductTime
from stallscope.reports import format as fmt
from stallscope.reports.blocks import Cell, Column, Section, Table, Text, present
from stallscope.reports.json_report import SCHEMA, dumped
from stallscope.reports.markdown import render_sections as markdown_sections
from stallscope.reports.terminal import render_sections as terminal_sections

_SHOWN_ROWS = (1, 8, 32, 512)  # the file holds all
_FACTS = (Column(""), Column("Reached", "number"), Column("How", "quiet"))


def render_terminal(reading: MachineReading, *, width: int = 100, color: bool = False) -> str:
    """Return the reading as text."""
    return terminal_sections(_sections(reading), width=width, color=color)


def render_markdown(reading: MachineReading, *, version: str) -> str:
    """Return the reading as Markdown."""
    closing = f"stallscope {version}"
    return markdown_sections("stallscope plan --probe", _sections(reading), {}, closing=closing)


def render_json(reading: MachineReading, *, version: str) -> str:
    """Return the reading as JSON, schema 1."""
    return dumped({"schema": SCHEMA, "tool": "stallscope", "version": version, **_fields(reading)})


def _fields(reading: MachineReading) -> Mapping[str, object]:
    return {"probe": asdict(reading) | {"disturbed": reading.is_disturbed}}


def probe_sentence(reading: MachineReading) -> str:
    """Return the reading in one sentence."""
    device = reading.device
    peaks = " and ".join(f"{fmt.si(v, 'FLOP/s')} in {d}" for d, v in device.peak_flops.items())
    speed = fmt.si(device.memory_bytes_per_s, "B/s")
    return f"{device.name} reads {speed} and multiplies at {peaks}."


def disturbance(reading: MachineReading) -> str:
    """Say how quiet the machine was, and what that means for the figures."""
    cores = reading.other_cores
    taken = "what others took is not known" if cores is None else f"others took {cores:.2f} cores"
    change = f"{reading.stream_change:+.0%}".replace("-", "−").replace("%", " %")
    state = "disturbed" if reading.is_disturbed else "calm"
    so = "; the figures may be too low, measure again on a quiet one" * reading.is_disturbed
    return (
        f"The machine was {state} for these {reading.seconds:.0f} s: {taken}, and the bandwidth "
        f"changed by {change} from start to end{so}."
    )


def _sections(reading: MachineReading) -> tuple[Section, ...]:
    opening = (Text(probe_sentence(reading), "strong"), Text(disturbance(reading)))
    facts = Table(_FACTS, tuple(_facts(reading.device)))
    return present((Section("", (*opening, facts)), _products(reading.device)))


def _facts(device: DeviceSpec) -> Iterator[tuple[Cell, ...]]:
    sources = device.sources
    speed = fmt.si(device.memory_bytes_per_s, "B/s")
    yield "memory bandwidth", speed, sources.get("memory_bytes_per_s", "")
    for dtype, peak in device.peak_flops.items():
        yield f"arithmetic in {dtype}", fmt.si(peak, "FLOP/s"), sources.get("peak_flops", "")
    if device.launch_s is not None:
        yield "one small operator", fmt.seconds(device.launch_s), sources.get("launch_s", "")


def _products(device: DeviceSpec) -> Section:
    """Seconds of each product by its rows, as bytes or FLOPs per second of what binds it."""
    rows = [n for n in _SHOWN_ROWS if any(p.rows == n for p in device.products)]
    if not rows:
        return Section("", ())
    times = {(*_kind(p), p.rows): p.time_s for p in device.products}
    kinds = dict.fromkeys(_kind(p) for p in device.products)
    columns = (
        Column("Product"),
        Column("Of weights", "number"),
        *(Column(f"{n} rows", "number") for n in rows),
    )
    table = Table(
        columns,
        tuple(
            (
                f"{dtype}, {outputs}×{inputs}",
                fmt.bytes_size(amount) if amount else "",
                *(_time(times.get((dtype, outputs, inputs, amount, n))) for n in rows),
            )
            for dtype, outputs, inputs, amount in kinds
        ),
    )
    how = Text(
        "Median pass over matrices of a shape that take so much together, mean of one: what fits "
        "into a cache comes from there.",
        "quiet",
    )
    return Section("Products by shape class", (table, how))


def _kind(product: ProductTime) -> tuple[str, int, int, int]:
    return product.dtype, product.outputs, product.inputs, product.weight_bytes


def _time(seconds: float | None) -> str:
    return "" if seconds is None else fmt.seconds(seconds)
