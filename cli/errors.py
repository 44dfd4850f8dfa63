"""Errors that end a command with one line on stderr; each message says what to do next."""

from __future__ import annotations


class StallscopeError(Exception):
    """Anything the user can act on; the command line prints it and exits with `exit_code`."""

    exit_code = 1

    def __str__(self) -> str:
        """Return the message on one line: names and files that it quotes may hold anything."""
        return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in super().__str__())


class InputError(StallscopeError):
    """A file or a value that was given cannot be used."""


class NotModelled(InputError):
    """A sound model configuration whose arithmetic is not known here."""


class UsageError(StallscopeError):
    """Options that contradict each other or ask for what does not exist."""

    exit_code = 2


class CaptureError(StallscopeError):
    """A capture that cannot be read or written."""


class Interrupted(StallscopeError):
    """Ctrl-C while something was being recorded; the message says what is kept."""

    exit_code = 130


class MissingTool(StallscopeError):
    """A program that the command needs is not installed, or does not work; the message says how."""

    exit_code = 3


class MissingDependency(StallscopeError):
    """An optional package is needed; `extra` of stallscope brings it."""

    exit_code = 3

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(
            f"{package} is not installed; install it with: pip install 'stallscope[{extra}]'"
        )
