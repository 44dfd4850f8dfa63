"""What the engine itself says of its memory, beside what the cost model counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from stallscope.analyzers.cost.arithmetic import weight_bytes
from stallscope.analyzers.cost.kv_bytes import kv_bytes_per_token
from stallscope.analyzers.words import percent
from stallscope.profiler.capture import Capture
from stallscope.profiler.evidence import Measure

WORTH_SAYING = 0.05  # engines round what they print, and load a little besides the weights
_SOURCES = ("server_log", "metrics_page")


@dataclass(frozen=True, slots=True)
class EngineFigure:
    """A figure of each device by the engine, and by our count; None where that is not known."""

    measure: str
    what: str
    engine: float
    counted: float | None
    source: str

    @property
    def miss(self) -> float | None:
        """Return how far our count is from the engine's figure, relative to that."""
        return None if self.counted is None else self.counted / self.engine - 1.0


def engine_figures(capture: Capture) -> tuple[EngineFigure, ...]:
    """Return what the engine says of weights and cache, as far as both are of the same thing.

    Of a pipeline a device holds some layers only; with offloaded weights it holds fewer; windows
    and recurrent states take no fixed bytes a token: there nothing is counted.
    """
    said: dict[str, object] = {}
    for source in _SOURCES:
        stated = capture.meta.get(source)
        said |= dict(stated) if isinstance(stated, Mapping) else {}
    return tuple(_figures(capture, said))


def _figures(capture: Capture, said: Mapping[str, object]) -> Iterator[EngineFigure]:
    subject = capture.subject
    spec, dtype = subject.model, subject.dtype
    ranks = round(_positive(said, "tensor_parallel") or subject.num_devices)
    is_whole = (_positive(said, "pipeline_parallel") or 1) <= 1
    loaded, counted = _positive(said, "weights_bytes"), None
    if loaded is not None:
        if spec is not None and dtype is not None and is_whole and not subject.cpu_offload_bytes:
            counted = weight_bytes(spec, dtype, tensor_parallel=ranks)
        source = "the engine's own line on what loading the model took"
        yield EngineFigure("weights_bytes_stated", "weights", loaded, counted, source)
    size, tokens = _positive(said, "kv_bytes"), _positive(said, "kv_tokens")
    if size is None or tokens is None:
        return
    kv_dtype, counted = subject.kv_dtype or dtype, None
    is_plain = spec is not None and not spec.has_state and not spec.local_layers
    if spec is not None and kv_dtype is not None and is_plain and is_whole:
        counted = float(kv_bytes_per_token(spec, kv_dtype, tensor_parallel=ranks))
    source = "the engine's KV bytes ÷ the tokens that it says they hold"
    yield EngineFigure(
        "kv_bytes_per_token_stated", "KV cache per token", size / tokens, counted, source
    )


def _positive(said: Mapping[str, object], name: str) -> float | None:
    value = said.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 < value < 2**63 else None


def engine_measures(capture: Capture) -> tuple[Measure, ...]:
    """Return the engine's own figures, each of one device."""
    return tuple(
        Measure(
            figure.measure,
            figure.engine,
            "bytes",
            "derived" if figure.measure.startswith("kv") else "measured",
            f"{figure.source}, of each device",
        )
        for figure in engine_figures(capture)
    )


def disagreements(capture: Capture) -> tuple[str, ...]:
    """Say where our count is more than a twentieth off; then the engine's figure is the truth."""
    return tuple(
        f"The engine's own figure for {figure.what} is {figure.engine:,.0f} bytes on each device; "
        f"the model as it is described takes {figure.counted:,.0f}, {percent(abs(figure.miss))} "
        f"{'more' if figure.miss > 0 else 'less'}. The engine's figure holds; check --model, "
        "--dtype, --kv-dtype and --gpus."
        for figure in engine_figures(capture)
        if figure.counted is not None
        and figure.miss is not None
        and abs(figure.miss) > WORTH_SAYING
    )
