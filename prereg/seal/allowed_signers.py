"""OpenSSH's allowed_signers file, read strictly (docs/formats.md section 4)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from prereg.errors import UsageError
from prereg.seal import sshsig

_TIME = re.compile(r"[0-9]{8}([0-9]{4}([0-9]{2})?)?Z?")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f]")
_SIGNER = re.compile(
    r'(?P<names>[^ \t"]+)[ \t]+((?P<options>([^ \t"]|"[^"]*")+)[ \t]+)??'
    r"(?P<key>(ssh-|ecdsa-|sk-)[^ \t]*[ \t]+[^ \t]+)(?P<comment>[ \t].*)?"
)
"""A line: names, perhaps options, a key's type and the key, perhaps a comment."""
_PART = re.compile(r'(?:^|(?<=,))(?:[^,"]|"[^"]*")*')
_QUOTED = re.compile(r'"[^"]*"')


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
    comment: str = ""

    @property
    def public_line(self) -> str:
        """`ssh-ed25519 AAAA…`."""
        return sshsig.line_of(self.public_key)


def parse_allowed_signers(data: bytes, *, where: str) -> tuple[AllowedSigner, ...]:
    """Read OpenSSH's format. Raises UsageError, with the line, for what is not understood.

    Names with wildcards, quotation marks or white space, and `cert-authority`, are refused: each line says
    exactly who and which key. A time without a zone counts as UTC. One line that is
    not understood refuses the whole file.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise UsageError("is not UTF-8", where=where) from None
    found = []
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.strip(" \t")
        if _CONTROL.search(line):
            raise UsageError("has a control character", where=f"{where}:{number}")
        if line and not line.startswith("#"):
            found.append(_signer(line, number, f"{where}:{number}"))
    return tuple(found)


def _signer(line: str, number: int, where: str) -> AllowedSigner:
    match = _SIGNER.fullmatch(line)
    if match is None:
        raise UsageError("is not `principals [options] type key`", where=where)
    names = tuple(match["names"].split(","))
    for name in names:
        if not name or set(name) & set("*?!") or any(ch.isspace() for ch in name):
            raise UsageError(f"the principal {name!r} is not a plain name", where=where)
    options = _options(match["options"] or "", where)
    try:
        key = sshsig.wire_of(match["key"], where=where)
    except sshsig.BadSignature as error:
        raise UsageError(error.what, where=where, next_step=error.next_step) from None
    namespaces = options.get("namespaces")
    if namespaces == "":
        raise UsageError("namespaces names none: the key could sign nothing", where=where)
    after, before = (
        moment(options[name], where=where) if name in options else None
        for name in ("valid-after", "valid-before")
    )
    if after is not None and before is not None and before <= after:
        raise UsageError("valid-before is not later than valid-after", where=where)
    return AllowedSigner(
        line=number,
        principals=names,
        namespaces=None if namespaces is None else tuple(namespaces.split(",")),
        valid_after=after,
        valid_before=before,
        public_key=key,
        comment=(match["comment"] or "").strip(),
    )


def signer_line(
    principals: Sequence[str],
    public_line: str,
    *,
    namespaces: Sequence[str] | None,
    valid_after: datetime | None = None,
    valid_before: datetime | None = None,
    comment: str = "",
) -> str:
    """One line of the file, without its end; what `parse_allowed_signers` reads back."""
    options = []
    if namespaces is not None:
        options.append(f'namespaces="{",".join(namespaces)}"')
    for name, at in (("valid-after", valid_after), ("valid-before", valid_before)):
        if at is not None:
            options.append(f'{name}="{at.astimezone(UTC):%Y%m%d%H%M%SZ}"')
    parts = [",".join(principals), ",".join(options), " ".join(public_line.split()[:2]), comment]
    return " ".join(part for part in parts if part)


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


def moment(text: str, *, where: str) -> datetime:
    """OpenSSH's YYYYMMDD[HHMM[SS]][Z], in UTC. Raises UsageError for anything else."""
    if not _TIME.fullmatch(text):
        raise UsageError(f"the time {text!r} is not YYYYMMDD[HHMM[SS]][Z]", where=where)
    digits = text.rstrip("Z").ljust(14, "0")
    try:
        return datetime.strptime(digits, "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        raise UsageError(f"the time {text!r} does not exist", where=where) from None
