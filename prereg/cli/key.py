"""`prereg key`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from prereg.cli.app import app
from prereg.cli.key_place import told_place, trust_place, trust_to_read
from prereg.cli.output import AsJson, emit, say, told
from prereg.errors import PreregError, UsageError

if TYPE_CHECKING:
    from datetime import datetime

    from prereg.model.seal import Role
    from prereg.seal.keys import SigningKey
    from prereg.seal.revocation import Reason

Repository = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER", help="The folder whose trust/ is meant; if left out, the repository you are in."
    ),
]
Roles = Annotated[list[str], typer.Option(help="author, collector or reviewer; may be repeated.")]
After = Annotated[
    str | None,
    typer.Option(
        help="The key signs from this UTC time on: 2026-11-30, 2026-11-30T12:00, or OpenSSH's form."
    ),
]
Before = Annotated[str | None, typer.Option(help="The key signs up to and including this UTC time.")]
Which = Annotated[
    str, typer.Argument(metavar="KEY", help="The key: its fingerprint SHA256:…, or its .pub file.")
]
REASONS = ("superseded", "lost", "compromised")
_FIRST_YEAR = 1970
"""No key is older: a year before is a slip, and one of three digits has no place in OpenSSH's form."""

key_app = typer.Typer(help="Keys, and who may sign what and when.", no_args_is_help=True)
app.add_typer(key_app, name="key")


@key_app.command(
    epilog="Example: prereg key new ~/keys/ada --principal ada@example.org --role author --role collector"
)
def new(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Where the private key goes; outside the repository.")
    ],
    principal: Annotated[str, typer.Option(help="Who you are, such as ada@example.org.")],
    role: Roles,
    valid_after: After = None,
    valid_before: Before = None,
    repository: Repository = None,
    as_json: AsJson = False,
) -> None:
    """Make an Ed25519 OpenSSH key and enter its public half in trust/.

    A key that a hardware token holds is made by OpenSSH, outside of the repository, and then entered:
    ssh-keygen -t ed25519-sk -f ~/keys/ada; prereg key add ~/keys/ada.pub. So is one behind a passphrase
    (ssh-keygen -t ed25519). Either signs with --key ~/keys/ada, and asks you each time that it does.
    """
    from prereg.seal.keys import generate_key

    after, before = _moment(valid_after, "--valid-after"), _moment(valid_before, "--valid-before")
    place = trust_place(repository)
    made = generate_key(file)
    try:
        _enter(place, principal, made.public_line, role, after, before)
    except PreregError:
        _forget(file)
        raise
    if as_json:
        emit({"file": str(file), "principal": principal, "roles": role, "fingerprint": made.fingerprint})
        return
    say(f"Made {file} for {principal} ({', '.join(role)}), fingerprint {made.fingerprint}.", whole=True)
    say(f"Keep the private key to yourself. Commit {told_place(place)}: others check your signatures by it.")


@key_app.command(epilog="Example: prereg key add ~/rev.pub --principal rev@example.org --role reviewer")
def add(
    public: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Somebody's public key: one line, ssh-ed25519 AAAA…, or sk-ssh-ed25519@openssh.com AAAA… of "
            "a hardware token.",
        ),
    ],
    principal: Annotated[str, typer.Option(help="Whose key it is.")],
    role: Roles,
    valid_after: After = None,
    valid_before: Before = None,
    repository: Repository = None,
    as_json: AsJson = False,
) -> None:
    """Enter a public key that somebody made elsewhere, or give a known principal another role."""
    from prereg.seal import sshsig
    from prereg.seal.keys import read_public

    line = read_public(public)
    after, before = _moment(valid_after, "--valid-after"), _moment(valid_before, "--valid-before")
    place = trust_place(repository)
    _enter(place, principal, line, role, after, before)
    fingerprint = sshsig.fingerprint(sshsig.wire_of(line, where=str(public)))
    if as_json:
        emit({"file": str(public), "principal": principal, "roles": role, "fingerprint": fingerprint})
        return
    say(f"Entered {fingerprint} for {principal} ({', '.join(role)}).", whole=True)
    say(f"Compare the fingerprint with its owner by another channel. Commit {told_place(place)}.")


@key_app.command(epilog="Example: prereg key rotate SHA256:abc… --to ~/keys/ada-2027")
def rotate(
    old: Which,
    to: Annotated[
        Path,
        typer.Option(metavar="FILE", help="The next key: a .pub file, or a new file where a key is made."),
    ],
    repository: Repository = None,
    as_json: AsJson = False,
) -> None:
    """End a key's line now, and let another key sign for the same names from now on.

    What the old key signed until now stays good.
    """
    from prereg.seal.keys import generate_key, read_public
    from prereg.seal.rotation import rotate_key

    fingerprint, place = _fingerprint(old), trust_place(repository)
    made: SigningKey | None = None
    if to.suffix != ".pub":
        made = generate_key(to)
    try:
        line = made.public_line if made is not None else read_public(to)
        done = rotate_key(place.absolute(), fingerprint, line)
    except PreregError:
        if made is not None:
            _forget(to)
        raise
    if as_json:
        emit(
            {
                "principals": list(done.principals),
                "old": done.old,
                "new": done.new,
                "at": done.at.isoformat(),
                "file": str(to),
            }
        )
        return
    say(f"{done.old} of {', '.join(done.principals)} ends at {done.at:%Y-%m-%dT%H:%M:%SZ}.", whole=True)
    say(f"{done.new} signs from then on. Commit {told_place(place)}.", whole=True)


