"""The typer application and the one place where an error becomes words and an exit code."""

from __future__ import annotations

import json
import os
import sys
import traceback
from typing import NoReturn

import typer
from typer.exceptions import TyperException

import prereg
from prereg.cli import output
from prereg.cli.next_step import typed
from prereg.errors import EvidenceIncomplete, PreregError, UsageError

app = typer.Typer(
    name="prereg",
    help="Preregister, seal, collect, analyse and audit computational experiments.",
    epilog="Start with `prereg demo`, or `prereg draft studies/mine --template two-arm`.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def main(
    version: bool = typer.Option(False, "--version", help="Print the version and exit.", is_eager=True),
) -> None:
    """Preregister, seal, collect, analyse and audit computational experiments."""
    if version:
        typer.echo(f"prereg {prereg.__version__}")
        raise typer.Exit


def run() -> NoReturn:
    """Run the command line. Every way out has its exit code (design: 0 done … 70 a bug)."""
    try:
        code = app(standalone_mode=False)
    except PreregError as error:
        _say(error)
        sys.exit(error.exit_code)
    except typer.Exit as leave:
        sys.exit(leave.exit_code)
    except typer.Abort:
        _line("Stopped.")
        sys.exit(130)
    except TyperException as error:
        _usage(error)
        sys.exit(2)
    except KeyboardInterrupt:
        _line("Stopped.")
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(0)
    except OSError as error:
        # Permissions, a full disk, a name that is too long: the machine's word, not a bug of ours.
        where = None if error.filename is None else str(error.filename)
        _say(EvidenceIncomplete(f"the system refuses: {error.strerror or error}", where=where))
        sys.exit(EvidenceIncomplete.exit_code)
    except Exception:  # noqa: BLE001 - the last line of defence: exit code 70 means a bug, and says so
        traceback.print_exc()
        _line("This is a bug in prereg. Please report it with the lines above.")
        sys.exit(70)
    sys.exit(code if isinstance(code, int) else 0)


def _usage(error: TyperException) -> None:
    """A command line that typer refuses, in the form of our own errors."""
    if type(error).__name__ == "NoArgsIsHelpError":
        return  # the help page is printed already, and says it all
    what = getattr(error, "format_message", lambda: str(error))()
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "prereg"
    _say(UsageError(what, where=command, next_step=f"{command} --help"))


def _say(error: PreregError) -> None:
    if error.next_step:
        error.next_step = typed(error.next_step, output.study_named())
    if "--json" in sys.argv[1:] and not output.emitted():
        sys.stdout.write(json.dumps(error.as_json()) + "\n")
    _line(f"error: {error.what}")
    if error.where:
        _line(f"  where: {error.where}")
    if error.next_step:
        _line(f"  next:  {error.next_step}")


def _line(text: str) -> None:
    sys.stderr.write(text + "\n")
