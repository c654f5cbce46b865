"""Who may sign what: OpenSSH's allowed_signers and the roles (docs/formats.md section 4)."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import cast, get_args

from prereg.codec.canonical import loads
from prereg.codec.schema import AuthoredFileInvalid, validate
from prereg.errors import EvidenceIncomplete, UsageError, VerificationFailed, WrongState
from prereg.model.seal import Role
from prereg.seal import sshsig
from prereg.store.files import read_once, write_whole
from prereg.store.layout import StudyPaths
from prereg.store.repo import Repo

AUTHOR: tuple[Role, ...] = ("author",)
SEAL = "prereg-seal"
LEDGER = "prereg-ledger"
AUDIT = "prereg-audit"
NAMESPACES: dict[Role, tuple[str, ...]] = {
    "author": (SEAL, LEDGER),
    "collector": (LEDGER,),
    "reviewer": (AUDIT, LEDGER),
}
"""What each role has to sign."""

_PRINCIPAL = re.compile(r"[A-Za-z0-9][A-Za-z0-9@._+-]{0,127}")
_TIME = re.compile(r"[0-9]{8}([0-9]{4}([0-9]{2})?)?Z?")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_SIGNER = re.compile(
    r'(?P<names>"[^"]*"|[^ \t"]+)[ \t]+((?P<options>([^ \t"]|"[^"]*")+)[ \t]+)??'
    r"(?P<key>(ssh-|ecdsa-|sk-)[^ \t]*[ \t]+[^ \t]+)([ \t].*)?"
)
"""A line: names, perhaps options, a key's type and the key, perhaps a comment."""
_PART = re.compile(r'(?:^|(?<=,))(?:[^,"]|"[^"]*")*')
_QUOTED = re.compile(r'"[^"]*"')


class Untrusted(VerificationFailed):
    """A signature is sound, but its signer is not allowed it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowedSigner:
    """One line of allowed_signers."""

    line: int
    principals: tuple[str, ...]
    namespaces: tuple[str, ...] | None
    """Patterns of the namespaces that the key may sign in; None for all."""
    valid_after: datetime | None
    valid_before: datetime | None
    public_key: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """The two trust files of a repository, checked against each other."""

    signers: tuple[AllowedSigner, ...]
    roles: dict[str, tuple[Role, ...]]
    where: str


def parse_allowed_signers(data: bytes, *, where: str) -> tuple[AllowedSigner, ...]:
    """Read OpenSSH's format. Raises UsageError, with the line, for what is not understood.

    Names with wildcards and `cert-authority` are refused: each line says exactly who and which key. A time
    without a zone counts as UTC. One line that is not understood refuses the whole file.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise UsageError("is not UTF-8", where=where) from None
    found = []
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.strip(" \t\r")
        if line and not line.startswith("#"):
            found.append(_signer(line, number, f"{where}:{number}"))
    return tuple(found)


def _signer(line: str, number: int, where: str) -> AllowedSigner:
    if _CONTROL.search(line):
        raise UsageError("has a control character", where=where)
    match = _SIGNER.fullmatch(line)
    if match is None:
        raise UsageError("is not `principals [options] type key`", where=where)
    names = tuple(match["names"].strip('"').split(","))
    for name in names:
        if not name or set(name) & set("*?!"):
            raise UsageError(f"the principal {name!r} is not a plain name", where=where)
    options = _options(match["options"] or "", where)
    try:
        key = sshsig.wire_of(match["key"], where=where)
    except sshsig.BadSignature as error:
        raise UsageError(error.what, where=where) from None
    namespaces = options.get("namespaces")
    after, before = (_moment(options.get(name), where) for name in ("valid-after", "valid-before"))
    if after is not None and before is not None and before <= after:
        raise UsageError("valid-before is not later than valid-after", where=where)
    return AllowedSigner(
        line=number,
        principals=names,
        namespaces=None if namespaces is None else tuple(namespaces.split(",")),
        valid_after=after,
        valid_before=before,
        public_key=key,
    )


