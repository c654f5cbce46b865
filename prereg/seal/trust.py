"""Who may sign what, and when: allowed_signers, roles and revocations (docs/formats.md sections 4 and 17)."""

from __future__ import annotations

import fnmatch
import os
import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import cast, get_args

from prereg.codec.canonical import loads
from prereg.codec.schema import validate
from prereg.errors import EvidenceIncomplete, UsageError, VerificationFailed, WrongState
from prereg.model.seal import Role
from prereg.seal import sshsig
from prereg.seal.allowed_signers import AllowedSigner, parse_allowed_signers, signer_line
from prereg.seal.revocation import Rescue, Revocation, parse_revocations, revocation_fault
from prereg.store.files import read_once, write_whole
from prereg.store.layout import StudyPaths
from prereg.store.ledger import parse_time
from prereg.store.repo import Repo
from prereg.store.stale import remove_unfinished

AUTHOR: tuple[Role, ...] = ("author",)
REVOCATIONS = "revocations.json"
SEAL = "prereg-seal"
LEDGER = "prereg-ledger"
AUDIT = "prereg-audit"
NAMESPACES: dict[Role, tuple[str, ...]] = {
    "author": (SEAL, LEDGER),
    "collector": (LEDGER,),
    "reviewer": (AUDIT, LEDGER),
}
"""What each role has to sign."""

_NEW = (
    "prereg key new FILE --principal NAME --role author, "
    "or prereg key add KEY.pub --principal NAME --role author"
)
_PRINCIPAL = re.compile(r"[A-Za-z0-9][A-Za-z0-9@._+-]{0,127}")


class Untrusted(VerificationFailed):
    """A signature is sound, but its signer is not allowed it."""


class Compromised(Untrusted):
    """A signature by a key that was revoked as compromised does not count."""

    key: bytes = b""
    """The key, in OpenSSH's wire form."""
    at: datetime | None = None
    """The time of the revocation."""


class SignerRefused(Untrusted):
    """The key that was just named may not sign this: the command line's fault, and no evidence's."""

    exit_code = UsageError.exit_code


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """The trust files of a repository, checked against each other."""

    signers: tuple[AllowedSigner, ...]
    roles: dict[str, tuple[Role, ...]]
    revocations: Mapping[str, Revocation] = field(default_factory=dict)
    """Keys that no longer sign, by fingerprint."""
    where: str


def parse_roles(data: bytes, *, where: str) -> dict[str, tuple[Role, ...]]:
    """Read roles.json. Raises a codec error or AuthoredFileInvalid."""
    value = loads(data, where=where)
    validate(value, "roles", where=where, authored=True)
    assert isinstance(value, dict)
    return {name: tuple(roles) for name, roles in value["roles"].items()}


def load_trust(paths: StudyPaths) -> Trust:
    """The trust files of the study's repository.

    Raises EvidenceIncomplete if one is missing (revocations.json may be, where HEAD has none), UsageError if
    one cannot be read, and Untrusted if a key or a principal is both an author's and a reviewer's, or if HEAD
    has other revocations than lie here.
    """
    gone = (file for file in (paths.allowed_signers, paths.roles) if not os.path.lexists(file))
    lost = [file for file in gone if _committed(paths, file) is not None]
    return read_trust(
        paths.allowed_signers,
        paths.roles,
        committed=_committed(paths, paths.allowed_signers.with_name(REVOCATIONS)),
        missing=f"git checkout HEAD -- {shlex.quote(str(lost[0]))}" if lost else _NEW,
    )


def read_trust(
    allowed_signers: Path, roles: Path, *, committed: str | None = None, missing: str = _NEW
) -> Trust:
    """The files, checked against each other; revocations.json lies beside them. See `load_trust`.

    `committed` is the blob that revocations.json must be, `missing` the next step if a file is not there.
    """
    revoked = allowed_signers.with_name(REVOCATIONS)
    try:
        signers = parse_allowed_signers(read_once(allowed_signers), where=str(allowed_signers))
        known = parse_roles(read_once(roles), where=str(roles))
    except EvidenceIncomplete as error:
        raise EvidenceIncomplete(error.what, where=error.where, next_step=missing) from None
    data = read_once(revoked) if os.path.lexists(revoked) else None
    if committed is not None and (data is None or Repo.blob_id(data, like=committed) != committed):
        what = "is missing" if data is None else "is not as it was committed"
        raise Untrusted(
            f"{what}: without what HEAD has of it a revoked key would count",
            where=str(revoked),
            next_step=f"git checkout HEAD -- {shlex.quote(str(revoked))}, or commit it if it is meant",
        )
    gone = {} if data is None else parse_revocations(data, where=str(revoked))
    trust = Trust(signers=signers, roles=known, revocations=gone, where=str(allowed_signers))
    refuse_both(trust)
    return trust


