"""Device samples of several sources: each device by one name, and none that is two."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stallscope.profiler.capture import SAMPLE_WINDOW_NS, DeviceSample
from stallscope.profiler.joining.parts import Part


@dataclass(frozen=True, slots=True)
class Devices:
    """The samples kept, what is known of the devices by name, and what is said of the rest."""

    samples: tuple[DeviceSample, ...]
    facts: Mapping[str, Any]
    sentences: tuple[str, ...]


def joined_devices(parts: Sequence[Part], span_ns: tuple[int, int] | None) -> Devices:
    """Join the device samples of sources that stand on one clock, inside the run's span.

    What a GPU did before and after says nothing of the run. A name that two sources give to devices
    that are not the same gets the later source's name with it.
    """
    found: list[DeviceSample] = []
    facts: dict[str, Any] = {}
    sentences: list[str] = []
    for part in parts:
        names = _names(part, facts, {(s.device, s.name) for s in found})
        own = part.capture.meta.get("devices") or {}
        facts |= {names.get(name, name): fact for name, fact in own.items()}
        samples = [s._replace(device=names[s.device]) for s in part.capture.device_samples]
        inside = samples if span_ns is None else [s for s in samples if _lies_in(s, span_ns)]
        found += inside
        if len(inside) < len(samples):
            sentences.append(
                f"{len(samples) - len(inside):,} of {len(samples):,} samples of {part.name} were "
                "taken before or after the run and are left out."
            )
    found.sort(key=lambda s: s.t_ns)
    return Devices(tuple(found), facts, tuple(sentences))


def _lies_in(sample: DeviceSample, span_ns: tuple[int, int]) -> bool:
    return span_ns[0] <= sample.t_ns <= span_ns[1] + SAMPLE_WINDOW_NS


def _names(part: Part, facts: Mapping[str, Any], taken: set[tuple[str, str]]) -> Mapping[str, str]:
    """Map a source's names of devices to those of the joined capture."""
    own = part.capture.meta.get("devices") or {}
    counters: dict[str, set[str]] = {}
    for sample in part.capture.device_samples:
        counters.setdefault(sample.device, set()).add(sample.name)
    return {
        device: f"{device} ({part.name})"
        if any((device, name) in taken for name in names)
        and not _is_one(own.get(device), facts.get(device))
        else device
        for device, names in counters.items()
    }


def _is_one(fact: object, other: object) -> bool:
    """Tell whether two sources mean one device: they state the same UUID."""
    told = [f.get("uuid") for f in (fact, other) if isinstance(f, Mapping)]
    return len(told) == 2 and told[0] is not None and told[0] == told[1]


def gpus(part: Part) -> Iterator[str]:
    """Yield the names of whole GPUs that a source tells of."""
    for name in part.capture.meta.get("devices") or {}:
        if " MIG " not in name:
            yield name
