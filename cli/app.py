"""The command `stallscope`: its commands, and how an error ends it."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from stallscope import __version__
from stallscope.diagnose_command import diagnose
from stallscope.doctor_command import doctor
from stallscope.errors import StallscopeError
from stallscope.plan_command import plan
from stallscope.run_command import run

INTRODUCTION = """\
stallscope finds out why LLM inference is slow, what limits it, and what each fix would buy.

  stallscope run --model tiny-26m              run a small model here and say what limits it
  stallscope diagnose run.sqlite -o report.md  judge a recorded run
  stallscope plan --model llama-7b --gpu a100-sxm4-40gb
                                               what to expect of a model on a device

`stallscope --help` lists everything, `stallscope COMMAND --help` one command.
"""
INTERRUPTED = 130  # 128 + SIGINT, as shells have it

app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None, add_completion=False)
app.command()(run)
app.command()(diagnose)
app.command()(plan)
app.command()(doctor)


def show_version(wanted: bool) -> None:
    """Print the version and end."""
    if wanted:
        print(f"stallscope {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
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
        code = app(arguments, prog_name="stallscope", standalone_mode=False)
        sys.stdout.flush()
    except StallscopeError as error:
        return complain(str(error), error.exit_code)
    except typer.TyperException as error:  # usage errors that typer itself found
        return complain(error.format_message(), error.exit_code)
    except BrokenPipeError:  # the reader of stdout left; nobody is there to be told
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
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
