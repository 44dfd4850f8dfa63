"""Rows as the observed thread leaves them: plain tuples, of which rows are made later.

Beside a model that streams its weights through the caches every line of code and memory that a
call touches is fetched from far away: what costs half a microsecond alone costs three there. So the
caller checks its values, puts them down as they are, and somebody else makes the row.

A note is `(kind, *values)`, and the classes here say what follows each kind; they are how a note is
read back from a file, which may be anybody's, so that the type of every value is checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from stallscope.profiler.capture import DeviceSample, EngineSample, Event, Step, Token
from stallscope.profiler.capture_rows import EncodedEvent
from stallscope.profiler.counts import BITS
from stallscope.profiler.engine_sampler import EngineState, State

Note = tuple[Any, ...]
Count = int | None
Work = tuple[str, bool, int, int, int, Count, Count, Count]  # a StepWork's
NotedRow = Step | Token | Event | EncodedEvent | EngineSample | DeviceSample


class StepNote(msgspec.Struct, array_like=True, forbid_unknown_fields=True, tag="step"):
    """An engine's own row of a step."""

    row: Step

    def rows(self) -> Iterator[NotedRow]:
        yield self.row


class TimedNote(msgspec.Struct, array_like=True, forbid_unknown_fields=True, tag="timed"):
    """A step that a StepSpan timed; what it did not spend in its forward calls is the host's."""

    number: int
    start_ns: int
    end_ns: int
    forward_ns: int | None
    work: Work
    engine: State

    def rows(self) -> Iterator[NotedRow]:
        forward_ns, work = self.forward_ns, self.work
        host_ns = None if forward_ns is None else self.end_ns - self.start_ns - forward_ns
        times = (self.number, 0, self.start_ns, self.end_ns, forward_ns, host_ns)
        yield Step(*times, *work[:6], *self.engine, *work[6:], None)


class TokenNote(msgspec.Struct, array_like=True, forbid_unknown_fields=True, tag="token"):
    """A generated token."""

    request: int
    t_ns: int

    def rows(self) -> Iterator[NotedRow]:
        yield Token(self.request, self.t_ns)


class KvNote(msgspec.Struct, array_like=True, forbid_unknown_fields=True, tag="kv"):
    """What a step put into the KV cache and what it read from it."""

    t_ns: int
    appended: int
    read: int
    token_bytes: int

    def rows(self) -> Iterator[NotedRow]:
        for kind, tokens in (("kv_append", self.appended), ("kv_read", self.read)):
            data = {"tokens": tokens, "bytes": tokens * self.token_bytes}
            yield Event(self.t_ns, kind, None, data)


class EventNote(msgspec.Struct, array_like=True, forbid_unknown_fields=True, tag="event"):
    """Something that happened, told in whole numbers."""

    t_ns: int
    kind: str
    request: int | None
    data: dict[str, int]

    def rows(self) -> Iterator[NotedRow]:
        yield Event(self.t_ns, self.kind, self.request, self.data)


class TextNote(msgspec.Struct, array_like=True, forbid_unknown_fields=True, tag="text"):
    """Something that happened, told in JSON."""

    t_ns: int
    kind: str
    request: int | None
    data_json: str

    def rows(self) -> Iterator[NotedRow]:
        yield EncodedEvent(self.t_ns, self.kind, self.request, self.data_json)


class StateNote(msgspec.Struct, array_like=True, forbid_unknown_fields=True, tag="state"):
    """How the engine stood, as far as it said."""

    t_ns: int
    engine: str
    state: State

    def rows(self) -> Iterator[NotedRow]:
        for name, value in zip(EngineState._fields, self.state, strict=True):
            if value is not None:
                yield EngineSample(self.t_ns, self.engine, name, float(value))


class DeviceNote(msgspec.Struct, array_like=True, forbid_unknown_fields=True, tag="device"):
    """A sampler's reading of a device or of the host."""

    row: DeviceSample

    def rows(self) -> Iterator[NotedRow]:
        yield self.row


def sample_is_plain(row: DeviceSample) -> bool:
    """Say whether a reading, which may be a stranger's, is one that a DeviceNote gives back."""
    t_ns, *names, value, unit = row
    is_text = all(type(name) is str for name in (*names, unit))
    return is_text and type(value) is float and type(t_ns) is int and not t_ns >> BITS


_AnyNote = StepNote | TimedNote | TokenNote | KvNote | EventNote | TextNote | StateNote | DeviceNote
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[_AnyNote])


def packed(notes: Iterable[Note]) -> bytes:
    """Return notes as bytes. TypeError or OverflowError say which value cannot be stored."""
    return _encoder.encode(notes)


def unpacked(blob: bytes) -> Iterator[NotedRow]:
    """Return the rows of what was packed; ValueError says what does not belong there."""
    for note in _decoder.decode(blob):
        yield from note.rows()
