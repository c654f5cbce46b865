"""`prereg key`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from prereg.cli.app import app
from prereg.cli.output import AsJson, emit, say
from prereg.errors import PreregError

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
    repository: Annotated[
        Path, typer.Option(help="The repository whose trust/ folder is extended.")
    ] = Path(),
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
