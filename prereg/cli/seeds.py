"""`prereg seeds`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from prereg.cli.app import app
from prereg.cli.output import AsJson, emit, say, table
from prereg.errors import UsageError, VerificationFailed

seeds_app = typer.Typer(help="Seed blocks across every study.", no_args_is_help=True, rich_markup_mode="rich")
app.add_typer(seeds_app, name="seeds")

Studies = Annotated[Path, typer.Argument(metavar="STUDIES", help="The folder that holds the studies.")]


@seeds_app.command("check", epilog="Example: prereg seeds check studies --json")
def check_seeds(studies: Studies = Path("studies"), as_json: AsJson = False) -> None:
    """Compare reserved and used seeds of all studies, at full width and in their low 32 bits."""
    from prereg.codec.convert import to_json
    from prereg.store.seeds import seeds_check, studies_in

    if not studies.is_dir():
        raise UsageError(
            "there is no such folder", where=str(studies), next_step="prereg seeds check STUDIES"
        )
    names = [p.name for p in studies_in(studies.absolute())]
    found = seeds_check(studies.absolute())
    if as_json:
        emit({"studies": names, "overlaps": to_json(found)})
    elif found:
        table(
            "Overlapping seeds",
            ("study", "block", "study", "block", "first", "end", "bits"),
            [(o.study_a, o.block_a, o.study_b, o.block_b, o.first, o.end, o.width) for o in found],
        )
    if found:
        raise VerificationFailed(str(found[0]), where=str(studies), next_step="give one of them other seeds")
    if not as_json:
        say(f"No seed is reserved or used twice among {len(names)} studies ({', '.join(names) or 'none'}).")
        say("Disjoint seeds are not independent streams; they only are not the same ones.")
