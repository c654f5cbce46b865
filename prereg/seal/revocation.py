"""Keys that no longer sign: trust/revocations.json (docs/formats.md section 17)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Literal

from prereg.codec.convert import read_authored
from prereg.errors import UsageError
from prereg.store.ledger import parse_time

Reason = Literal["superseded", "lost", "compromised"]
Rescue = Callable[[datetime], bool]
"""Whether a stamp of a head attests a signature as older than that time (section 22)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Revocation:
    """One key that no longer signs."""

    key: str
    """OpenSSH fingerprint, `SHA256:…`."""
    at: str
    """From this time on no signature by the key counts."""
    reason: Reason
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Revocations:
    """The file."""

    schema: Literal["prereg/revocations/v1"] = "prereg/revocations/v1"
    revocations: tuple[Revocation, ...]


def parse_revocations(data: bytes, *, where: str) -> dict[str, Revocation]:
    """Read the file, by fingerprint. Raises a codec error, AuthoredFileInvalid, or UsageError.

    A key that stands twice refuses the file: two times of revocation would leave open which one counts.
    """
    found: dict[str, Revocation] = {}
    for i, one in enumerate(read_authored(data, "revocations", Revocations, where=where).revocations):
        place = f"{where}#/revocations/{i}"
        if one.key in found:
            raise UsageError(f"the key {one.key} stands twice", where=f"{place}/key")
        try:
            parse_time(one.at)
        except ValueError as error:
            raise UsageError(f"no such time: {error}", where=f"{place}/at") from None
        found[one.key] = one
    return found


def revocations_text(revocations: Mapping[str, Revocation]) -> bytes:
    """The bytes of the file, laid out for people."""
    value = {"schema": "prereg/revocations/v1", "revocations": [asdict(r) for r in revocations.values()]}
    return (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode()


def revocation_fault(
    revocation: Revocation, *, at: datetime, attested: bool, rescue: Rescue | None = None
) -> str | None:
    """Why a signature of that time by the revoked key does not count; None if it does.

    `attested` says that `at` is the time of a verified timestamp, which only a seal can have. Whoever has a
    compromised key can write any other time, and so what it signed counts only by such a timestamp, or if
    `rescue` says that a stamp of a head attests it.
    """
    end = parse_time(revocation.at)
    if revocation.reason == "compromised" and rescue is not None and rescue(end):
        return None
    if at >= end:
        return f"was revoked at {revocation.at} ({revocation.reason})"
    if revocation.reason == "compromised" and not attested:
        return (
            f"was revoked as compromised at {revocation.at}, and no verified timestamp says that this was "
            "signed before"
        )
    return None
