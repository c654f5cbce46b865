"""Who may sign what, and when: OpenSSH's ``allowed_signers``, ``roles.json`` and ``revocations.json``."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from audits.attested import Outside, never
from audits.fault import Fault
from audits.given import read_trust
from audits.jsonc import parse
from audits.revocation import Revocation
from audits.schema import Schema
from audits.sshsig import KEY_TYPES, SignatureFault, check_key, fingerprint, verify
from audits.sshsig import parse as parse_signature

_OPTION = re.compile(r'([A-Za-z-]+)(?:="([^"]*)")?(,(?=.)|\Z)', re.DOTALL)
_BLANKS = " \t"
"""What parts the fields of a line (section 4); other white space never does."""
_OPTIONS = re.compile(r'((?:[^ \t"]|"[^"]*")+)[ \t]+')
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f]")
"""The control characters but the tab."""
_NOT_IN_NAMES = frozenset('*?!"')


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
    number, at = 1, 0
    for raw in re.finditer(r"[^\n]+", text):  # a file of nothing but line ends makes no list of them
        number, at = number + text.count("\n", at, raw.start()), raw.start()
        line = raw[0].strip(_BLANKS)
        try:
            if _CONTROL.search(line):
                raise ValueError("it has a control character")
            if line and not line.startswith("#"):
                signers.append(_signer(line, number))
        except (ValueError, binascii.Error) as error:
            raise Fault(f"line {number} cannot be read: {error}", file=file) from None
    return signers


def _is_name(text: str) -> bool:
    return bool(text) and not any(c in _NOT_IN_NAMES or c.isspace() for c in text)


def _fields(text: str, most: int) -> list[str]:
    return re.split(r"[ \t]+", text, maxsplit=most - 1)


def _signer(line: str, number: int) -> Signer:
    first, *more = _fields(line, 2)
    if not more:
        raise ValueError("it has one field")
    principals, rest = first.split(","), more[0]
    if not all(map(_is_name, principals)):
        raise ValueError("principals are names, without patterns, quotation marks and white space")
    namespaces: str | None = None
    after = before = None
    if _fields(rest, 2)[0] not in KEY_TYPES:
        matched = _OPTIONS.match(rest)
        if matched is None:
            raise ValueError("no key")
        options, rest = matched.group(1), rest[matched.end() :]
        at, seen = 0, set[str]()
        while at < len(options):
            option = _OPTION.match(options, at)
            if option is None:
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
    kind, encoded, *_ = [*_fields(rest, 3), ""]
    if kind not in KEY_TYPES:
        raise ValueError(f"key type {kind!r} is not supported")
    key = base64.b64decode(encoded, validate=True)
    if base64.b64encode(key).decode() != encoded:
        raise ValueError("the key's base64 is not the one of its bytes")
    try:
        check_key(key, kind)
    except SignatureFault as fault:
        raise ValueError(fault.what) from None
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
        outside: Outside = never,
    ) -> str:
        """Verify a signature by a principal in one of these roles; returns the key's fingerprint.

        ``at`` is its attested time; ``outside`` tells by the key what time from outside it is older than.
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
            if revocation.key == name and (why := revocation.refuses(at, outside(name))):
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


def load_trust(
    signers: Path, roles: Path, schema: Schema, revoked: tuple[Revocation, ...] = (), own: Path | None = None
) -> Trust:
    """Read the two files of trust; ``revoked`` is what the third one says.

    Those in ``own``, the repository's folder of trust, are plain files; None takes that of ``roles`` for it.
    """
    parts = []
    for path, option in ((signers, "--signers"), (roles, "--roles")):
        then = f"name it with {option}"
        try:
            parts.append(read_trust(path, own or roles.parent, then))
        except FileNotFoundError as error:
            raise Fault(f"cannot be read: {error.strerror}", file=str(path), then=then) from None
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
