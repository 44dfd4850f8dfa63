"""Subject to JSON and back, exactly; keys of newer versions are ignored."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, get_args, get_origin, get_type_hints

from stallscope.profiler.spec import Subject


def subject_to_json(subject: Subject) -> dict[str, Any]:
    """Return the subject as plain dicts and lists."""
    encoded: dict[str, Any] = _encode(subject)
    return encoded


def checked_subject_json(subject: Subject) -> dict[str, Any]:
    """Return the subject as JSON; ValueError names the field that a reader would not accept."""
    if not isinstance(subject, Subject):
        raise TypeError(f"a subject is a Subject, not {subject!r:.40}")
    data = subject_to_json(subject)
    subject_from_json(data)
    return data


def subject_from_json(data: object) -> Subject:
    """Rebuild a subject; ValueError names the field that does not fit."""
    decoded = _decode(Subject, data, "subject")
    assert isinstance(decoded, Subject)
    return decoded


def _encode(value: Any) -> Any:
    if is_dataclass(value):
        return {field.name: _encode(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {key: _encode(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [_encode(item) for item in value]
    return value


def _decode(kind: Any, value: Any, where: str) -> Any:
    if isinstance(kind, types.UnionType):
        if value is None:
            return None
        kind = next(option for option in get_args(kind) if option is not types.NoneType)
    if is_dataclass(kind):
        return _decode_dataclass(kind, value, where)
    origin = get_origin(kind)
    if origin is tuple and isinstance(value, list):
        return tuple(_decode(get_args(kind)[0], item, where) for item in value)
    if origin is Mapping and isinstance(value, dict):
        return {key: _decode(get_args(kind)[1], item, where) for key, item in value.items()}
    if _fits(kind, value):
        return value
    raise ValueError(f"{where} cannot be {value!r:.40}")


def _fits(kind: Any, value: object) -> bool:
    if kind is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if isinstance(kind, type):
        return type(value) is kind
    return value in get_args(kind)  # a Literal


def _decode_dataclass(kind: Any, value: object, where: str) -> Any:
    if not isinstance(value, dict):
        raise ValueError(f"{where} cannot be {value!r:.40}")
    hints = get_type_hints(kind)
    known = {}
    for field in fields(kind):
        if field.name in value:
            name = f"{where}.{field.name}"
            known[field.name] = _decode(hints[field.name], value[field.name], name)
        elif field.default is MISSING and field.default_factory is MISSING:
            raise ValueError(f"{where} lacks {field.name}")
    return kind(**known)
