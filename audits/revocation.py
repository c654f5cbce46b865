"""Keys that no longer sign: ``trust/revocations.json``, for all studies of a repository (section 17)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from audits.fault import Fault, Found
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

    def refuses(self, at: datetime, stamped: bool) -> str:
        """Why a signature with this attested time does not count; empty if it does.

        Whoever has a compromised key can write any time but that of a timestamp.
        """
        said = f"was revoked at {self.at.isoformat()} ({self.reason})"
        if at >= self.at:
            return f"{said}, and the signature is of {at.isoformat()}"
        if self.reason == "compromised" and not stamped:
            return f"{said}, and no verified timestamp says that the signature is from before"
        return ""


def load_revocations(path: Path, given: bool, schemas: Mapping[str, Schema]) -> list[Revocation]:
    """What is revoked; nothing where there is no such file.

    ``given`` says that the reviewer named the file: it must be there then.
    """
    if path.is_symlink():
        raise Fault("is a link; a file of trust is a plain file", file=str(path))
    try:
        data = path.read_bytes()
    except OSError as error:
        if isinstance(error, FileNotFoundError) and not given:
            return []
        then = "name it with --revocations"
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
        there = (repository / path).read_bytes()
    except OSError as error:
        found.fault(f"HEAD has it, and here it cannot be read: {error.strerror}", file=path, then=then)
        return
    if there != committed:
        found.fault("HEAD has other bytes than those read here", file=path, then=then)
