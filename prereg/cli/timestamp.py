"""`prereg timestamp`."""

from __future__ import annotations

from typing import Annotated

import typer

from prereg.cli.app import app
from prereg.cli.output import AsJson, KeyFile, Principal, StudyDir, emit, say

Url = Annotated[str, typer.Option(metavar="URL", help="The authority's address, http or https (RFC 3161).")]


@app.command(epilog="Example: prereg timestamp studies/mine --url https://tsa.example.org --key ~/keys/ada")
def timestamp(
    folder: StudyDir, url: Url, key: KeyFile, principal: Principal = None, as_json: AsJson = False
) -> None:
    """Have the seal's signature stamped with the time by an authority that the protocol names.

    A digest of the signature is sent. The stamp is kept only if it verifies, and then it does so offline.
    """
    from prereg.cli.ready import next_verb
    from prereg.cli.signing import actor
    from prereg.seal.stamping import timestamp_study
    from prereg.seal.standing import standing
    from prereg.store.layout import study_paths

    paths = study_paths(folder)
    who = actor(paths, key, principal)
    done = timestamp_study(paths, url, key=who.key, principal=who.principal)
    if as_json:
        emit(
            {
                "study": paths.name,
                "seal": done.entry.body["seal"],
                "timestamp": {"state": "verified", "time": done.entry.body["time"]},
                "entry": done.entry.seq,
                "commit": done.commit,
            }
        )
        return
    say(f"Stamped the seal of {folder}: it existed at {done.time.isoformat()}.")
    say(f"Next: {next_verb(standing(paths), folder, key)}")