def _options(text: str, where: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in _PART.findall(text) if text else ():
        name, _, value = part.partition("=")
        name = name.lower()
        if name == "cert-authority":
            raise UsageError("certificate authorities are not supported", where=where)
        if name and name not in ("namespaces", "valid-after", "valid-before"):
            raise UsageError(f"the option {name!r} is not known", where=where)
        if not _QUOTED.fullmatch(value):
            raise UsageError(f'{part!r} is not an option: they are name="value", with commas', where=where)
        if name in found:
            raise UsageError(f"the option {name!r} stands twice", where=where)
        found[name] = value[1:-1]
    return found


def _moment(text: str | None, where: str) -> datetime | None:
    if text is None:
        return None
    if not _TIME.fullmatch(text):
        raise UsageError(f"the time {text!r} is not YYYYMMDD[HHMM[SS]][Z]", where=where)
    digits = text.rstrip("Z").ljust(14, "0")
    try:
        return datetime.strptime(digits, "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        raise UsageError(f"the time {text!r} does not exist", where=where) from None


def parse_roles(data: bytes, *, where: str) -> dict[str, tuple[Role, ...]]:
    """Read roles.json. Raises a codec error or AuthoredFileInvalid."""
    value = loads(data, where=where)
    validate(value, "roles", where=where, authored=True)
    assert isinstance(value, dict)
    return {name: tuple(roles) for name, roles in value["roles"].items()}


def load_trust(paths: StudyPaths) -> Trust:
    """The trust files of the study's repository.

    Raises EvidenceIncomplete if one is missing, UsageError if one cannot be read, and Untrusted if a key or a
    principal is both an author's and a reviewer's.
    """
    return read_trust(paths.allowed_signers, paths.roles)


def read_trust(allowed_signers: Path, roles: Path) -> Trust:
    """The two files, checked against each other; see `load_trust`."""
    try:
        signers = parse_allowed_signers(read_once(allowed_signers), where=str(allowed_signers))
        known = parse_roles(read_once(roles), where=str(roles))
    except EvidenceIncomplete as error:
        raise EvidenceIncomplete(error.what, where=error.where, next_step=_TRUST) from None
    trust = Trust(signers=signers, roles=known, where=str(allowed_signers))
    _refuse_both(trust)
    return trust


def _refuse_both(trust: Trust) -> None:
    """A reviewer's key and principal never are an author's."""
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


def refuse_uncommitted(paths: StudyPaths) -> None:
    """Raise WrongState unless the trust files of HEAD are those on disk: a clone must be able to check us."""
    repo = Repo.find(paths.root)
    head = repo.head()
    for file in (paths.allowed_signers, paths.roles):
        if head is None or repo.blob_at(head, file) != read_once(file):
            raise WrongState(
                "is not committed as it stands: nobody else could check the signature",
                where=str(file),
                next_step="git add trust && git commit -m 'Who may sign'",
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
) -> None:
    """Check that `principal` holds one of `roles` and may sign with this key in `namespace` at that time.

    Raises Untrusted, naming `where`, otherwise.
    """
    roles = tuple(roles)
    held = trust.roles.get(principal, ())
    name = sshsig.fingerprint(public_key)
    if not set(held) & set(roles):
        wanted = " or ".join(roles)
        raise Untrusted(
            f"{principal} has no role {wanted} in trust/roles.json", where=where, next_step=_TRUST
        )
    lines = [s for s in trust.signers if principal in s.principals and s.public_key == public_key]
    if not lines:
        raise Untrusted(
            f"the key {name} is not {principal}'s in trust/allowed_signers", where=where, next_step=_TRUST
        )
    faults = [fault for s in lines if (fault := _fault(s, namespace, at))]
    if len(faults) == len(lines):
        raise Untrusted(f"the key {name} of {principal} {faults[0]}", where=where, next_step=_TRUST)


_TRUST = "git checkout -- trust, or prereg key new"


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


def add_signer(repository: Path, principal: str, public_key: str, roles: Collection[Role]) -> None:
    """Let `principal` sign with `public_key` (an OpenSSH line) in the namespaces of `roles`.

    Adds a line to trust/allowed_signers and the roles to trust/roles.json; both are made if missing. Raises
    UsageError for a bad name, key or role, and Untrusted if author and reviewer would share a key or a name.
    """
    if not _PRINCIPAL.fullmatch(principal):
        raise UsageError(f"the principal {principal!r} is not a plain name", where="principal")
    unknown = set(roles) - set(get_args(Role))
    if unknown or not roles:
        raise UsageError("roles are author, reviewer and collector", where="roles")
    signers_file = repository / "trust" / "allowed_signers"
    roles_file = repository / "trust" / "roles.json"
    try:
        wire = sshsig.wire_of(public_key, where="public key")
    except sshsig.BadSignature as error:
        raise UsageError(error.what, where=error.where) from None
    before = read_once(signers_file) if signers_file.exists() else b""
    known = parse_roles(read_once(roles_file), where=str(roles_file)) if roles_file.exists() else {}
    order = cast("tuple[Role, ...]", get_args(Role))
    wanted = tuple(r for r in order if r in {*known.get(principal, ()), *roles})
    spaces = sorted({n for role in wanted for n in NAMESPACES[role]})
    line = f'{principal} namespaces="{",".join(spaces)}" {" ".join(public_key.split()[:2])}\n'
    if before and not before.endswith(b"\n"):
        before += b"\n"
    after = before if line.encode() in before.splitlines(keepends=True) else before + line.encode()
    known[principal] = wanted
    trust = Trust(
        signers=parse_allowed_signers(after, where=str(signers_file)), roles=known, where=str(signers_file)
    )
    _refuse_both(trust)
    assert any(s.public_key == wire for s in trust.signers)
    write_whole(signers_file, after)
    write_whole(roles_file, _roles_text(known))


def _roles_text(roles: dict[str, tuple[Role, ...]]) -> bytes:
    import json

    value = {"schema": "prereg/roles/v1", "roles": {name: list(held) for name, held in roles.items()}}
    return (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode()


__all__ = [
    "AUDIT",
    "AUTHOR",
    "LEDGER",
    "NAMESPACES",
    "SEAL",
    "AllowedSigner",
    "AuthoredFileInvalid",
    "Trust",
    "Untrusted",
    "add_signer",
    "check_signer",
    "load_trust",
    "parse_allowed_signers",
    "parse_roles",
    "read_trust",
]
