"""A trace read in pieces is the trace, wherever it is cut into chunks, breaks off or is damaged."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stallscope.profiler.kineto.pieces import NoTrace, Surroundings, events_of

# Names that look like the borders of events are what could mislead the reader.
NASTY = st.text(alphabet='{}[],:"\\ aé', max_size=12)
ARGS = st.dictionaries(NASTY, st.lists(st.dictionaries(NASTY, NASTY, max_size=2), max_size=3))
EVENT = st.fixed_dictionaries(
    {"ph": st.just("X"), "name": NASTY, "ts": st.integers(0, 10**6), "args": ARGS}
)
LAYOUT = st.sampled_from(
    [{}, {"indent": 2}, {"separators": (",", ":")}, {"ensure_ascii": False}, {"indent": "\t"}]
)


def read(text: bytes, size: int = 1 << 20) -> tuple[list[tuple[str, float | None]], Surroundings]:
    around = Surroundings()
    chunks = iter([text[i : i + size] for i in range(0, len(text), size)])
    found = [(e.name, e.ts) for events in events_of(chunks, around) for e in events]
    return found, around


def told(events: list[dict[str, Any]]) -> list[tuple[str, float]]:
    return [(e["name"], float(e["ts"])) for e in events]


@settings(deadline=None)
@given(st.lists(EVENT, max_size=8), LAYOUT, st.integers(20, 400), st.booleans())
def test_chunks_of_any_size_give_the_same_events(
    events: list[dict[str, Any]], layout: dict[str, Any], size: int, is_list: bool
) -> None:
    listed = [{"id": 0}, {"id": 1}]
    whole = {"deviceProperties": listed, "traceEvents": events, "more": listed, "unit": "ms"}
    text = json.dumps(events if is_list else whole, **layout).encode()
    found, around = read(text, size)
    assert found == told(events)
    assert around.is_whole
    assert around.unreadable == 0
    header = {} if is_list else {"deviceProperties": listed, "more": listed, "unit": "ms"}
    assert around.header == header


@settings(deadline=None)
@given(st.lists(EVENT, min_size=1, max_size=6), LAYOUT, st.data())
def test_a_cut_trace_gives_every_event_that_is_whole(
    events: list[dict[str, Any]], layout: dict[str, Any], data: st.DataObject
) -> None:
    opening = '{"traceEvents": ['
    parts = [json.dumps(event, **layout) for event in events]
    ends = []
    text = opening
    for part in parts:
        text += part
        ends.append(len(text.encode()))
        text += ", "
    cut = data.draw(st.integers(len(opening), len(text.encode()) - 2))
    found, around = read(text.encode()[:cut], data.draw(st.integers(20, 300)))
    assert found == told(events)[: sum(end <= cut for end in ends)]
    assert not around.is_whole
    assert around.unreadable == 0


@pytest.mark.parametrize("size", [7, 64, 1 << 20])
def test_a_damaged_event_is_left_out_and_counted(size: int) -> None:
    parts = [f'{{"ph": "X", "name": "k{i}", "ts": {i}}}' for i in range(40)]
    parts[17] = parts[17].replace('"name"', '"name')
    text = '{"traceEvents": [' + ",\n".join(parts) + '], "traceName": "x"}'
    found, around = read(text.encode(), size)
    assert [name for name, _ in found] == [f"k{i}" for i in range(40) if i != 17]
    assert around.unreadable == 1
    assert around.is_whole
    assert around.header == {"traceName": "x"}


@pytest.mark.parametrize(
    "bad",
    [
        '"blocks per SM": inf',
        '"memory bandwidth (GB/s)": -nan',
        '"x": NaN',
        '"x": Infinity',
        '"x": "\x01"',
    ],
)
def test_what_c_plus_plus_prints_for_no_number_spoils_nothing(bad: str) -> None:
    text = f'[{{"ph": "X", "name": "a", "ts": 1, "args": {{{bad}}}}}, {{"ph": "X", "ts": 2}}]'
    found, around = read(text.encode())
    assert found == [("a", 1.0), ("", 2.0)]
    assert around.unreadable == 0


def test_text_that_is_no_utf8_is_replaced() -> None:
    found, _ = read(b'[{"ph": "X", "name": "a\xff", "ts": 1}, {"ph": "X", "name": "b", "ts": 2}]')
    assert found == [("a\ufffd", 1.0), ("b", 2.0)]


@pytest.mark.parametrize("size", [1, 2, 3, 100])
@pytest.mark.parametrize("letter", ["é", "€", "🙂"])
def test_a_cut_inside_a_letter_ends_like_any_other(letter: str, size: int) -> None:
    text = f'[{{"ph": "X", "name": "{letter}", "ts": 1}}, {{"ph": "X", "name": "{letter}'.encode()
    found, around = read(text[:-1], size)
    assert found == [(letter, 1.0)]
    assert not around.is_whole
    assert around.unreadable == 0


def test_types_that_nobody_foresaw_are_taken_for_what_they_say() -> None:
    text = b'[{"ph": "X", "name": 7, "ts": "12.5", "dur": null, "tid": 1.5, "args": [1]}]'
    assert read(text)[0] == [("7", 12.5)]


def test_a_byte_order_mark_and_a_trailing_comma_are_no_fault() -> None:
    found, around = read(b'\xef\xbb\xbf {"traceEvents": [{"ph": "X", "ts": 3},\n]}')
    assert found == [("", 3.0)]
    assert around.is_whole


def test_a_key_of_that_name_inside_the_header_is_not_the_list() -> None:
    text = b'{"note": {"traceEvents": [{"ts": 9}]}, "traceEvents": [{"ph": "X", "ts": 1}]}'
    found, around = read(text)
    assert found == [("", 1.0)]
    assert around.header == {"note": {"traceEvents": [{"ts": 9}]}}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"\xff\xd8\xff\xe0JFIF", "is not JSON"),
        (b'{"metrics": [1, 2]}', "is JSON without a list of traceEvents"),
        (b'{"schemaVersion": 1, "devicePro', "ends before its first event"),
        (b'{"traceEvents": null}', "is JSON without a list of traceEvents"),
        (b'{"a": ', "is not JSON"),
        (b"   ", "is not JSON"),
    ],
)
def test_what_is_no_trace_says_what_it_is(text: bytes, says: str) -> None:
    with pytest.raises(NoTrace, match=f"^{says}$"):
        read(text)
