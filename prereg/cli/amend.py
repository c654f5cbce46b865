"""`prereg amend`."""

from __future__ import annotations

from typing import Annotated

import typer

from prereg.cli.app import app
from prereg.cli.output import AsJson, KeyFile, Principal, StudyDir, emit, say


@app.command(epilog='Example: prereg amend studies/mine --reason "Fewer draws." --key ~/keys/ada')
def amend(
    folder: StudyDir,
    reason: Annotated[str, typer.Option(help="Why the plan changed.")],
    key: KeyFile,
    principal: Principal = None,
    as_json: AsJson = False,
) -> None:
    """Seal an edited plan anew, before any data. The earlier seal stays, byte for byte, beside it."""
    from prereg.cli.ready import prepare
    from prereg.seal.amend import amend_study, refuse_amendment
    from prereg.store.layout import study_paths

    paths = study_paths(folder)
    refuse_amendment(paths)
    ready = prepare(paths, folder, key, principal, quiet=as_json)
    made = amend_study(
        paths,
        reason=reason,
        key=ready.who.key,
        principal=ready.who.principal,
        environments=ready.environments,
        images=ready.images,
    )
    if as_json:
        emit(
            {
                "study": paths.name,
                "seal": made.seal,
                "amends": made.manifest.amends,
                "commit": made.commit,
                "tag": made.tag,
                "ledger_head": made.head,
                "files": len(made.manifest.files),
                "author": ready.who.principal,
            }
        )
        return
    say(f"Amended {folder}: {len(made.manifest.files)} files, signed by {ready.who.principal}.")
    say(f"  seal    {made.seal}")
    say(f"  amends  {made.manifest.amends}")
    say(f"  commit  {made.commit}")
    say(f"  tag     {made.tag}")
    say(f"Next: prereg collect {folder} --key {key}")
