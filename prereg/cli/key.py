"""`prereg key`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from prereg.cli.app import app
from prereg.cli.output import AsJson, emit, say, table
from prereg.errors import PreregError

Repository = Annotated[Path, typer.Option(help="The repository whose trust/ folder is meant.")]

key_app = typer.Typer(help="Keys, and who may sign what.", no_args_is_help=True, rich_markup_mode="rich")
app.add_typer(key_app, name="key")


@key_app.command(
    epilog="Example: prereg key new ~/keys/ada --principal ada@example.org --role author --role collector"
)
def new(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Where the private key goes; outside the repository.")
    ],
    principal: Annotated[str, typer.Option(help="Who you are, such as ada@example.org.")],
    role: Annotated[list[str], typer.Option(help="author, collector or reviewer; may be repeated.")],
    repository: Repository = Path(),
    as_json: AsJson = False,
) -> None:
    """Make an Ed25519 OpenSSH key and enter its public half in trust/."""
    from typing import cast

    from prereg.model.seal import Role
    from prereg.seal.keys import generate_key
    from prereg.seal.trust import add_signer

    roles = cast("list[Role]", role)
    made = generate_key(file)
    try:
        add_signer(repository.absolute(), principal, made.public_line, roles)
    except PreregError:
        # A key that trust/ refused must not lie around as if it counted.
        for leftover in (file.expanduser(), file.expanduser().with_name(file.name + ".pub")):
            leftover.unlink(missing_ok=True)
        raise
    if as_json:
        emit({"file": str(file), "principal": principal, "roles": role, "fingerprint": made.fingerprint})
        return
    say(f"Made {file} for {principal} ({', '.join(role)}), fingerprint {made.fingerprint}.")
    say("Keep the private key to yourself. Commit trust/, so that others can check your signatures.")


@key_app.command(epilog="Example: prereg key add ~/rev.pub --principal rev@example.org --role reviewer")
def add(
    public: Annotated[
        Path, typer.Argument(metavar="FILE", help="Somebody's public key: one line, ssh-ed25519 AAAA…")
    ],
    principal: Annotated[str, typer.Option(help="Whose key it is.")],
    role: Annotated[list[str], typer.Option(help="author, collector or reviewer; may be repeated.")],
    repository: Repository = Path(),
    as_json: AsJson = False,
) -> None:
    """Enter a public key that somebody made elsewhere, or give a known principal another role."""
    from typing import cast

    from prereg.model.seal import Role
    from prereg.seal import sshsig
    from prereg.seal.trust import add_signer
    from prereg.store.files import read_once

    text = read_once(public.expanduser().absolute(), limit=100_000).decode("utf-8", "replace").strip()
    line = " ".join(text.split()[:2])
    add_signer(repository.absolute(), principal, line, cast("list[Role]", role))
    fingerprint = sshsig.fingerprint(sshsig.wire_of(line, where=str(public)))
    if as_json:
        emit({"file": str(public), "principal": principal, "roles": role, "fingerprint": fingerprint})
        return
    say(f"Entered {fingerprint} for {principal} ({', '.join(role)}).")
    say("Compare the fingerprint with its owner by another channel. Commit trust/.")


@key_app.command("list", epilog="Example: prereg key list --json")
def list_keys(
    repository: Repository = Path(),
    as_json: AsJson = False,
) -> None:
    """Who may sign what in this repository."""
    from prereg.seal import sshsig
    from prereg.seal.trust import read_trust

    folder = repository.absolute() / "trust"
    trust = read_trust(folder / "allowed_signers", folder / "roles.json")
    rows: list[dict[str, Any]] = [
        {
            "principal": name,
            "roles": list(trust.roles.get(name, ())),
            "fingerprint": sshsig.fingerprint(signer.public_key),
            "valid_after": None if signer.valid_after is None else signer.valid_after.isoformat(),
            "valid_before": None if signer.valid_before is None else signer.valid_before.isoformat(),
        }
        for signer in trust.signers
        for name in signer.principals
    ]
    if as_json:
        emit({"signers": rows})
        return
    table(
        "Who may sign",
        ("principal", "roles", "key", "from", "until"),
        [
            (r["principal"], ", ".join(r["roles"]), r["fingerprint"], r["valid_after"], r["valid_before"])
            for r in rows
        ],
    )
