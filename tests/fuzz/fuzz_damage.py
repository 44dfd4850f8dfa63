"""What may happen to a file on its way: bytes change, stretches go, come twice or trade places."""

from __future__ import annotations

import random
import re

MOST_BYTES = 16 << 10
_HEAD = 2 << 10  # what a file is shows at its head; it is kept before a stretch from further on
_NUMBER = re.compile(rb"\d+(?:[.,]\d+)*")
_WORD = re.compile(rb'"[^"\n]{0,80}"|[A-Za-z_]{3,40}')
PIECES = (
    *(b"\0", b"\xff", b"\xff\xfe", b"\xef\xbb\xbf", b"\n", b"\r", b"\r\n", b"\t", b" " * 300),
    *(b'"', b"'", b",", b", ", b";", b":", b" : ", b"|", b"{", b"}", b"[", b"]", b"(", b"%", b"#"),
    *("²".encode(), "٣".encode(), "\u2028".encode(), b"\x1b[0m", b"\x0c", b"&lt;", b"</gpu>"),
    *(b"<gpu>", b"[N/A]", b"null", b"true", b"00:00:00", b"GPU 00000000:01:00.0\n", b"\\u0000"),
)
NUMBERS = (
    *(b"-1", b"0", b"-0.0", b"nan", b"inf", b"-inf", b"NaN", b"Infinity", b"1e308", b"1e999"),
    *(b"9" * 19, b"9" * 40, b"9" * 400, b"18446744073709551616", b"0x1f", b"0.1", b"", b"1,5"),
    *(b"1" + b"0" * 30, b"1e-320", b"-9223372036854775808", b"2147483648", b"1_0", b"+5", b"5."),
)


def damaged(content: bytes, rng: random.Random) -> bytes:
    """Return a stretch of up to 16 KiB, after one to four accidents in it."""
    content = _stretch(content, rng)
    for _ in range(rng.randint(1, 4)):
        content = rng.choice(_ACCIDENTS)(content, rng)
    return content[:MOST_BYTES]


def _stretch(content: bytes, rng: random.Random) -> bytes:
    """Cut out what is damaged: from the head, or from anywhere, mostly behind the head."""
    if len(content) <= MOST_BYTES or rng.random() < 0.4:
        return content[:MOST_BYTES]
    at = rng.randrange(len(content) - MOST_BYTES // 2)
    head = content[:_HEAD] if rng.random() < 0.7 else b""
    return head + content[at : at + MOST_BYTES - len(head)]


def _changed(content: bytes, rng: random.Random) -> bytes:
    at, _ = _places(content, rng)
    return content[:at] + bytes([rng.randrange(256)]) + content[at + 1 :]


def _cut_off(content: bytes, rng: random.Random) -> bytes:
    return content[: _places(content, rng)[1]]


def _left_out(content: bytes, rng: random.Random) -> bytes:
    at, to = _places(content, rng)
    return content[:at] + content[min(to, at + rng.choice((1, 20, 2000))) :]


def _repeated(content: bytes, rng: random.Random) -> bytes:
    at, to = _places(content, rng)
    to = min(to, at + rng.choice((1, 50, 2000)))
    return content[:to] + content[at:to] * rng.randint(1, 3) + content[to:]


def _put_in(content: bytes, rng: random.Random) -> bytes:
    at, _ = _places(content, rng)
    return content[:at] + rng.choice(PIECES) + content[at:]


def _other_number(content: bytes, rng: random.Random) -> bytes:
    return _replaced(content, _NUMBER, rng.choice(NUMBERS), rng)


def _other_word(content: bytes, rng: random.Random) -> bytes:
    words = _WORD.findall(content) or [b""]
    return _replaced(content, _WORD, rng.choice([*words[:400], *PIECES]), rng)


def _shuffled(content: bytes, rng: random.Random) -> bytes:
    lines = content.splitlines(keepends=True)
    at, to = sorted(rng.randrange(len(lines) + 1) for _ in range(2))
    some = lines[at:to]
    rng.shuffle(some)
    return b"".join((*lines[:at], *some, *lines[to:]))


def _replaced(content: bytes, what: re.Pattern[bytes], by: bytes, rng: random.Random) -> bytes:
    """Put `by` in the place of the next match behind a place by chance, or of ten in a row."""
    at, _ = _places(content, rng)
    return content[:at] + what.sub(lambda _: by, content[at:], count=rng.choice((1, 1, 1, 10)))


def _places(content: bytes, rng: random.Random) -> tuple[int, int]:
    first, second = sorted(rng.randrange(len(content) + 1) for _ in range(2))
    return first, second


_ACCIDENTS = (
    *(_changed, _cut_off, _left_out, _repeated, _put_in, _shuffled),
    *(_other_number, _other_number, _other_word),
)
