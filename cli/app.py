"""The command `stallscope`: its commands, and how an error ends it."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Collection, Sequence
from typing import Annotated

import typer

from stallscope import __version__
from stallscope.errors import StallscopeError

INTRODUCTION = """\
stallscope finds out why LLM inference is slow, what limits it, and what each fix would buy.

  stallscope run --model tiny-26m              run a small model here and say what limits it
  stallscope diagnose run.sqlite -o report.md  judge a recorded run
  stallscope plan --model llama-7b --gpu a100-sxm4-40gb
                                               what to expect of a model on a device

`stallscope --help` lists everything, `stallscope COMMAND --help` one command.
"""
INTERRUPTED = 130  # 128 + SIGINT, as shells have it

# Each is the function of its name in the module NAME_command; the line is its help's first.
COMMANDS = {
    "run": "Run a model under instrumentation and say what limits it.",
    "nsys": "Run any command under Nsight Systems and say what limits it.",
    "attach": "Watch a live server through its metrics and say what limits it.",
    "diagnose": "Judge a recorded run.",
    "compare": "Compare runs, and judge what one varied setting tells.",
    "plan": "Predict memory, speed and limits of a model on a device, without a run.",
    "doctor": "Say what can be observed here, and how to get the rest.",
}


def application(arguments: Collection[str] = tuple(COMMANDS)) -> typer.Typer:
    """Return the command line; of commands that the arguments do not name only the help is built.

    A command's options take longer to import and build than typer itself.
    """
    app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None, add_completion=False)
    app.callback(invoke_without_command=True)(introduce)
    for name, line in COMMANDS.items():
        if name in arguments:
            module = importlib.import_module(f"stallscope.{name}_command")
            settings = getattr(module, "CONTEXT", None)
            app.command(name, context_settings=settings)(getattr(module, name))
        else:
            app.command(name, help=line)(_not_asked_for)
    return app


def _not_asked_for() -> None:
    """Stand in the list of commands."""


def show_version(wanted: bool) -> None:
    """Print the version and end."""
    if wanted:
        print(f"stallscope {__version__}")
        raise typer.Exit


def introduce(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Show it.")
    ] = False,
) -> None:
    """Find out why LLM inference is slow, what limits it, and what each fix would buy."""
    if context.invoked_subcommand is None:
        print(INTRODUCTION, end="")


def call(arguments: Sequence[str] | None = None) -> int:
    """Run one command; an error that the user can act on is one line on stderr and a code."""
    try:
        given = sys.argv[1:] if arguments is None else arguments
        code = application(given)(given, prog_name="stallscope", standalone_mode=False)
        sys.stdout.flush()
    except StallscopeError as error:
        return complain(str(error), error.exit_code)
    except typer.TyperException as error:  # usage errors that typer itself found
        return complain(error.format_message(), error.exit_code)
    except BrokenPipeError:  # the reader of stdout, `head` say, has what it wanted
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        code = INTERRUPTED
    if code == INTERRUPTED:  # typer turns Ctrl-C into this code
        return complain("interrupted", INTERRUPTED)
    return int(code or 0)


def complain(message: str, code: int) -> int:
    """Print the message as one line on stderr."""
    print("stallscope:", " ".join(message.split()), file=sys.stderr)
    return code


def main() -> None:
    """Entry point of the console script."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # an ASCII terminal must not end a run
    sys.exit(call())
