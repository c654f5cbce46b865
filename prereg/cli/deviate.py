"""`prereg deviate`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prereg.cli.app import app
from prereg.cli.output import AsJson, KeyFile, Principal, StudyDir, emit, say, told
from prereg.errors import UsageError

if TYPE_CHECKING:
    from prereg.model.seal import Entry


@app.command(epilog='Example: prereg deviate studies/mine --about fair --text "Ran on another host." --key K')
def deviate(
    folder: StudyDir,
    key: KeyFile,
    text: Annotated[str | None, typer.Option(help="What was done otherwise, and why.")] = None,
    file: Annotated[
        Path | None, typer.Option(help="A file with the text; with neither, it is read from stdin.")
    ] = None,
    about: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="A configuration or unit; may be repeated.")
    ] = None,
    principal: Principal = None,
    as_json: AsJson = False,
) -> None:
    """Tell a departure from the sealed protocol. It changes no verdict and is shown beside them all.

    The same words twice in a row are entered once.
    """
    from prereg.cli.signing import actor
    from prereg.seal.tell import deviate_study
    from prereg.store.layout import study_paths

    paths = study_paths(folder)
    who = actor(paths, key, principal)
    told = _text(text, file)
    entry = deviate_study(paths, told, about=about or (), key=who.key, principal=who.principal)
    if as_json:
        emit({"study": paths.name, "entry": entry.seq, **entry.body})
        return
    say(f"The deviation is entry {entry.seq} of {folder}/ledger.jsonl, signed by {who.principal}.")
    say("Status, report and decisions show it from now on.")


def show_deviations(entries: Sequence[Entry]) -> None:
    """Every departure from the protocol that was told, for people; it stands wherever decisions do."""
    from prereg.model.places import deviations_of

    for entry in deviations_of(entries):
        about = f" ({', '.join(entry.body['about'])})" if entry.body["about"] else ""
        say(f"  DEVIATION    {entry.time[:10]}, {entry.actor}{about}: {told(entry.body['text'])}")


def _text(text: str | None, file: Path | None) -> str:
    """The text from the one place that was named; stdin where none was."""
    from prereg.cli.texts import refuse_text
    from prereg.store.files import read_once

    if text is not None and file is not None:
        raise UsageError("--text and --file are both given", where="--text", next_step="leave one out")
    if text is not None:
        return text
    data = sys.stdin.buffer.read() if file is None else read_once(file.absolute(), limit=1_000_000)
    where = str(file or "stdin")
    try:
        read = data.decode("utf-8")
    except UnicodeDecodeError:
        raise UsageError("is not UTF-8", where=where, next_step="write it in UTF-8") from None
    refuse_text(read, where)
    return read
