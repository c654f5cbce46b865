"""Changes of trust/: a key's line ends and another begins, and keys are revoked (docs/formats.md section 17).

Each change is checked whole before anything is written, by the reader that will read it, and each is one
rename: a crash leaves the old file or the new one. One program at a time changes these files.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from prereg.errors import UsageError
from prereg.seal import sshsig
from prereg.seal.allowed_signers import AllowedSigner, parse_allowed_signers, signer_line
from prereg.seal.revocation import Reason, Revocation, parse_revocations, revocations_text
from prereg.seal.trust import REVOCATIONS, Trust, read_trust, refuse_both
from prereg.store.files import read_once, write_whole
from prereg.store.ledger import parse_time, timestamp
from prereg.store.lock import trust_lock
from prereg.store.stale import remove_unfinished

_LIST = "prereg key list"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotation:
    """One key followed by another."""

    principals: tuple[str, ...]
    old: str
    """Fingerprint of the key whose line ended."""
    new: str
    """Fingerprint of the key that goes on."""
    at: datetime
    """The last whole second of the old key, and the first of the new one."""


def rotate_key(repository: Path, old: str, public_line: str, *, now: datetime | None = None) -> Rotation:
    """End the lines of the key `old` (a fingerprint) now, and let `public_line` sign from now on.

    The new key gets the names and namespaces of the old one; roles belong to names and stay. Raises
    UsageError if no line of `old` is valid now, or if the new key is known already or revoked, Untrusted if
    author and reviewer would share a key, and WrongState while another program changes trust/.
    """
    with trust_lock(repository):
        return _rotate(repository, old, public_line, now)


def _rotate(repository: Path, old: str, public_line: str, now: datetime | None) -> Rotation:
    trust = read_repository(repository)
    wire = sshsig.wire_of(public_line, where="the new key")
    new = sshsig.fingerprint(wire)
    if new in trust.revocations or any(s.public_key == wire for s in trust.signers):
        raise UsageError(f"the key {new} is known already", where=trust.where, next_step=_LIST)
    at = _whole_second(now)
    ending = [s for s in _lines_of(trust, old) if _ends_at(s, at)]
    if not ending or old in trust.revocations:
        what = "is revoked" if old in trust.revocations else "has no line that is valid now"
        raise UsageError(f"the key {old} {what}", where=trust.where, next_step=_LIST)
    file = Path(trust.where)
    rows = read_once(file).decode("utf-8").rstrip("\n").split("\n")
    for signer in ending:
        rows[signer.line - 1] = _row(replace(signer, valid_before=at))
        following = replace(signer, public_key=wire, valid_after=at, valid_before=None, comment="")
        if (row := _row(following)) not in rows:
            rows.append(row)
    data = ("\n".join(rows) + "\n").encode()
    refuse_both(replace(trust, signers=parse_allowed_signers(data, where=trust.where)))
    remove_unfinished(file)
    write_whole(file, data)
    names = tuple(dict.fromkeys(name for s in ending for name in s.principals))
    return Rotation(principals=names, old=old, new=new, at=at)


def revoke_key(
    repository: Path, key: str, reason: Reason, note: str, *, at: datetime | None = None
) -> Revocation:
    """Enter in trust/revocations.json that `key` (a fingerprint) does not sign from `at` (now) on.

    A key that was superseded or lost can turn out to be compromised: its entry is replaced, and the earlier
    time stays. Raises UsageError for a key that is in no line, is revoked for good, or a time to come, what
    the file's reader raises for the new entry, and WrongState while another program changes trust/.
    """
    with trust_lock(repository):
        return _revoke(repository, key, reason, note, at)


def _revoke(repository: Path, key: str, reason: Reason, note: str, at: datetime | None) -> Revocation:
    trust = read_repository(repository)
    _lines_of(trust, key)
    moment = timestamp(at)
    if parse_time(moment) > datetime.now(UTC):
        raise UsageError(
            f"{moment} is still to come",
            where="--at",
            next_step=f"prereg key rotate {key} --to FILE",
        )
    before = trust.revocations.get(key)
    if before is not None:
        if reason != "compromised" or before.reason == "compromised":
            raise UsageError(
                f"the key {key} was revoked at {before.at} ({before.reason})",
                where=str(_revocations(repository)),
                next_step=_LIST,
            )
        moment = min(moment, before.at, key=parse_time)
    made = Revocation(key=key, at=moment, reason=reason, note=note)
    file = _revocations(repository)
    data = revocations_text({**trust.revocations, key: made})
    parse_revocations(data, where=str(file))
    remove_unfinished(file)
    write_whole(file, data)
    return made


def read_repository(repository: Path) -> Trust:
    """The trust files of a repository; see `read_trust`."""
    folder = repository.absolute() / "trust"
    return read_trust(folder / "allowed_signers", folder / "roles.json")


def state_of(signer: AllowedSigner, trust: Trust, *, now: datetime) -> str:
    """`valid`, `not yet`, `expired` or `revoked`: whether this line's key may sign at `now`."""
    if (gone := trust.revocations.get(sshsig.fingerprint(signer.public_key))) and now >= parse_time(gone.at):
        return "revoked"
    at = now.replace(microsecond=0)
    if signer.valid_after is not None and at < signer.valid_after:
        return "not yet"
    if signer.valid_before is not None and at > signer.valid_before:
        return "expired"
    return "valid"


def _revocations(repository: Path) -> Path:
    return repository.absolute() / "trust" / REVOCATIONS


def _lines_of(trust: Trust, key: str) -> list[AllowedSigner]:
    found = [s for s in trust.signers if sshsig.fingerprint(s.public_key) == key]
    if not found:
        raise UsageError(f"no line has the key {key}", where=trust.where, next_step=_LIST)
    return found


def _ends_at(signer: AllowedSigner, at: datetime) -> bool:
    """Whether the line is valid at `at` and began before, so that it can end then."""
    began = signer.valid_after is None or signer.valid_after < at
    return began and (signer.valid_before is None or signer.valid_before >= at)


def _whole_second(now: datetime | None) -> datetime:
    return parse_time(timestamp(now)).replace(microsecond=0)


def _row(signer: AllowedSigner) -> str:
    return signer_line(
        signer.principals,
        signer.public_line,
        namespaces=signer.namespaces,
        valid_after=signer.valid_after,
        valid_before=signer.valid_before,
        comment=signer.comment,
    )
