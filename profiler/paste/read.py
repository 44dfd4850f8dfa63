"""Read a paste: each part as the file it would be, joined where times allow it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from stallscope.errors import InputError
from stallscope.profiler.capture import Capture, Event
from stallscope.profiler.file_kinds import InputKind
from stallscope.profiler.joining.beside import laid_beside
from stallscope.profiler.joining.join import Given
from stallscope.profiler.joining.parts import ORDER
from stallscope.profiler.joining.together import lasts, together
from stallscope.profiler.opened import opened
from stallscope.profiler.paste.split import Piece, split
from stallscope.profiler.paste.unquoted import unquoted
from stallscope.profiler.renamed import renamed
from stallscope.profiler.runtime_lines import unstamped
from stallscope.profiler.text_lines import decoded

MOST_BYTES = 4 << 20  # more is no paste, but a file

ReadOne = Callable[[Path, InputKind], Capture]


def pieces_of(path: Path) -> list[Piece]:
    """Return the pieces of a text of several kinds, or a quoted one; nothing where the file itself
    can be read as it is, or holds nothing known."""
    with opened(path) as file:
        content = file.read(MOST_BYTES + 1)
    text = decoded(content)
    if "\0" in text[:4096] or len(content) > MOST_BYTES:
        return []
    lines = text.splitlines(keepends=True)
    plain = unquoted(lines)
    bare = unstamped(plain)
    pieces = split(bare)
    kinds = {p.kind for p in pieces if p.kind is not None}
    if not kinds:
        return []
    if len(kinds) < 2 and (plain == lines if InputKind.SERVER_LOG in kinds else bare == lines):
        return []
    return [_as_logged(piece, plain) for piece in pieces]


class Read(NamedTuple):
    """A capture of several texts, and of which kind is the one that tells most of the engine."""

    kind: InputKind
    capture: Capture


def read_pieces(pieces: Sequence[Piece], path: Path, read_one: ReadOne) -> Read:
    """Read what several tools printed, all of one kind together. Raises InputError for none."""
    texts: dict[InputKind, str] = {}
    for piece in pieces:
        if piece.kind is not None:
            texts[piece.kind] = texts.get(piece.kind, "") + "".join(piece.lines)
    captures: dict[InputKind, Capture] = {}
    failed: dict[InputKind, str] = {}
    with tempfile.TemporaryDirectory(prefix="stallscope-") as folder:
        for kind, text in texts.items():
            part = Path(folder) / kind.name.lower()
            part.write_text(text, encoding="utf-8")
            try:
                captures[kind] = renamed(read_one(part, kind), {str(part): str(path)})
            except InputError as error:
                failed[kind] = str(error).replace(str(part), f"its part that is {kind}")
    if not captures:
        raise InputError(f"{path}: {'; '.join(failed.values())}")
    joined = _joined(captures)
    said = [
        *_parts_text(pieces),
        *_unread_text(pieces),
        *(f"Not read: {e}." for e in failed.values()),
    ]
    notes = tuple(Event(0, "check", None, {"sentence": s}) for s in said)
    return Read(_main_kind(captures), replace(joined, events=(*notes, *joined.events)))


def _as_logged(piece: Piece, lines: Sequence[str]) -> Piece:
    """Give a log back the times that its container's runtime put before its lines."""
    if piece.kind is not InputKind.SERVER_LOG:
        return piece
    return piece._replace(lines=tuple(lines[piece.first - 1 : piece.last]))


def _joined(captures: Mapping[InputKind, Capture]) -> Capture:
    """Put those with times on one clock; the rest lies beside, as does what cannot be placed."""
    try:
        return together([Given(str(kind), kind, one, None) for kind, one in captures.items()])
    except InputError:  # nothing says how their clocks stand: then the best one is judged
        first = _main_kind(captures)
        others = [captures[k] for k in sorted(captures, key=ORDER.index) if k is not first]
        return laid_beside(captures[first], others)


def _main_kind(captures: Mapping[InputKind, Capture]) -> InputKind:
    """Return what tells most of the engine, of those that tell of a time if any does."""
    order = sorted(captures, key=ORDER.index)
    return next((kind for kind in order if lasts(captures[kind])), order[0])


def _parts_text(pieces: Sequence[Piece]) -> Iterator[str]:
    spans: dict[InputKind, list[str]] = {}
    for piece in pieces:
        if piece.kind is not None:
            spans.setdefault(piece.kind, []).append(_span(piece))
    parts = (f"{', '.join(found)} {kind}" for kind, found in spans.items())
    if len(spans) > 1:
        yield f"The text holds several parts: lines {'; lines '.join(parts)}."


def _unread_text(pieces: Sequence[Piece]) -> Iterator[str]:
    lost = [p for p in pieces if p.kind is None and any(line.strip() for line in p.lines)]
    if lost:
        which = ", ".join(map(_span, lost[:8])) + (", …" if len(lost) > 8 else "")
        yield f"These lines of the text belong to none of its parts and were not read: {which}."


def _span(piece: Piece) -> str:
    return str(piece.first) if piece.first == piece.last else f"{piece.first}–{piece.last}"
