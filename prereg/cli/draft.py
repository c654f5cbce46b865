"""`prereg draft`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from prereg.cli.app import app
from prereg.cli.output import AsJson, emit, say
from prereg.errors import UsageError
from prereg.model.names import part_fault


@app.command(epilog="Example: prereg draft studies/peeking --template two-arm --principal ada@example.org")
def draft(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="The new study's folder; its name is the id.")
    ],
    template: Annotated[
        str,
        typer.Option(
            help="conformance: a decoding engine against its own plain sampling. "
            "two-arm: any command that prints JSON lines. "
            "exact: a decoding engine's output laws, walked choice by choice. "
            "main: the twenty-six configurations of the paper's main study, by draws and walked."
        ),
    ],
    exact: Annotated[
        bool,
        typer.Option("--exact", help="Keep the template's exact stage alone: no draws, no premise test."),
    ] = False,
    title: Annotated[str | None, typer.Option(help="Fill the title.")] = None,
    question: Annotated[str | None, typer.Option(help="Fill the question.")] = None,
    author: Annotated[str | None, typer.Option(help="Fill the author's name.")] = None,
    principal: Annotated[str | None, typer.Option(help="Fill the author's principal.")] = None,
    as_json: AsJson = False,
) -> None:
    """Scaffold a new study."""
    from prereg.codec.study_files import BLANK
    from prereg.draft.lint import A_BLANK
    from prereg.draft.lint import blanks as blanks_in
    from prereg.draft.scaffold import Blanks, draft_study
    from prereg.model.plural import plural
    from prereg.store.seeds import repository_spans

    if fault := part_fault(folder.absolute().name):
        raise UsageError(fault, where=str(folder), next_step="give the folder another name")
    blanks = Blanks(title=title, question=question, author=author, principal=principal)
    studies = folder.absolute().parent
    taken = repository_spans(studies) if studies.is_dir() else []
    paths = draft_study(folder, template, blanks, taken, exact=exact)
    found = [f for f in blanks_in({"protocol.json": paths.protocol.read_bytes()}) if f.what == A_BLANK]
    marked = [f for f in found if BLANK in (f.next_step or "")]
    which = ([f"{BLANK}…"] if marked else []) + (["the principal"] if len(marked) < len(found) else [])
    blank = f"{len(found)} {plural(len(found), 'blank')} ({', and '.join(which)})"
    steps = ([f"fill the {blank} in {folder}/protocol.json"] if found else []) + (
        [f"prereg events {folder}"] if not paths.events.exists() else []
    )
    steps.append(f"prereg check {folder}")
    if as_json:
        emit({"study": paths.name, "template": template, "folder": str(folder), "next": steps})
        return
    say(f"Drafted {folder} from the template {template}.")
    for number, step in enumerate(steps, 1):
        say(f"  {number}. {step}")