@key_app.command(epilog="Example: prereg key revoke SHA256:abc… --reason lost --note 'Stolen laptop'")
def revoke(
    key: Which,
    reason: Annotated[
        str,
        typer.Option(help="superseded, lost, or compromised: then only what a timestamp attests counts."),
    ],
    note: Annotated[str, typer.Option(help="What happened, for those who read it later.")],
    at: Annotated[
        str | None, typer.Option(help="From this UTC time on no signature counts; now if left out.")
    ] = None,
    repository: Repository = None,
    as_json: AsJson = False,
) -> None:
    """Enter in trust/revocations.json that a key no longer signs. Every study of the repository heeds it."""
    from dataclasses import asdict

    from prereg.seal.rotation import revoke_key

    if reason not in REASONS:
        raise UsageError(f"there is no reason {reason!r}", where="--reason", next_step=", ".join(REASONS))
    place = trust_place(repository)
    made = revoke_key(
        place.absolute(), _fingerprint(key), cast("Reason", reason), note, at=_moment(at, "--at")
    )
    if as_json:
        emit(asdict(made))
        return
    say(f"Revoked {made.key} from {made.at} on ({made.reason}).", whole=True)
    if made.reason == "compromised":
        say(
            "By this key only what a verified time stamp shows to be older counts: a seal by its own. In "
            "edition 3 also by stamps of ledger heads (prereg timestamp DIR --head): the seals, cosignatures "
            "and reports entered up to a stamped head, and, if this key signed that head, the heads up to it."
        )
    say(f"Commit {told_place(place)}, and run prereg verify on each study that it signed.")


@key_app.command("list", epilog="Example: prereg key list --json")
def list_keys(
    repository: Repository = None,
    as_json: AsJson = False,
) -> None:
    """Who may sign what in this repository, and which keys still count."""
    from datetime import UTC, datetime

    from prereg.seal import sshsig
    from prereg.seal.rotation import read_repository, state_of

    trust, now = read_repository(trust_to_read(repository)), datetime.now(UTC)
    rows: list[dict[str, Any]] = []
    for signer in trust.signers:
        name = sshsig.fingerprint(signer.public_key)
        revoked = trust.revocations.get(name)
        for principal in signer.principals:
            rows.append(
                {
                    "principal": principal,
                    "roles": list(trust.roles.get(principal, ())),
                    "fingerprint": name,
                    "type": signer.public_line.split()[0],
                    "valid_after": None if signer.valid_after is None else signer.valid_after.isoformat(),
                    "valid_before": None if signer.valid_before is None else signer.valid_before.isoformat(),
                    "state": state_of(signer, trust, now=now),
                    "revoked": None
                    if revoked is None
                    else {"at": revoked.at, "reason": revoked.reason, "note": revoked.note},
                }
            )
    if as_json:
        emit({"signers": rows})
        return
    say("Who may sign")
    for r in rows:
        # A line of its own: a fingerprint that is broken over two lines of a table cannot be copied.
        say(f"  {r['fingerprint']}", whole=True)
        kind = r["type"].partition("@")[0]
        say(f"    {r['principal']}: {', '.join(r['roles']) or 'no role'}; {kind}, {r['state']}{_times(r)}")
    for gone in trust.revocations.values():
        say(f"Revoked: {gone.key} at {gone.at}, {gone.reason}. {told(gone.note)}", whole=True)


def _times(row: dict[str, Any]) -> str:
    """From when and until when a key signs, where its line says it."""
    after, before = row["valid_after"], row["valid_before"]
    return (f", from {after}" if after else "") + (f", until {before}" if before else "")


def _enter(
    repository: Path,
    principal: str,
    line: str,
    role: list[str],
    after: datetime | None,
    before: datetime | None,
) -> None:
    """`add_signer`, while no other program changes trust/: it reads, adds and writes."""
    from prereg.seal.trust import add_signer
    from prereg.store.lock import trust_lock

    with trust_lock(repository):
        add_signer(
            repository.absolute(),
            principal,
            line,
            cast("list[Role]", role),
            valid_after=after,
            valid_before=before,
        )


def _moment(text: str | None, option: str) -> datetime | None:
    """A time of the command line: OpenSSH's form, or ISO 8601; UTC where it has no zone."""
    from datetime import UTC, datetime

    from prereg.seal.allowed_signers import moment

    if text is None:
        return None
    if text[:8].isdigit():
        found = moment(text, where=option)
    else:
        try:
            found = datetime.fromisoformat(text)
            found = found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
        except (ValueError, OverflowError):  # no such time, or none in UTC
            raise _not_understood(text, option) from None
    if found.year < _FIRST_YEAR:
        raise _not_understood(text, option)
    return found


def _not_understood(text: str, option: str) -> UsageError:
    what = f"the time {text!r} is not understood"
    return UsageError(what, where=option, next_step=f"{option} 2026-11-30T12:00")


def _fingerprint(key: str) -> str:
    """A fingerprint as it stands, or that of a public key file."""
    from prereg.seal import sshsig
    from prereg.seal.keys import read_public

    if key.startswith("SHA256:"):
        return key
    return sshsig.fingerprint(sshsig.wire_of(read_public(Path(key)), where=key))


def _forget(file: Path) -> None:
    """A key that trust/ refused must not lie around as if it counted."""
    for leftover in (file.expanduser(), file.expanduser().with_name(file.name + ".pub")):
        leftover.unlink(missing_ok=True)
