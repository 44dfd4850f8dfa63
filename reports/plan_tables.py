"""A plan's tables of alternatives: dtypes side by side, more requests at once, speculation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stallscope.analyzers.cost.speculation import Speculation
from stallscope.analyzers.plan.result import Attribution, Choice, Interval, Launches, LinkRow, Sweep
from stallscope.reports import format as fmt
from stallscope.reports.blocks import Cell, Column, Section, Table, Text

_PAIR = (Column("Weights"), Column("KV"))
_CHOICES = (
    *(*_PAIR, Column("Size", "number"), Column("Fit", "number"), Column("Run", "number")),
    *(Column("TPOT", "number"), Column("Wait", "number"), Column("Tokens/s", "number")),
)
_WAIT = (
    "Wait is of a request on average: before its first token, which is in TTFT, and whenever it is "
    "preempted after that, which is in TPOT, so that it may be more than TTFT."
)
_GAINS = (
    *(*_PAIR, Column("Gain", "number"), Column("Fewer bytes", "number")),
    *(Column("Larger batch", "number"), Column("Less queueing", "number")),
)
_SWEEP = (
    *(Column("At once", "number"), Column("Run", "number"), Column("Decode is limited by")),
    *(Column("Step", "number"), Column("TPOT", "number"), Column("Tokens/s", "number")),
)


_LINKS = (
    *(Column("Between", "number"), Column("To host", "number")),
    *(Column("Communication", "number"), Column("Transfer", "number")),
    *(Column("TTFT", "number"), Column("TPOT", "number"), Column("Tokens/s", "number")),
)


def choices_of(choices: Sequence[Choice]) -> Section:
    """Set dtypes side by side, with what each gains over the first and why."""
    if not choices:
        return Section("", ())
    first = f"{choices[0].dtype} weights and {choices[0].kv_dtype} KV"
    text = (
        f"Gains in output tokens per second over {first}: fewer bytes in the same room, then a "
        "larger batch where nobody waits, and the rest, which waiting and preemption cost."
    )
    if any(choice.wait_s for choice in choices):
        text = f"{_WAIT} {text}"
    gains = tuple(_gain(choice, choice.gain) for choice in choices if choice.gain is not None)
    tables = (Table(_CHOICES, tuple(_choice(choice) for choice in choices)), Table(_GAINS, gains))
    return Section("Choices side by side", (*tables, Text(text)))


def _choice(choice: Choice) -> tuple[Cell, ...]:
    fits = choice.max_concurrency
    return (
        *(choice.dtype, choice.kv_dtype, fmt.bytes_size(choice.weights_bytes)),
        *("" if fits is None else f"{fits:,}", f"{choice.running:,}"),
        *("" if v is None else fmt.seconds(v) for v in (choice.tpot_s, choice.wait_s)),
        _rate(choice.throughput_tokens_per_s),
    )


def _gain(choice: Choice, gain: Attribution) -> tuple[Cell, ...]:
    parts = (gain.total, gain.fewer_bytes, gain.larger_batch, gain.less_queueing)
    return (choice.dtype, choice.kv_dtype, *(_signed(value) for value in parts))


def _rate(value: float | None) -> str:
    return "" if value is None else fmt.number(value)


def _signed(value: float) -> str:
    return f"{'+' if value > 0 else ''}{fmt.number(value)}"


def sweep_of(sweep: Sweep | None) -> Section:
    """Show how it goes with more requests at once, and where it turns."""
    if sweep is None:
        return Section("", ())
    rows = tuple(
        (
            f"{row.concurrency:,}",
            f"{row.running:,}",
            row.bound,
            fmt.seconds(row.step_s),
            "" if row.tpot_s is None else fmt.seconds(row.tpot_s),
            _rate(row.throughput_tokens_per_s),
        )
        for row in sweep.rows
    )
    return Section("More requests at once", (Table(_SWEEP, rows), Text(" ".join(_turns(sweep)))))


def _turns(sweep: Sweep) -> Iterator[str]:
    if sweep.compute_from is None:
        yield "Decode is never limited by compute: each request brings its own KV cache to read."
    else:
        yield f"Decode turns to compute at {sweep.compute_from:,} requests, memory left aside."
    if sweep.kv_full_from is not None:
        yield f"From {sweep.kv_full_from:,} requests on the KV cache has run out and the rest wait."


def links_of(rows: Sequence[LinkRow]) -> Section:
    """Set links side by side, with what goes over them in a decode step."""
    if not rows:
        return Section("", ())
    table = Table(_LINKS, tuple(_link(row) for row in rows))
    text = (
        "Rates are of one direction; communication and transfer are of a decode step, on top of "
        "the rest of it."
    )
    return Section("Links side by side", (table, Text(text)))


def _link(row: LinkRow) -> tuple[Cell, ...]:
    rates = (row.link_bytes_per_s, row.host_link_bytes_per_s)
    return (
        *("not known" if rate is None else fmt.si(rate, "B/s") for rate in rates),
        *(fmt.seconds(value) for value in (row.communication_s, row.transfer_s)),
        *("" if v is None else fmt.seconds(v) for v in (row.ttft_s, row.tpot_s)),
        _rate(row.throughput_tokens_per_s),
    )


def launches_of(found: Launches | None) -> Section:
    """Say what launching a decode step's kernels costs, from graphs and one by one."""
    if found is None:
        return Section("", ())
    text = (
        f"{found.kernels:,} kernels, estimated. Replayed from CUDA graphs, as engines do by "
        f"default, they take {_between(found.graph_s)} of a step of {fmt.seconds(found.step_s)}. "
        f"Launched one by one (--enforce-eager) they keep the host busy for "
        f"{_between(found.eager_s)}: a step of {_between(found.eager_step_s)}."
    )
    return Section("Launching a decode step", (Text(text),))


def _between(interval: Interval) -> str:
    least, most = (fmt.seconds(value) for value in interval)
    return least if least == most else f"{least} to {most}"


def speculation_of(found: Speculation | None) -> Section:
    """Say what drafting tokens buys at the plan's load."""
    if found is None:
        return Section("", ())
    text = (
        f"{found.drafted} drafted tokens, each accepted at {fmt.percent(found.acceptance)}: "
        f"{found.tokens:.2f} tokens a step of {fmt.seconds(found.step_s)} and "
        f"{fmt.seconds(found.draft_s)} of drafting, {fmt.seconds(found.tpot_s)} a token instead of "
        f"{fmt.seconds(found.plain_s)}: {found.speedup:.2f} times as fast."
    )
    return Section("Speculative decoding", (Text(text),))
