"""`prereg amend`."""

from __future__ import annotations

from typing import Annotated

import typer

from prereg.cli.app import app
from prereg.cli.next_step import error_value
from prereg.cli.output import AsJson, KeyFile, Principal, StudyDir, emit, key_given, say
from prereg.errors import PreregError


@app.command(epilog='Example: prereg amend studies/mine --reason "Fewer draws." --key ~/keys/ada')
def amend(
    folder: StudyDir,
    reason: Annotated[str, typer.Option(help="Why the plan changed.")],
    key: KeyFile,
    principal: Principal = None,
    timestamp: Annotated[
        str | None,
        typer.Option(metavar="URL", help="The authority that stamps the time, if the protocol asks for it."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Seal an edited plan anew, before any data. The earlier seal stays, byte for byte, beside it."""
    from prereg.cli.ready import next_verb, prepare, show_standing
    from prereg.model.plural import plural
    from prereg.seal.amend import amend_study, refuse_amendment
    from prereg.seal.stamping import timestamp_study
    from prereg.seal.standing import refuse_stamp, standing
    from prereg.store.layout import study_paths

    paths = study_paths(folder)
    refuse_amendment(paths)
    if timestamp is not None:
        refuse_stamp(paths, timestamp)
    ready = prepare(paths, folder, key, principal, quiet=as_json)
    made = amend_study(
        paths,
        reason=reason,
        key=ready.who.key,
        principal=ready.who.principal,
        environments=ready.environments,
        images=ready.images,
    )
    fault: PreregError | None = None
    if timestamp is not None:
        try:
            timestamp_study(paths, timestamp, key=ready.who.key, principal=ready.who.principal)
        except PreregError as error:
            fault = error  # the amendment stands, and the error says how to get its stamp
    after = standing(paths)
    assert after is not None  # it was sealed just now
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
                "signatures": None if after.signatures is None else after.signatures.as_json(),
                "timestamp": {**after.stamp.as_json(), "error": error_value(fault, folder, key_given())},
            }
        )
        if fault is not None:
            raise fault
        return
    files = len(made.manifest.files)
    say(f"Amended {folder}: {files} {plural(files, 'file')}, signed by {ready.who.principal}.")
    say(f"  seal    {made.seal}")
    say(f"  amends  {made.manifest.amends}")
    say(f"  commit  {made.commit}")
    say(f"  tag     {made.tag}")
    show_standing(after)
    if fault is not None:
        say("The amendment stands; its time stamp is owed.")
        raise fault
    say(f"Next: {next_verb(after, folder, key)}")