def _committed(paths: StudyPaths, file: Path) -> str | None:
    """The blob of a trust file in HEAD; None where it has none, or where there is no history to ask."""
    try:
        # The repository that trust/ lies in: one that was made around the study alone has no say.
        repo = Repo.find(paths.repository)
    except WrongState:
        return None
    head = repo.head()
    if head is None:
        return None
    # By its tree: that an object cannot be read must not look as if it were not there.
    named = repo.blobs_at(head, file).get(repo.relative(file))
    return None if named is None else named[1]


def refuse_both(trust: Trust) -> None:
    """A reviewer's key and principal never are an author's. Raises Untrusted."""
    for principal, roles in trust.roles.items():
        if "author" in roles and "reviewer" in roles:
            raise Untrusted(f"{principal} is both author and reviewer", where=trust.where)
    by_key: dict[bytes, set[Role]] = {}
    for signer in trust.signers:
        for principal in signer.principals:
            by_key.setdefault(signer.public_key, set()).update(trust.roles.get(principal, ()))
    for key, held in by_key.items():
        if {"author", "reviewer"} <= held:
            raise Untrusted(
                f"the key {sshsig.fingerprint(key)} is both an author's and a reviewer's", where=trust.where
            )


def trust_files(paths: StudyPaths) -> list[Path]:
    """The trust files that are there: whoever checks a signature needs them all."""
    revoked = paths.allowed_signers.with_name(REVOCATIONS)
    return [paths.allowed_signers, paths.roles, *([revoked] if revoked.exists() else [])]


def uncommitted(paths: StudyPaths) -> list[Path]:
    """The trust files that HEAD does not have as they lie here: a clone does not know what they allow."""
    repo = Repo.find(paths.root)
    head = repo.head()
    return [
        file for file in trust_files(paths) if head is None or repo.blob_at(head, file) != read_once(file)
    ]


def refuse_uncommitted(paths: StudyPaths) -> None:
    """Raise WrongState unless the trust files of HEAD are those on disk: a clone must be able to check us."""
    for file in uncommitted(paths):
        raise WrongState(
            "is not committed as it stands: nobody else could check the signature",
            where=str(file),
            next_step=f"git add {shlex.quote(str(file.parent))} && git commit -m 'Who may sign'",
        )


def check_signer(
    trust: Trust,
    *,
    principal: str,
    public_key: bytes,
    roles: Iterable[Role],
    namespace: str,
    at: datetime,
    where: str,
    attested: bool = False,
    rescue: Rescue | None = None,
) -> None:
    """Check that `principal` holds one of `roles` and may sign with this key in `namespace` at that time.

    `attested` says that `at` comes from a verified timestamp, `rescue` whether a stamp of a head attests the
    signature as older than a time (section 22). Raises Untrusted, naming `where`, otherwise.
    """
    roles = tuple(roles)
    held = trust.roles.get(principal, ())
    name = sshsig.fingerprint(public_key)
    if not set(held) & set(roles):
        wanted = " or ".join(roles)
        raise Untrusted(
            f"{principal} has no role {wanted} in trust/roles.json", where=where, next_step=_changed(trust)
        )
    lines = [s for s in trust.signers if principal in s.principals and s.public_key == public_key]
    if not lines:
        raise Untrusted(
            f"the key {name} is not {principal}'s in trust/allowed_signers",
            where=where,
            next_step=_changed(trust),
        )
    faults = [fault for s in lines if (fault := _fault(s, namespace, at))]
    if len(faults) == len(lines):
        raise Untrusted(f"the key {name} of {principal} {faults[0]}", where=where, next_step=_changed(trust))
    revoked = trust.revocations.get(name)
    if revoked is not None and (gone := revocation_fault(revoked, at=at, attested=attested, rescue=rescue)):
        what = f"the key {name} of {principal} {gone}"
        if revoked.reason == "compromised":
            stolen = Compromised(what, where=where, next_step="prereg key list")
            stolen.key, stolen.at = public_key, parse_time(revoked.at)
            raise stolen
        raise Untrusted(what, where=where, next_step="prereg key list")


def _changed(trust: Trust) -> str:
    """How to see what became of trust/; nothing that throws away an edit of it that is meant."""
    folder = shlex.quote(str(Path(trust.where).parent))
    return f"prereg key list; and for what was changed: git log -p -- {folder}"


def check_own_signer(
    trust: Trust,
    *,
    principal: str,
    public_key: bytes,
    roles: Iterable[Role],
    namespace: str,
    at: datetime,
    where: str,
) -> None:
    """`check_signer` for whoever is about to sign. Raises SignerRefused, with how to let them sign."""
    roles = tuple(roles)
    try:
        check_signer(
            trust,
            principal=principal,
            public_key=public_key,
            roles=roles,
            namespace=namespace,
            at=at,
            where=where,
        )
    except Untrusted as error:
        held = trust.roles.get(principal, ())
        known = any(principal in s.principals and s.public_key == public_key for s in trust.signers)
        step = "prereg key list"  # the key is over, or not begun
        if not set(held) & set(roles) or not known:
            step = _entering(principal, held, roles)
        if not set(held) & set(roles) and (able := _able(trust, roles, namespace, at)):
            step = f"the same with --key KEY of {' or '.join(able)}; or, for that role: {step}"
        raise SignerRefused(error.what, where=error.where, next_step=step) from None


