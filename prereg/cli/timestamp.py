"""`prereg timestamp`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prereg.cli.app import app
from prereg.cli.output import KEY_HELP, AsJson, Principal, StudyDir, emit, say, take_key
from prereg.errors import UsageError

if TYPE_CHECKING:
    from prereg.store.layout import StudyPaths

Url = Annotated[str, typer.Option(metavar="URL", help="The authority's address, http or https (RFC 3161).")]
Key = Annotated[
    str | None,
    typer.Option(
        "--key", envvar="PREREG_KEY", metavar="KEY", help=f"{KEY_HELP} Not with --head.", callback=take_key
    ),
]
OfHead = Annotated[
    bool,
    typer.Option("--head", help="Stamp the ledger's present head instead: no key, no entry (edition 3)."),
]


@app.command(epilog="Example: prereg timestamp studies/mine --url https://tsa.example.org --key ~/keys/ada")
def timestamp(
    folder: StudyDir,
    url: Url,
    key: Key = None,
    of_head: OfHead = False,
    principal: Principal = None,
    as_json: AsJson = False,
) -> None:
    """Have the seal's signature stamped with the time by an authority that the protocol names.

    A digest of the signature is sent. The stamp is kept only if it verifies, and then it does so offline.
    With --head it is the signature of the ledger's present head, as often as you like: should a key be stolen
    one day, what it had signed up to its last stamp stays good.
    """
    from prereg.cli.ready import next_verb
    from prereg.cli.signing import actor
    from prereg.seal.stamping import timestamp_study
    from prereg.seal.standing import standing
    from prereg.store.layout import study_paths

    paths = study_paths(folder)
    if of_head:
        _stamp_head(paths, folder, url, as_json=as_json)
        return
    if key is None:
        raise UsageError(
            "a stamp of the seal is entered in the ledger, and that is signed: the key is missing",
            where="--key",
            next_step=f"prereg timestamp {folder} --url URL --key KEY; or --head, for a stamp of the head",
        )
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


def _stamp_head(paths: StudyPaths, folder: Path, url: str, *, as_json: bool) -> None:
    from prereg.seal.head_stamping import stamp_head

    done = stamp_head(paths, url)
    if as_json:
        emit(
            {
                "study": paths.name,
                "entry": done.seq,
                "time": done.time.isoformat(),
                "commit": done.commit,
            }
        )
        return
    word = "Stamped" if done.commit else "Stamped already:"
    say(f"{word} the head of {folder}: entries 1 to {done.seq} existed at {done.time.isoformat()}.")
