"""`prereg cosign`."""

from __future__ import annotations

from prereg.cli.app import app
from prereg.cli.output import AsJson, KeyFile, Principal, StudyDir, emit, say


@app.command(epilog="Example: prereg cosign studies/mine --key ~/keys/bob")
def cosign(folder: StudyDir, key: KeyFile, principal: Principal = None, as_json: AsJson = False) -> None:
    """Sign the same seal as another of the protocol's signers, before any data."""
    from prereg.cli.ready import next_verb
    from prereg.cli.signing import actor
    from prereg.seal.cosign import cosign_study
    from prereg.seal.standing import standing
    from prereg.store.layout import study_paths

    paths = study_paths(folder)
    who = actor(paths, key, principal)
    done = cosign_study(paths, key=who.key, principal=who.principal)
    now = done.signatures
    if as_json:
        emit(
            {
                "study": paths.name,
                "seal": done.entry.body["seal"],
                "principal": who.principal,
                "entry": done.entry.seq,
                "commit": done.commit,
                "signatures": now.as_json(),
            }
        )
        return
    say(f"Signed the seal of {folder} as {who.principal}: {now}.")
    if now.complete:
        say(f"Next: {next_verb(standing(paths), folder, key)}")
    else:
        say(
            f"Still missing: {', '.join(now.missing)}. Next: prereg cosign {folder} --key KEY, by one of them"
        )
