"""`prereg seal`."""

from __future__ import annotations

from typing import Annotated

import typer

from prereg.cli.app import app
from prereg.cli.next_step import error_value
from prereg.cli.output import AsJson, KeyFile, Principal, StudyDir, emit, key_given, say
from prereg.errors import PreregError, UsageError


@app.command(epilog="Example: prereg seal studies/mine --key ~/keys/ada")
def seal(
    folder: StudyDir,
    key: KeyFile,
    principal: Principal = None,
    timestamp: Annotated[
        str | None,
        typer.Option(metavar="URL", help="The authority that stamps the time, if the protocol asks for it."),
    ] = None,
    push: Annotated[
        str | None,
        typer.Option(metavar="REMOTE", help="Push the seal there, and read back what arrived."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check the study, then bind, sign and commit every byte of it."""
    from prereg.cli.push import pushed_value, show_pushed
    from prereg.cli.ready import next_verb, prepare, show_standing
    from prereg.model.plural import plural
    from prereg.seal.build import refuse_seal, seal_study
    from prereg.seal.lost_ledger import refuse_lost_ledger
    from prereg.seal.push import push_study, refuse_remote
    from prereg.seal.stamping import timestamp_study
    from prereg.seal.standing import refuse_stamp, standing
    from prereg.store.layout import study_paths

    paths = study_paths(folder)
    refuse_lost_ledger(paths)
    if push is not None:
        refuse_remote(paths, push)
    if timestamp is not None:
        refuse_stamp(paths, timestamp)
    if paths.ledger.exists():
        refuse_seal(paths)  # whatever `check` has to say: it is sealed
    ready = prepare(paths, folder, key, principal, quiet=as_json, refuse=lambda: refuse_seal(paths))
    environments, images = ready.environments, ready.images
    who = ready.who
    if push is not None and ready.edition < 2:
        raise UsageError(
            "a study of edition 1 has no entry `pushed`",
            where=f"{folder}/protocol.json",
            next_step="seal it without --push, then git push --follow-tags",
        )
    made = seal_study(paths, key=who.key, principal=who.principal, environments=environments, images=images)
    fault: PreregError | None = None
    if timestamp is not None:
        try:
            timestamp_study(paths, timestamp, key=who.key, principal=who.principal)
        except PreregError as error:
            # The seal stands; the stamp is owed, and the error says how to get it.
            fault = error
    sent, unsent = None, None
    if push is not None:
        try:
            sent = push_study(paths, push, key=who.key, principal=who.principal)
        except PreregError as error:
            unsent = error
    after = standing(paths)
    assert after is not None  # it was sealed just now
    if as_json:
        emit(
            {
                "study": paths.name,
                "seal": made.seal,
                "commit": made.commit,
                "tag": made.tag,
                "ledger_head": made.head,
                "files": len(made.manifest.files),
                "author": who.principal,
                "environments": environments,
                "signatures": None if after.signatures is None else after.signatures.as_json(),
                "timestamp": {
                    **after.stamp.as_json(),
                    "error": error_value(fault, folder, key_given()),
                },
                "pushed": None if sent is None else pushed_value(sent),
                "push_error": error_value(unsent, folder, key_given()),
                "images": None if images is None else {name: i.id for name, i in images.items()},
            }
        )
        if problem := fault or unsent:
            raise problem
        return
    files = len(made.manifest.files)
    say(f"Sealed {folder}: {files} {plural(files, 'file')}, signed by {who.principal}.")
    say(f"  seal    {made.seal}")
    say(f"  commit  {made.commit}")
    say(f"  tag     {made.tag}")
    show_standing(after)
    if sent is not None:
        show_pushed(folder, sent)
    if fault is not None:
        say("The seal stands; its time stamp is owed.")
        raise fault
    if unsent is not None:
        say("The seal stands; it is not at the remote.")
        raise unsent
    say(f"Next: {next_verb(after, folder, key)}")
