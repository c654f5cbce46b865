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
from prereg.cli.start import STOPPED, ignore_signals, take_signals
from prereg.cli.streams import put_out
from prereg.cli.texts import check_texts
from prereg.errors import EvidenceIncomplete, PreregError, UsageError
from prereg.model.visible import visible

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
    take_signals()
    check_texts(app)
    try:
        code = app(standalone_mode=False)
    except PreregError as error:
        _leave(_say(error))
    except typer.Exit as leave:
        _leave(leave.exit_code)
    except typer.Abort:
        _stopped()
    except TyperException as error:
        _leave(_usage(error))
    except KeyboardInterrupt:
        _stopped()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(0)
    except OSError as error:
        # Permissions, a full disk, a name that is too long: the machine's word, not a bug of ours.
        where = None if error.filename is None else str(error.filename)
        _leave(_say(EvidenceIncomplete(f"the system refuses: {error.strerror or error}", where=where)))
    except MemoryError:
        step = "give it more (ulimit -v), and run the same command once more"
        _leave(_say(EvidenceIncomplete("the system refuses: there is not enough memory", next_step=step)))
    except Exception:  # noqa: BLE001 - the last line of defence: exit code 70 means a bug, and says so
        traceback.print_exc()
        _line("This is a bug in prereg. Please report it with the lines above.")
        sys.exit(70)
    if code == STOPPED:  # what typer makes of a KeyboardInterrupt
        _stopped()
    _leave(code if isinstance(code, int) else 0)


def _stopped() -> NoReturn:
    ignore_signals()
    _line("Stopped.")
    sys.exit(STOPPED)


def _leave(code: int) -> NoReturn:
    """End with this code, unless what was printed on stdout, a help page perhaps, does not get there."""
    try:
        put_out("")
    except EvidenceIncomplete as error:
        code = _say(error)
    sys.exit(code)


def _usage(error: TyperException) -> int:
    """A command line that typer refuses, in the form of our own errors; returns the exit code."""
    if type(error).__name__ == "NoArgsIsHelpError":
        return UsageError.exit_code  # the help page is printed already, and says it all
    what = getattr(error, "format_message", lambda: str(error))()
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "prereg"
    return _say(UsageError(what, where=command, next_step=f"{command} --help"))


def _say(error: PreregError) -> int:
    """Tell an error; returns the exit code, which is another if its JSON object does not get out."""
    lost: EvidenceIncomplete | None = None
    if error.next_step:
        error.next_step = typed(error.next_step, output.study_named(), output.key_given())
    if "--json" in sys.argv[1:] and not output.emitted():
        try:
            put_out(json.dumps(error.as_json()) + "\n")
        except EvidenceIncomplete as gone:
            lost = gone
    for told in (error, lost):
        if told is None:
            continue
        _line(f"error: {told.what}")
        if told.where:
            _line(f"  where: {told.where}")
        if told.next_step:
            _line(f"  next:  {told.next_step}")
    return error.exit_code if lost is None else lost.exit_code


def _line(text: str) -> None:
    sys.stderr.write(visible(text) + "\n")
