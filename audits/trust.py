"""Who may sign what, and when: OpenSSH's ``allowed_signers``, ``roles.json`` and ``revocations.json``."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from audits.fault import Fault
from audits.jsonc import parse
from audits.revocation import Revocation
from audits.schema import Schema
from audits.sshsig import KEY_TYPES, SignatureFault, fingerprint, verify
from audits.sshsig import parse as parse_signature

_OPTION = re.compile(r'([A-Za-z-]+)(?:="([^"]*)")?(?:,|\Z)')


def _matches(name: str, patterns: str) -> bool:
    """OpenSSH's pattern lists: comma separated, ``*`` and ``?``, and ``!`` that forbids."""
    found = False
    for pattern in patterns.split(","):
        negated = pattern.startswith("!")
        body = "".join({"*": ".*", "?": "."}.get(c, re.escape(c)) for c in pattern.removeprefix("!"))
        if re.fullmatch(body, name, re.DOTALL):
            if negated:
                return False
            found = True
    return found


def _moment(text: str) -> datetime:
    digits = text.removesuffix("Z")
    layout = {8: "%Y%m%d", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}.get(len(digits))
    if layout is None or not (digits.isascii() and digits.isdigit()):
        raise ValueError(text)
    return datetime.strptime(digits, layout).replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Signer:
    """One line of ``allowed_signers``."""

    principals: tuple[str, ...]
    key: bytes
    namespaces: str | None = None
    after: datetime | None = None
    before: datetime | None = None
    """The last second of the key's time: it is still valid in it, as it is for ``ssh-keygen``."""
    line: int = 0

    def allows(self, principal: str, key: bytes, namespace: str, at: datetime) -> bool:
        """Whether this line lets the principal sign with the key, there and then."""
        return (
            self.key == key
            and principal in self.principals
            and (self.namespaces is None or _matches(namespace, self.namespaces))
            and (self.after is None or at >= self.after)
            and (self.before is None or at.replace(microsecond=0) <= self.before)
        )


def parse_signers(data: bytes, file: str) -> list[Signer]:
    """Parse ``allowed_signers``; a line that cannot be understood in full is a fault."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise Fault("not UTF-8", file=file) from None
    signers = []
    for i, raw in enumerate(text.split("\n"), 1):
        line = raw.strip()
        if line and not line.startswith("#"):
            try:
                signers.append(_signer(line, i))
            except (ValueError, binascii.Error) as error:
                raise Fault(f"line {i} cannot be read: {error}", file=file) from None
    return signers


def _signer(line: str, number: int) -> Signer:
    head = re.match(r'(?:"([^"]+)"|(\S+))\s+', line)
    if head is None:
        raise ValueError("no principals")
    principals, rest = (head.group(1) or head.group(2)).split(","), line[head.end() :]
    if any(not name or set(name) & set("*?!") for name in principals):
        raise ValueError("principals are names, without patterns")
    namespaces: str | None = None
    after = before = None
    if rest.split(None, 1)[0] not in KEY_TYPES:
        matched = re.match(r'((?:[^\s"]|"[^"]*")+)\s+', rest)
        if matched is None:
            raise ValueError("no key")
        options, rest = matched.group(1), rest[matched.end() :]
        at, seen = 0, set[str]()
        while at < len(options):
            option = _OPTION.match(options, at)
            if option is None or option.end() == at:
                raise ValueError(f"options {options!r}")
            name, value, at = option.group(1).lower(), option.group(2), option.end()
            if name in seen:
                raise ValueError(f"option {name!r} is there twice")
            seen.add(name)
            if name == "namespaces" and value:
                namespaces = value
            elif name == "valid-after" and value:
                after = _moment(value)
            elif name == "valid-before" and value:
                before = _moment(value)
            else:
                raise ValueError(f"option {name!r} is not supported")
    if after is not None and before is not None and before <= after:
        raise ValueError("valid-before is not after valid-after")
    kind, encoded, *_ = [*rest.split(None, 2), ""]
    if kind not in KEY_TYPES:
        raise ValueError(f"key type {kind!r} is not supported")
    key = base64.b64decode(encoded, validate=True)
    length = int.from_bytes(key[:4], "big")
    if key[4 : 4 + length] != kind.encode():
        raise ValueError("the key is not of the type it is said to be")
    return Signer(
        principals=tuple(principals), key=key, namespaces=namespaces, after=after, before=before, line=number
    )


@dataclass(frozen=True, slots=True)
class Trust:
    """The keys and roles a reviewer trusts."""

    signers: tuple[Signer, ...]
    roles: dict[str, tuple[str, ...]]
    revoked: tuple[Revocation, ...] = ()
    """The keys that were taken back."""

    def check(
        self,
        message: bytes,
        armored: bytes,
        *,
        namespace: str,
        principal: str,
        roles: Iterable[str],
        at: datetime,
        stamped: bool = False,
    ) -> str:
        """Verify a signature by a principal in one of these roles; returns the key's fingerprint.

        ``at`` is its attested time; ``stamped`` says that a verified timestamp over this signature tells it.
        """
        wanted = tuple(roles)
        signature = parse_signature(armored)
        verify(message, signature, namespace)
        name = signature.fingerprint
        if not any(s.allows(principal, signature.key, namespace, at) for s in self.signers):
            known = any(s.key == signature.key for s in self.signers)
            why = "not for this principal, namespace and time" if known else "not there at all"
            raise SignatureFault(f"{name} is not an allowed key of {principal}: allowed_signers has it {why}")
        if not set(wanted) & set(self.roles.get(principal, ())):
            raise SignatureFault(f"{principal} has no role {' or '.join(wanted)} in roles.json")
        for revocation in self.revoked:
            if revocation.key == name and (why := revocation.refuses(at, stamped)):
                raise SignatureFault(f"{name} of {principal} {why}")
        return name

    def check_separation(self) -> None:
        """A reviewer's key and principal never are an author's."""
        authors = {name for name, roles in self.roles.items() if "author" in roles}
        reviewers = {name for name, roles in self.roles.items() if "reviewer" in roles}
        if both := sorted(authors & reviewers):
            raise Fault(f"{both[0]} is both author and reviewer", file="roles.json", pointer="/roles")
        for key in {signer.key for signer in self.signers}:
            lists = [signer.principals for signer in self.signers if signer.key == key]
            held = (authors | reviewers) & {name for names in lists for name in names}
            if held & authors and held & reviewers:
                names = " and ".join(sorted(held))
                raise Fault(f"one key, {fingerprint(key)}, stands for {names}", file="allowed_signers")


def load_trust(signers: Path, roles: Path, schema: Schema, revoked: tuple[Revocation, ...] = ()) -> Trust:
    """Read the two files of trust; ``revoked`` is what the third one says."""
    parts = []
    for path, option in ((signers, "--signers"), (roles, "--roles")):
        if path.is_symlink():
            raise Fault("is a link; a file of trust is a plain file", file=str(path))
        try:
            parts.append(path.read_bytes())
        except OSError as error:
            what = f"cannot be read: {error.strerror}"
            raise Fault(what, file=str(path), then=f"name it with {option}") from None
    try:
        value = parse(parts[1])
        schema.check(value)
    except Fault as fault:
        raise fault.at(str(roles)) from None
    trust = Trust(
        tuple(parse_signers(parts[0], str(signers))),
        {name: tuple(held) for name, held in value["roles"].items()},
        revoked,
    )
    trust.check_separation()
    return trust
