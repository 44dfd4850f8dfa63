"""The model and the device that options name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from stallscope.errors import NotModelled, UsageError

if TYPE_CHECKING:
    from stallscope.profiler.capture import Capture
    from stallscope.profiler.spec import DeviceSpec, ModelSpec


def named_model(name: str | None) -> ModelSpec | None:
    """Return the model of --model, if it was given."""
    from stallscope.profiler.models import load_model

    return None if name is None else load_model(name)


def model_or_why(name: str | None) -> tuple[ModelSpec | None, str | None]:
    """Return the model, or why a recorded run is judged without: it need not be executed here."""
    try:
        return named_model(name), None
    except NotModelled as error:
        return None, f"Judged without a cost model: {error}."


def noting(capture: Capture, sentence: str | None) -> Capture:
    """Add a sentence to what the checks of a capture say, if there is one."""
    from stallscope.profiler.capture import Event

    if sentence is None:
        return capture
    note = Event(0, "check", None, {"sentence": sentence})
    return replace(capture, events=(note, *capture.events))


def named_device(
    gpu: str | None, gpu_file: Path | None, link: str | None = None
) -> DeviceSpec | None:
    """Return the device of --gpu or --gpu-file, if one was given, with the link that joins several.

    The speed of another link than the device's own is not known.
    """
    return with_link(_device(gpu, gpu_file), link)


def with_link(device: DeviceSpec | None, link: str | None) -> DeviceSpec | None:
    """Return the device with the link that joins several of it."""
    if link is None:
        return device
    if device is None:
        raise UsageError("--link joins devices; name them with --gpu")
    if (device.link or "").startswith(link):
        return device
    return replace(device, link=link, link_bytes_per_s=None)


def _device(gpu: str | None, gpu_file: Path | None) -> DeviceSpec | None:
    from stallscope.profiler.devices import load_device, load_device_file

    if gpu is not None and gpu_file is not None:
        raise UsageError("--gpu and --gpu-file name two devices; give one of them")
    if gpu_file is not None:
        return load_device_file(gpu_file)
    return None if gpu is None else load_device(gpu)
