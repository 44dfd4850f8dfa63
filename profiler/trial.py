"""What a load generator offered and what it measured, one trial for each load."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

METRICS = ("ttft_s", "tpot_s", "itl_s", "e2e_s")
_COUNTS = ("concurrency", "cap", "completed", "failed", "engines", "started_unix_ns")


@dataclass(frozen=True, slots=True)
class Spread:
    """Seconds over `n` requests (or gaps); None is not told by the file."""

    mean: float | None = None
    p50: float | None = None
    p90: float | None = None
    p99: float | None = None
    n: int | None = None
    least: float | None = None
    most: float | None = None

    @property
    def typical(self) -> float | None:
        """The mean, else the median."""
        return self.p50 if self.mean is None else self.mean


@dataclass(frozen=True, slots=True)
class Trial:
    """One load, by the client's own clock; None is not told.

    `concurrency` clients were offered in a closed loop, or `rate_per_s` requests in an open one, of
    which the generator kept no more than `cap` in flight; neither: all at once. Tokens are means
    per request. `sent_per_s` and `send_delay_s` say how far the generator kept its own schedule.
    `tokens_per_step` is above 1 with speculative decoding (`speculative`: used, but not told how
    far). `engines` serve side by side. `waiting` is the server's own mean queue. `latency` has
    METRICS as keys, failed requests left out.
    """

    source: str
    concurrency: int | None = None
    rate_per_s: float | None = None
    cap: int | None = None
    completed: int | None = None
    failed: int | None = None
    duration_s: float | None = None
    input_tokens: float | None = None
    output_tokens: float | None = None
    input_tokens_per_s: float | None = None
    output_tokens_per_s: float | None = None
    requests_per_s: float | None = None
    in_flight: float | None = None
    sent_per_s: float | None = None
    send_delay_s: float | None = None
    tokens_per_step: float | None = None
    speculative: bool | None = None
    engines: int | None = None
    waiting: float | None = None
    started_unix_ns: int | None = None
    label: str | None = None
    latency: Mapping[str, Spread] = field(default_factory=dict)

    @property
    def failed_all(self) -> bool:
        """Whether not one request came back."""
        return self.completed == 0


def trials_to_json(trials: tuple[Trial, ...]) -> list[dict[str, Any]]:
    """Return trials as a capture's meta holds them; None is left out."""
    return [
        {
            **{k: v for k, v in asdict(trial).items() if v is not None and k != "latency"},
            "latency": {
                name: {k: v for k, v in asdict(spread).items() if v is not None}
                for name, spread in trial.latency.items()
            },
        }
        for trial in trials
    ]


def trials_from_json(data: object) -> tuple[Trial, ...]:
    """Read trials back; what does not fit is taken as not told, and a row of no trial left out."""
    rows = data if isinstance(data, list | tuple) else ()
    return tuple(_trial(row) for row in rows if isinstance(row, Mapping))


def _trial(row: Mapping[str, Any]) -> Trial:
    known = {f.name for f in fields(Trial)} - {"source", "latency", "label", "speculative"}
    numbers = {name: _number(name, row.get(name)) for name in known}
    told = row.get("latency")
    latency = told if isinstance(told, Mapping) else {}
    label, speculative = row.get("label"), row.get("speculative")
    return Trial(
        source=str(row.get("source", "")),
        label=label if isinstance(label, str) else None,
        speculative=speculative if isinstance(speculative, bool) else None,
        latency={m: _spread(latency[m]) for m in METRICS if isinstance(latency.get(m), Mapping)},
        **numbers,
    )


def _spread(row: Mapping[str, Any]) -> Spread:
    return Spread(**{f.name: _number(f.name, row.get(f.name)) for f in fields(Spread)})


def _number(name: str, value: object) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        return None
    return int(value) if name in (*_COUNTS, "n") and value < 2**63 else value
