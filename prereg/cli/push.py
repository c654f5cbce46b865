"""`prereg push`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from prereg.cli.app import app
from prereg.cli.output import AsJson, KeyFile, Principal, StudyDir, emit, say

if TYPE_CHECKING:
    from prereg.seal.push import Pushed


@app.command(epilog="Example: prereg push studies/mine --remote origin --key ~/keys/ada")
def push(
    folder: StudyDir,
    key: KeyFile,
    remote: Annotated[str, typer.Option(help="A remote of this repository, or an address.")] = "origin",
    principal: Principal = None,
    as_json: AsJson = False,
) -> None:
    """Push the branch and the study's tags, read them back, and enter in the ledger what arrived."""
    from prereg.cli.signing import actor
    from prereg.seal.push import push_study
    from prereg.store.layout import study_paths

    paths = study_paths(folder)
    who = actor(paths, key, principal)
    done = push_study(paths, remote, key=who.key, principal=who.principal)
    if as_json:
        emit({"study": paths.name, **pushed_value(done)})
        return
    show_pushed(folder, done)


def pushed_value(done: Pushed) -> dict[str, Any]:
    """What was pushed, as JSON."""
    return {
        "remote": done.remote,
        "ref": done.ref,
        "commit": done.commit,
        "tags": list(done.tags),
        "entry": done.entry.seq,
    }


def show_pushed(folder: Path, done: Pushed) -> None:
    """What was pushed, for people."""
    say(f"Pushed {folder} to {done.remote}, and read back what it holds.")
    say(f"  {done.ref}  {done.commit}")
    for tag in done.tags:
        say(f"  tag {tag}")
    say(f"  told by entry {done.entry.seq} of the ledger, of commit {done.entry.body['commit']}")
