"""`prereg close`."""

from __future__ import annotations

from typing import Annotated

import typer

from prereg.cli.app import app
from prereg.cli.output import AsJson, KeyFile, Principal, StudyDir, emit, say


@app.command(epilog='Example: prereg close studies/mine --reason "Published." --key K')
def close(
    folder: StudyDir,
    reason: Annotated[str, typer.Option(help="Why nothing more will be done here.")],
    key: KeyFile,
    unfinished: Annotated[
        bool, typer.Option("--unfinished", help="End a study that was not analysed or not audited.")
    ] = False,
    principal: Principal = None,
    as_json: AsJson = False,
) -> None:
    """End the study for good: no entry can follow, and what is missing stays missing."""
    from prereg.cli.signing import actor
    from prereg.seal.tell import close_study
    from prereg.store.layout import study_paths
    from prereg.store.repo import Repo

    paths = study_paths(folder)
    who = actor(paths, key, principal)
    entry = close_study(paths, reason, unfinished=unfinished, key=who.key, principal=who.principal)
    if as_json:
        emit({"study": paths.name, "state": "closed", "entry": entry.seq, **entry.body})
        return
    say(f"Closed {folder} with entry {entry.seq}, signed by {who.principal}.")
    if Repo.find(paths.repository).call(["remote"]).text.strip():
        say("The last entry is on this machine alone until you send it: git push origin HEAD")
    say(f"Next: prereg report {folder}")
