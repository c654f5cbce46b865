"""`prereg relocate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from prereg.cli.app import app
from prereg.cli.output import AsJson, KeyFile, Principal, StudyDir, emit, number, say


@app.command(
    epilog='Example: prereg relocate studies/mine --from /archive/records --reason "Archived." --key K'
)
def relocate(
    folder: StudyDir,
    source: Annotated[
        Path,
        typer.Option("--from", metavar="OTHER", help="The folder of records with what is missing."),
    ],
    reason: Annotated[str, typer.Option(help="Why they were kept elsewhere.")],
    key: KeyFile,
    principal: Principal = None,
    as_json: AsJson = False,
) -> None:
    """Copy missing records of stored shards back from elsewhere, byte for byte. The originals stay."""
    from prereg.cli.signing import actor
    from prereg.model.plural import plural
    from prereg.seal.relocate import relocate_study
    from prereg.store.layout import study_paths

    paths = study_paths(folder)
    who = actor(paths, key, principal)
    entry = relocate_study(paths, source, reason=reason, key=who.key, principal=who.principal)
    files = entry.body["files"]
    if as_json:
        emit({"study": paths.name, "entry": entry.seq, **entry.body})
        return
    size = sum(file["size"] for file in files)
    many = f"{number(len(files))} {plural(len(files), 'file')}"
    say(f"Copied {many}, {number(size)} bytes, from {source} to {folder}/records.")
    say(f"Entered as entry {entry.seq}, signed by {who.principal}. The originals are where they were.")
    say(f"Next: prereg verify {folder}")
