"""A process in which cases run, with as little memory and time as a reader may take."""

from __future__ import annotations

import resource
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType

MOST_MEMORY = 512 << 20
MOST_CPU_S = 5.0  # of the process, so that a busy machine makes no hang


class TooLong(BaseException):
    """A case took too long; no reader may catch this."""


def work(connection: Connection, parser: str, seed: str, first: int, stop: int) -> None:
    """Run cases and send the number of each before it begins, and its outcome afterwards."""
    from fuzz_case import content_of, outcome, parser_of

    seeds = parser_of(parser).seeds()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "input"
        for number, content in enumerate([*seeds, b""]):  # loads what is loaded on first use
            path.write_bytes(content[: 16 << 10])
            connection.send((-1, f"seed {number}"))
            outcome(parser, path)
        resource.setrlimit(resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))
        signal.signal(signal.SIGVTALRM, _too_long)
        for index in range(first, stop):
            connection.send((index, None))
            path.write_bytes(content_of(parser, seed, index, seeds))
            try:
                with _limited():
                    found = outcome(parser, path)
            except TooLong:
                found = f"more than {MOST_CPU_S:.0f} s"
            connection.send((index, found))
    connection.send((stop, "done"))


@contextmanager
def _limited() -> Iterator[None]:
    signal.setitimer(signal.ITIMER_VIRTUAL, MOST_CPU_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def _too_long(number: int, frame: FrameType | None) -> None:
    raise TooLong
