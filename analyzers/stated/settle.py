"""Lay the user's facts over a capture: what it shows wins, and each contradiction is said."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from stallscope.analyzers.experiment.settings import setting_of
from stallscope.analyzers.stated.cap import why_no_such_cap, with_stated_cap
from stallscope.analyzers.stated.observed import mean_decoding, most_in_flight, most_running
from stallscope.analyzers.stated.other_model import why_another_model
from stallscope.profiler.capture import Capture
from stallscope.profiler.spec import DeviceSpec, ModelSpec
from stallscope.profiler.wording import counted, were

OPTIONS: Mapping[str, str] = {
    "model": "--model",
    "device": "--gpu",
    "num_devices": "--gpus",
    "dtype": "--dtype",
    "kv_dtype": "--kv-dtype",
    "max_num_seqs": "--max-num-seqs",
    "concurrency": "--concurrency",
}
_FIELDS = {"gpus": "num_devices"}
_NUMBERS = (
    *("max_num_seqs", "concurrency", "num_devices", "max_num_batched_tokens", "kv_budget_bytes"),
    "rate_per_s",
)


def settle(capture: Capture, stated: Mapping[str, Any]) -> tuple[Capture, tuple[str, ...]]:
    """Return the capture with the stated facts that it does not contradict, and warnings.

    `stated` are fields of Subject. A warning names the option, and why it was not used.
    """
    model = stated.get("model") or capture.subject.model
    whys = {name: _why_not(capture, name, value, model) for name, value in stated.items()}
    used = {name: value for name, value in stated.items() if whys[name] is None}
    settled = dataclasses.replace(capture, subject=dataclasses.replace(capture.subject, **used))
    if "max_num_seqs" in used and _recorded(capture, "max_num_seqs") is None:
        settled = with_stated_cap(settled)
    warnings = [f"{OPTIONS[name]} was not used: {why}." for name, why in whys.items() if why]
    if (model := used.get("model")) is not None:
        another = why_another_model(settled, model)
        if another is not None:
            subject = dataclasses.replace(settled.subject, model=capture.subject.model)
            settled = dataclasses.replace(settled, subject=subject)
            warnings.append(f"--model was not used: {another}.")
    return settled, tuple(warnings)


def contradiction(capture: Capture, setting: str, value: float | str) -> str | None:
    """Say what in a capture contradicts a setting that the user states of it; None for nothing."""
    row = setting_of(setting)
    names = (setting, *(row.names if row is not None else ()))
    fields = [_FIELDS.get(name, name) for name in names]
    field = next((name for name in fields if name in _NUMBERS), None)
    if field is None or not isinstance(value, float):
        return None
    return _why_not(capture, field, int(value) if value.is_integer() else value, None)


def _why_not(capture: Capture, name: str, value: Any, model: ModelSpec | None) -> str | None:
    """Say what in the capture contradicts a stated fact; None where nothing does."""
    recorded = _recorded(capture, name)
    if recorded is not None and not _agree(recorded, value):
        return f"{_shown(value)} was given, and the capture itself says {_shown(recorded)}"
    if name == "num_devices" and model is not None and value > most_devices(model):
        return (
            f"{value:,} was given, and {model.name} has {model.num_heads} attention heads in each "
            f"of {model.num_layers} layers to share"
        )
    if name == "max_num_seqs" and (why := why_no_such_cap(capture, value)) is not None:
        return why
    if name == "max_num_seqs" and (running := most_running(capture)) > value:
        return f"{value} was given, and {counted(running, 'request')} ran at once"
    if name == "max_num_seqs" and (mean := mean_decoding(capture) or 0.0) > _beyond(value):
        return f"{value} was given, and {mean:,.1f} requests were in decode on average"
    if name == "concurrency" and (flight := most_in_flight(capture)) > _beyond(value):
        given, flew = were(value, "client"), were(round(flight), "request")
        return f"{given} given, and {flew} in flight at once"
    return None


def most_devices(model: ModelSpec) -> int:
    """Return how many devices can share a model: each head of each layer on one of its own."""
    return model.num_heads * model.num_layers


def _beyond(value: float) -> float:
    """A request that its client has left may still be counted for a moment, and a mean is rough."""
    return 1.1 * value + 1


def _recorded(capture: Capture, name: str) -> Any:
    """Return a fact that the capture states; None where it does not, or only seems to show it."""
    if name == "num_devices":
        return _devices(capture)
    if name == "max_num_seqs" and any(e.data.get("infers") == name for e in capture.events):
        return None
    return getattr(capture.subject, name)


def _devices(capture: Capture) -> int | None:
    """Return how many devices a source states; one is what a subject says unasked."""
    count = capture.subject.num_devices
    log = capture.meta.get("server_log")
    is_stated = isinstance(log, Mapping) and "tensor_parallel" in log
    return count if count > 1 or is_stated else None


def _agree(recorded: Any, value: Any) -> bool:
    """Tell whether two facts are one: models by their shape, devices by name or memory."""
    if isinstance(recorded, DeviceSpec) and isinstance(value, DeviceSpec):
        return recorded.name == value.name or _is_refined(recorded, value)
    if dataclasses.is_dataclass(recorded) and dataclasses.is_dataclass(value):
        return bool(_shape(recorded) == _shape(value))
    return bool(recorded == value)


def _is_refined(recorded: DeviceSpec, value: DeviceSpec) -> bool:
    """Tell whether a description of the user's own, with no figure's source, is of this device."""
    return not value.sources and value.is_cpu == recorded.is_cpu


def _shape(model: Any) -> Any:
    return dataclasses.replace(model, name="", warnings=(), not_runnable=None)


def _shown(value: object) -> str:
    return str(getattr(value, "name", value))
