"""Read a paste: each part as the file it would be, joined where times allow it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from stallscope.errors import InputError
from stallscope.profiler.capture import Capture, Event
from stallscope.profiler.file_kinds import InputKind
from stallscope.profiler.joining.join import Given, join
from stallscope.profiler.joining.parts import ORDER
from stallscope.profiler.joining.work import work_of
from stallscope.profiler.paste.beside import laid_beside
from stallscope.profiler.paste.split import Piece, split
from stallscope.profiler.paste.unquoted import unquoted
from stallscope.profiler.text_lines import text_lines

MOST_BYTES = 4 << 20  # more is no paste, but a file

ReadOne = Callable[[Path, InputKind], Capture]


def pieces_of(path: Path) -> list[Piece]:
    """Return the pieces of a text of several kinds, or a quoted one; nothing where the file itself
    can be read as it is, or holds nothing known."""
    with path.open("rb") as file:
        head = file.read(4096)
    if b"\0" in head or path.stat().st_size > MOST_BYTES:
        return []
    lines = text_lines(path)
    plain = unquoted(lines)
    pieces = split(plain)
    kinds = {p.kind for p in pieces if p.kind is not None}
    return pieces if len(kinds) > (1 if plain == lines else 0) else []


def read_pieces(pieces: Sequence[Piece], path: Path, read_one: ReadOne) -> Capture:
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
                captures[kind] = _renamed(read_one(part, kind), path)
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
    return replace(joined, events=(*notes, *joined.events))


def _renamed(capture: Capture, path: Path) -> Capture:
    return replace(capture, sources=tuple(s._replace(path=str(path)) for s in capture.sources))


def _joined(captures: Mapping[InputKind, Capture]) -> Capture:
    """Put those with times on one clock; the rest lies beside, as does what cannot be placed."""
    order = sorted(captures, key=ORDER.index)
    lasting = [kind for kind in order if _lasts(captures[kind])]
    if len(lasting) > 1:
        try:
            main = join([Given(str(kind), kind, captures[kind], None) for kind in lasting])
            return laid_beside(main, [captures[k] for k in order if k not in lasting])
        except InputError:
            pass  # nothing says how their clocks stand: then the best one is judged
    first = (lasting or order)[0]
    return laid_beside(captures[first], [captures[k] for k in order if k is not first])


def _lasts(capture: Capture) -> bool:
    work = work_of(capture)
    return work is not None and work.span_ns[0] < work.span_ns[1]


def _parts_text(pieces: Sequence[Piece]) -> Iterator[str]:
    spans: dict[InputKind, list[str]] = {}
    for piece in pieces:
        if piece.kind is not None:
            spans.setdefault(piece.kind, []).append(_span(piece))
    parts = (f"{', '.join(found)} {kind}" for kind, found in spans.items())
    if len(spans) > 1:
        yield f"What was pasted holds several parts: lines {'; lines '.join(parts)}."


def _unread_text(pieces: Sequence[Piece]) -> Iterator[str]:
    lost = [p for p in pieces if p.kind is None and any(line.strip() for line in p.lines)]
    if lost:
        which = ", ".join(map(_span, lost[:8])) + (", …" if len(lost) > 8 else "")
        yield f"Of what was pasted this belongs to none of them and was not read: lines {which}."


def _span(piece: Piece) -> str:
    return str(piece.first) if piece.first == piece.last else f"{piece.first}–{piece.last}"
