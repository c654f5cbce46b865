"""Keys that no longer sign: ``trust/revocations.json``, for all studies of a repository (section 17)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from audits.fault import Fault, Found
from audits.given import read_plain, read_trust, real
from audits.jsonc import parse
from audits.load import moment
from audits.repo import head_file
from audits.schema import Schema

REVOCATIONS = "revocations.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Revocation:
    """One key that was taken back."""

    key: str
    """Its fingerprint."""
    at: datetime
    reason: str
    """``superseded``, ``lost`` or ``compromised``."""

    def refuses(self, at: datetime, outside: datetime | None) -> str:
        """Why a signature with this attested time does not count; empty if it does.

        Whoever has a compromised key can write any time, so that of a timestamp alone counts then:
        ``outside`` is the earliest that the signature is older than.
        """
        said = f"was revoked at {self.at.isoformat()} ({self.reason})"
        if self.reason == "compromised":
            if outside is None:
                return f"{said}, and no verified timestamp says that the signature is from before"
            at = outside
        return f"{said}, and the signature is of {at.isoformat()}" if at >= self.at else ""


def read_revocations(
    own: Path, signers: Path, given: Path | None, named: bool, schemas: Mapping[str, Schema]
) -> tuple[list[Revocation], str]:
    """What is revoked: by the file that is given, else by ``own`` and by the one beside ``signers``.

    Returns with it what was not read, if anything: where keys or roles are ``named``, their revocations may
    have stayed behind where they came from.
    """
    if given is not None:
        return load_revocations(given, own, True, schemas) or [], ""
    # Where the signers are a link, what lies beside the link and beside its end both say what is revoked.
    beside = {real(signers.parent), real(signers).parent}
    read = {
        folder: load_revocations(folder / REVOCATIONS, own, False, schemas)
        for folder in sorted({real(own), *beside})
    }
    revoked = [one for some in read.values() for one in some or ()]
    told = ""
    if all(some is None for some in read.values()):
        told = "no revocations file was given or found: revoked keys count" if named else "no revocations"
    elif named and all(read[folder] is None for folder in beside):
        told = "no revocations file was given, and none lies beside the signers: "
        told += "a key counts unless the repository's own revokes it"
    return revoked, told


def load_revocations(
    path: Path, own: Path, given: bool, schemas: Mapping[str, Schema]
) -> list[Revocation] | None:
    """What is revoked; None where there is no such file.

    ``own`` is the repository's folder of trust, and ``given`` says that the reviewer named the file: it must
    be there then.
    """
    then = "name it with --revocations"
    try:
        data = read_trust(path, own, then)
    except FileNotFoundError as error:
        if not given:
            return None
        raise Fault(f"cannot be read: {error.strerror}", file=str(path), then=then) from None
    try:
        value = parse(data)
        schemas["revocations"].check(value)
        revoked: list[Revocation] = []
        for i, item in enumerate(value["revocations"]):
            at = moment(item["at"], "", f"/revocations/{i}/at")
            if any(item["key"] == other.key for other in revoked):
                raise Fault(f"{item['key']} is there twice", pointer=f"/revocations/{i}/key")
            revoked.append(Revocation(key=item["key"], at=at, reason=item["reason"]))
    except Fault as fault:
        raise fault.at(str(path)) from None
    return revoked


def check_kept(repository: Path, found: Found) -> None:
    """Step 4: the revocations of HEAD lie in the folder as they are there, whichever the reviewer names."""
    path = f"trust/{REVOCATIONS}"
    committed = head_file(repository, path)
    if committed is None:
        return
    then = "put back what HEAD has, or commit the change"
    try:
        there = read_plain(repository / path)
    except (Fault, FileNotFoundError) as error:
        why = error.what if isinstance(error, Fault) else "it is missing"
        found.fault(f"HEAD has it, and here it cannot be read: {why}", file=path, then=then)
        return
    if there != committed:
        found.fault("HEAD has other bytes than those read here", file=path, then=then)
