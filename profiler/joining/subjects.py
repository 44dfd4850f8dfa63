"""What several sources say of one subject, and where they contradict each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from stallscope.profiler.capture import Event
from stallscope.profiler.joining.devices import gpus
from stallscope.profiler.joining.parts import Part
from stallscope.profiler.spec import Subject

# Fields that two sources may state differently only if one of them is of another run.
_SAID = {
    "engine": "engine",
    "dtype": "dtype",
    "kv_dtype": "KV dtype",
    "max_num_batched_tokens": "max_num_batched_tokens",
    "block_size": "block size",
    "kv_budget_bytes": "KV bytes",
    "concurrency": "concurrency",
    "rate_per_s": "request rate",
}


def joined_subject(parts: Sequence[Part]) -> Subject:
    """Take each fact from the first source that states it; of devices the most that one states."""
    joined = Subject()
    for part in parts:
        own = part.capture.subject
        missing = {
            field.name: getattr(own, field.name)
            for field in fields(Subject)
            if getattr(joined, field.name) is None
        }
        joined = replace(joined, **missing)
    cap = next((c for part in parts if (c := _stated_cap(part)) is not None), joined.max_num_seqs)
    most = max(part.capture.subject.num_devices for part in parts)
    isolated = any(part.capture.subject.isolated_phases for part in parts)
    return replace(joined, max_num_seqs=cap, num_devices=most, isolated_phases=isolated)


def _stated_cap(part: Part) -> int | None:
    """Return the cap on running requests that a source states; one that was only seen is lower."""
    is_seen = any(infers_cap(event) for event in part.capture.events)
    return None if is_seen else part.capture.subject.max_num_seqs


def infers_cap(event: Event) -> bool:
    """Tell whether an event says how a cap was seen that its source does not state."""
    return event.data.get("infers") == "max_num_seqs"


def cap_teller(parts: Sequence[Part]) -> Part | None:
    """Return the part whose cap on running requests is taken: the first that states one, or any."""
    stating = (p for p in parts if _stated_cap(p) is not None)
    seeing = (p for p in parts if p.capture.subject.max_num_seqs is not None)
    return next(stating, next(seeing, None))


def _facts(part: Part) -> Mapping[str, Any] | None:
    """Return what pages and logs state, None of other sources."""
    told = (part.capture.meta.get(kind) for kind in ("metrics_page", "server_log"))
    return next((facts for facts in told if isinstance(facts, Mapping)), None)


def contradictions(parts: Sequence[Part]) -> Iterator[str]:
    """Say which facts differ between sources; the first one's is taken."""
    for name, words in _SAID.items():
        yield from _differing(words, [(p, getattr(p.capture.subject, name)) for p in parts])
    yield from _differing("max_num_seqs", [(p, _stated_cap(p)) for p in parts])
    yield from _differing("device", [(p, _name(p.capture.subject.device)) for p in parts])
    yield from _models(parts)
    yield from _gpu_counts(parts)


def _differing(words: str, said: Sequence[tuple[Part, Any]]) -> Iterator[str]:
    told = [(part, value) for part, value in said if value is not None]
    for part, value in told[1:]:
        if value != told[0][1]:
            yield (
                f"{told[0][0].name} states {words} {told[0][1]}, {part.name} {value}: the first is "
                "taken. Are they of one run?"
            )


def _name(spec: Any) -> str | None:
    return None if spec is None else str(spec.name)


def _models(parts: Sequence[Part]) -> Iterator[str]:
    """Compare models by the last part of their names, as folders differ between machines."""
    told = [(part, name) for part in parts if (name := served_model(part)) is not None]
    for part, name in told[1:]:
        if _stem(name) != _stem(told[0][1]):
            yield (
                f"{told[0][0].name} is of model {told[0][1]}, {part.name} of {name}. Are they of "
                "one run?"
            )


def served_model(part: Part) -> str | None:
    """Return the model's name as a source states it."""
    told = _facts(part) or part.capture.meta.get("benchmark")
    name = told.get("model") if isinstance(told, Mapping) else None
    return name if isinstance(name, str) else None


def _stem(name: str) -> str:
    return name.rstrip("/").split("/")[-1].lower()


def _gpu_counts(parts: Sequence[Part]) -> Iterator[str]:
    """Compare the devices that the engine spreads a model over with the GPUs that were watched."""
    stated = max((p for p in parts), key=lambda p: p.capture.subject.num_devices)
    count = stated.capture.subject.num_devices
    for part in parts:
        seen = len(list(gpus(part)))
        if part is not stated and 0 < seen < count:
            yield (
                f"{stated.name} uses {count} GPUs, {part.name} tells of {seen}: the others were "
                "not watched, or they are of different runs."
            )