def _able(trust: Trust, roles: Sequence[Role], namespace: str, at: datetime) -> list[str]:
    """Who has one of `roles`, and a key that signs in `namespace` at that time."""
    found = set()
    for signer in trust.signers:
        for name in signer.principals:
            try:
                check_signer(
                    trust,
                    principal=name,
                    public_key=signer.public_key,
                    roles=roles,
                    namespace=namespace,
                    at=at,
                    where=trust.where,
                )
            except Untrusted:
                continue
            found.add(name)
    return sorted(found)


def _entering(principal: str, held: Collection[Role], roles: Sequence[Role]) -> str:
    """The command that lets somebody sign: `principal`, unless their role forbids it."""
    role = next((r for r in roles if r in held), roles[0])
    if {"author", "reviewer"} <= {*held, role}:
        return f"prereg key add KEY.pub --principal NAME --role {role}, with the key of another person"
    return f"prereg key add KEY.pub --principal {principal} --role {role}"


def _fault(signer: AllowedSigner, namespace: str, at: datetime) -> str | None:
    """Why this line does not allow a signature, by OpenSSH's rules; None if it does. Whole seconds count."""
    at = at.replace(microsecond=0)
    if signer.namespaces is not None and not _matches(namespace, signer.namespaces):
        return f"may not sign in namespace {namespace} (line {signer.line})"
    if signer.valid_after is not None and at < signer.valid_after:
        return f"was not valid before {signer.valid_after.isoformat()} (line {signer.line})"
    if signer.valid_before is not None and at > signer.valid_before:
        return f"is not valid after {signer.valid_before.isoformat()} (line {signer.line})"
    return None


def _matches(name: str, patterns: Iterable[str]) -> bool:
    """OpenSSH's pattern list: `*` and `?`; a `!` pattern that matches always wins."""
    hit = False
    for pattern in patterns:
        plain = pattern.removeprefix("!").replace("[", "[[]")
        if fnmatch.fnmatchcase(name, plain):
            if pattern.startswith("!"):
                return False
            hit = True
    return hit


def add_signer(
    repository: Path,
    principal: str,
    public_key: str,
    roles: Collection[Role],
    *,
    valid_after: datetime | None = None,
    valid_before: datetime | None = None,
) -> None:
    """Let `principal` sign with `public_key` (an OpenSSH line) in the namespaces of `roles`.

    Adds a line to trust/allowed_signers and the roles to trust/roles.json; both are made if missing. Raises
    UsageError for a bad name, key or role, and Untrusted if author and reviewer would share a key or a name.
    """
    if not _PRINCIPAL.fullmatch(principal):
        step = "--principal NAME: a letter or digit, then those and @ . _ + -"
        what = f"the principal {principal!r} is not a plain name"
        raise UsageError(what, where="principal", next_step=step)
    unknown = set(roles) - set(get_args(Role))
    if unknown or not roles:
        step = "--role author, --role reviewer or --role collector"
        raise UsageError("roles are author, reviewer and collector", where="roles", next_step=step)
    signers_file = repository / "trust" / "allowed_signers"
    roles_file = repository / "trust" / "roles.json"
    try:
        wire = sshsig.wire_of(public_key, where="public key")
    except sshsig.BadSignature as error:
        raise UsageError(error.what, where=error.where, next_step=error.next_step) from None
    before = read_once(signers_file) if signers_file.exists() else b""
    known = parse_roles(read_once(roles_file), where=str(roles_file)) if roles_file.exists() else {}
    order = cast("tuple[Role, ...]", get_args(Role))
    wanted = tuple(r for r in order if r in {*known.get(principal, ()), *roles})
    spaces = sorted({n for role in wanted for n in NAMESPACES[role]})
    line = signer_line(
        [principal], public_key, namespaces=spaces, valid_after=valid_after, valid_before=valid_before
    )
    if before and not before.endswith(b"\n"):
        before += b"\n"
    after = before if line.encode() in before.splitlines() else before + line.encode() + b"\n"
    known[principal] = wanted
    trust = Trust(
        signers=parse_allowed_signers(after, where=str(signers_file)), roles=known, where=str(signers_file)
    )
    refuse_both(trust)
    assert any(s.public_key == wire for s in trust.signers)
    for file, data in ((signers_file, after), (roles_file, _roles_text(known))):
        remove_unfinished(file)
        write_whole(file, data)


def _roles_text(roles: dict[str, tuple[Role, ...]]) -> bytes:
    import json

    value = {"schema": "prereg/roles/v1", "roles": {name: list(held) for name, held in roles.items()}}
    return (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode()
