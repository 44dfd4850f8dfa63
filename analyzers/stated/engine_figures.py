"""What the engine itself says of its memory, beside what the cost model counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from stallscope.analyzers.cost.arithmetic import weight_bytes
from stallscope.analyzers.cost.kv_bytes import cache_dtype, kv_bytes_per_token
from stallscope.analyzers.stated.said import engines_word, positive, ranks_of
from stallscope.analyzers.words import percent
from stallscope.profiler.capture import Capture
from stallscope.profiler.evidence import Measure

WORTH_SAYING = 0.05  # engines round what they print, and load a little besides the weights
# Ranks that split a context by eight and a cache of half the bytes; past that one of the figures
# is of something else.
_MOST_APART = 16.0


@dataclass(frozen=True, slots=True)
class EngineFigure:
    """A figure of each device by the engine, and by our count; None where that is not known."""

    measure: str
    what: str
    engine: float
    counted: float | None
    source: str
    ranks: int = 1

    @property
    def miss(self) -> float | None:
        """Return how far our count is from the engine's figure, relative to that."""
        return None if self.counted is None else self.counted / self.engine - 1.0

    @property
    def is_other(self) -> bool:
        """Whether the two differ by more than rounding, and by less than different things do."""
        if self.counted is None or self.miss is None or abs(self.miss) <= WORTH_SAYING:
            return False
        return 1 / _MOST_APART <= self.counted / self.engine <= _MOST_APART


def engine_figures(capture: Capture) -> tuple[EngineFigure, ...]:
    """Return what the engine says of weights and cache, as far as both are of the same thing.

    Of a pipeline a device holds some layers only; with offloaded weights it holds fewer; windows
    and recurrent states take no fixed bytes a token: there nothing is counted.
    """
    return tuple(_figures(capture, engines_word(capture)))


def _figures(capture: Capture, said: Mapping[str, object]) -> Iterator[EngineFigure]:
    subject = capture.subject
    spec, dtype = subject.model, subject.dtype
    ranks = ranks_of(capture, said)
    is_whole = (positive(said, "pipeline_parallel") or 1) <= 1
    loaded, counted = positive(said, "weights_bytes"), None
    if loaded is not None:
        if spec is not None and dtype is not None and is_whole and not subject.cpu_offload_bytes:
            counted = weight_bytes(spec, dtype, tensor_parallel=ranks)
        source = "the engine's own line on what loading the model took"
        yield EngineFigure("weights_bytes_stated", "weights", loaded, counted, source, ranks)
    size, tokens = positive(said, "kv_bytes"), positive(said, "kv_tokens")
    if size is None or tokens is None or positive(said, "kv_blocks_override"):
        return  # an overridden pool does not fill the memory that was found for it
    kv_dtype, counted = cache_dtype(subject), None
    is_plain = spec is not None and not spec.has_state and not spec.local_layers
    if spec is not None and kv_dtype is not None and is_plain and is_whole:
        counted = float(kv_bytes_per_token(spec, kv_dtype, tensor_parallel=ranks))
    source = "the engine's KV bytes ÷ the tokens that it says they hold"
    name, what = "kv_bytes_per_token_stated", "KV cache per token"
    yield EngineFigure(name, what, size / tokens, counted, source, ranks)


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
        f"{'more' if figure.miss > 0 else 'less'}. {_goes_by(capture, figure)} Check --model, "
        "--dtype, --kv-dtype and --gpus."
        for figure in engine_figures(capture)
        if figure.counted is not None
        and figure.miss is not None
        and abs(figure.miss) > WORTH_SAYING
    )


def _goes_by(capture: Capture, figure: EngineFigure) -> str:
    """Say what is counted by which of the two; see stored.py."""
    if not figure.is_other:
        return "They are too far apart to be of one thing, and nothing is counted by the engine's."
    if figure.measure.startswith("kv"):
        return "Room and reads of the cache are counted by the engine's figure."
    if figure.miss is not None and figure.miss < 0:
        return "A step may not read all that was loaded: its weights are counted by the model's."
    if capture.subject.model is not None and capture.subject.model.mixture is not None:
        return "Which of the experts are smaller is not known: they are counted by the model's."
    return "A step's weights are counted by the engine's figure."
