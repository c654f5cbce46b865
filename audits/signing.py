"""Step 4: every seal is signed by its author, and stamped and signed by others as the protocol asks."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from audits.attested import Attested
from audits.certificates import check_chain, load_roots
from audits.fault import Fault, Found
from audits.ledger import LEDGER, ROLES
from audits.lineage import COSIGN, REQUEST, RESPONSE, Seal
from audits.load import LARGE, SMALL, Folder, moment
from audits.schema import Schema
from audits.seal import MANIFEST
from audits.timestamp import Token, check_token
from audits.trust import Trust

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

PROTOCOL = "protocol.json"
_NAMESPACE = "prereg-seal"


@dataclass(slots=True, kw_only=True)
class Signed:
    """What the signatures of a study prove, for the steps after this one."""

    times: dict[str, datetime] = field(default_factory=dict)
    """``genTime`` by seal, of every timestamp whose token is sound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealing:
    """What the signatures of a study are held against."""

    folder: Folder
    trust: Trust
    seals: list[Seal]
    """The lineage, the present seal last."""
    protocol: dict[str, Any] | None
    """The present protocol if it is of edition 2 or 3, else {}; None if it cannot be used, as step 5 says."""
    entries: list[dict[str, Any]] | None
    """The ledger's; None if they cannot be read, which step 6 says."""
    attested: Attested
    """What stamps of heads say of the entries."""


def sealed_protocol(
    folder: Folder, schema: Schema, manifest: dict[str, Any], bad: set[str]
) -> dict[str, Any] | None:
    """The protocol for the checks before step 5: {} for edition 1, None if it is not the sealed one."""
    if PROTOCOL in bad or all(item["path"] != PROTOCOL for item in manifest["files"]):
        return None
    try:
        protocol: dict[str, Any] = folder.authored(PROTOCOL)
        schema.check(protocol)
    except Fault:
        return None
    return protocol if protocol.get("edition", 1) >= 2 else {}


def check_signatures(sealing: Sealing, found: Found) -> Signed:
    """Check every signature and timestamp of every seal."""
    signed = Signed()
    present = sealing.seals[-1]
    for seal in sealing.seals:
        stamp = _stamp(sealing, seal, signed, found)
        key = _check_author(sealing, seal, stamp, found)
        keys = _check_cosigners(sealing, seal, found)
        if seal is present:
            _check_complete(sealing, seal, key, keys, found)
    if sealing.protocol is None:
        found.notes.append("signers and timestamps were not judged: protocol.json cannot be used")
    return signed


def _check_author(sealing: Sealing, seal: Seal, stamp: datetime | None, found: Found) -> str | None:
    """The key that made a seal; None if the signature does not count. ``stamp`` is its verified time."""
    author = seal.manifest["author"]
    try:
        told = _told(sealing, seal, ("sealed", "amended"), author["principal"], seal.signature)
        outside = min((time for time in (stamp, told) if time is not None), default=None)
        key = sealing.trust.check(
            sealing.folder.read(seal.path).data,
            sealing.folder.read(seal.signature, SMALL).data,
            namespace=_NAMESPACE,
            principal=author["principal"],
            roles=ROLES["sealed"],
            at=stamp or moment(seal.manifest["created"], seal.path, "/created"),
            outside=lambda key: outside,
        )
    except Fault as fault:
        found.faults.append(fault.at(seal.signature))
        return None
    found.applied += 1
    if key != author["key"]:
        what = f"signed by {key}; the manifest names {author['key']}"
        found.fault(what, file=seal.path, pointer="/author/key")
    found.notes.append(f"{author['principal']} {key}")
    return key


def _stamp(sealing: Sealing, seal: Seal, signed: Signed, found: Found) -> datetime | None:
    """The time of a seal's verified timestamp; None where there is none."""
    present = seal is sealing.seals[-1]
    request, response = seal.folder + REQUEST, seal.folder + RESPONSE
    there = [path for path in (request, response) if sealing.folder.has(path)]
    if sealing.protocol is None:
        return None
    roots = sealing.protocol.get("timestamp", {}).get("roots")
    if not there:
        if present and roots is not None:
            found.notes.append("timestamp owed")
        return None
    if present and roots is None:
        for path in there:
            found.fault("the protocol asks for no timestamp", file=path)
        return None
    try:
        token = check_token(
            sealing.folder.read(request, SMALL).data,
            sealing.folder.read(response, SMALL).data,
            sealing.folder.read(seal.signature, SMALL).data,
        )
        signed.times[seal.digest] = token.time
        believed = _believed(sealing, seal, roots, token)
    except Fault as fault:
        found.faults.append(fault.at(response))
        return None
    found.applied += 1
    told = token.time.isoformat()
    if not believed:
        found.notes.append(f"timestamp of {seal.digest[:12]} attached, {told}: its roots are not kept")
        return None
    found.notes.append(f"timestamp verified, {told}" + ("" if present else f", of seal {seal.digest[:12]}"))
    return token.time


def _believed(sealing: Sealing, seal: Seal, roots: str | None, token: Token) -> bool:
    """Check a token's chain; False if the roots that were sealed with an amended seal are not kept."""
    then, now = (
        next((item["sha256"] for item in one.manifest["files"] if item["path"] == roots), None)
        for one in (seal, sealing.seals[-1])
    )
    if roots is None or (seal is not sealing.seals[-1] and then != now):
        return False
    trusted = sealed_roots(sealing.folder, sealing.seals[-1].manifest, roots)
    check_chain(token.signer, token.others, trusted, token.time)
    return True


def sealed_roots(folder: Folder, manifest: dict[str, Any], path: str) -> list[Certificate]:
    """The authorities that are believed, from the file of that name that the manifest lists."""
    sealed = next((item["sha256"] for item in manifest["files"] if item["path"] == path), None)
    if sealed is None:
        raise Fault("is not in the manifest", file=path)
    read = folder.read(path, LARGE)
    if read.digest != sealed:
        raise Fault("is not the sealed file (step 3)", file=path)
    return load_roots(read.data, path)


def _told(
    sealing: Sealing, seal: Seal, kinds: tuple[str, ...], actor: str, signature: str
) -> datetime | None:
    """What stamps say a signature of a seal is older than: its entry has its digest, and is older."""
    digest = sealing.folder.read(signature, SMALL).digest
    for line, entry in enumerate(sealing.entries or (), 1):
        body = entry["body"]
        named = (entry["type"], entry["actor"], body.get("seal"), body.get("signature_sha256"))
        if named[0] in kinds and named[1:] == (actor, seal.digest, digest):
            return sealing.attested.line(line)
    return None


def _check_cosigners(sealing: Sealing, seal: Seal, found: Found) -> dict[str, str]:
    """The keys that signed a seal beside its author's, by principal; every file there must count."""
    keys: dict[str, str] = {}
    home = seal.folder + COSIGN
    for path in sealing.folder.files(home):
        try:
            keys.update([_cosigner(sealing, seal, path, path.removeprefix(home).removesuffix(".sig"))])
            found.applied += 1
        except Fault as fault:
            found.faults.append(fault.at(path))
    return keys


def _cosigner(sealing: Sealing, seal: Seal, path: str, principal: str) -> tuple[str, str]:
    if seal is sealing.seals[-1] and sealing.protocol is not None:
        signers = sealing.protocol.get("signers")
        if signers is None:
            raise Fault("the protocol names no signers")
        if principal not in signers["principals"]:
            raise Fault(f"{principal} is not among the signers of the protocol")
    if principal == seal.manifest["author"]["principal"]:
        raise Fault(f"{principal} sealed, and does not countersign")
    if sealing.entries is None:
        raise Fault("its time cannot be told: the ledger cannot be read")
    times = [entry["time"] for _, entry in _cosigned(sealing, seal) if entry["actor"] == principal]
    if len(times) != 1:
        raise Fault(f"has {len(times)} `cosigned` entries of {principal} in the ledger, not one")
    told = _told(sealing, seal, ("cosigned",), principal, path)
    key = sealing.trust.check(
        sealing.folder.read(seal.path).data,
        sealing.folder.read(path, SMALL).data,
        namespace=_NAMESPACE,
        principal=principal,
        roles=ROLES["cosigned"],
        at=moment(times[0], LEDGER, "/time"),
        outside=lambda key: told,
    )
    return principal, key


def _cosigned(sealing: Sealing, seal: Seal) -> list[tuple[int, dict[str, Any]]]:
    """The ledger's entries of who signed a seal too, with their places."""
    return [
        (i, entry)
        for i, entry in enumerate(sealing.entries or ())
        if entry["type"] == "cosigned" and entry["body"]["seal"] == seal.digest
    ]


def _check_complete(
    sealing: Sealing, seal: Seal, author: str | None, keys: dict[str, str], found: Found
) -> None:
    """As many principals as are needed, with as many keys, signed before anything was collected."""
    signers = (sealing.protocol or {}).get("signers")
    if signers is None:
        return
    listed = set(signers["principals"])
    own = {author} if author is not None and seal.manifest["author"]["principal"] in listed else set()
    signed = own | set(keys.values())
    found.notes.append(f"{len(signed)} of {signers['need']} signatures")
    started = next(
        (i for i, e in enumerate(sealing.entries or ()) if e["type"] == "collection-started"), None
    )
    if started is None:
        return
    before = {entry["actor"] for i, entry in _cosigned(sealing, seal) if i < started}
    in_time = own | {key for principal, key in keys.items() if principal in before}
    if len(in_time) < signers["need"]:
        what = f"the seal is not complete there: {len(in_time)} of {signers['need']} signatures"
        found.fault(what, file=f"{LEDGER} line {started + 1}")


def check_asked(protocol: dict[str, Any], manifest: dict[str, Any], found: Found) -> None:
    """Step 5: what a protocol asks of its seal can be had, and a study of edition 1 was not amended."""
    if protocol.get("edition", 1) < 2 and "amends" in manifest:
        found.fault("is of edition 2, and the protocol names no edition", file=MANIFEST, pointer="/amends")
    signers = protocol.get("signers")
    if signers is not None and signers["need"] > len(signers["principals"]):
        what = f"needs {signers['need']} of {len(signers['principals'])} principals"
        found.fault(what, file=PROTOCOL, pointer="/signers/need")
    roots = protocol.get("timestamp", {}).get("roots")
    if roots is not None and all(item["path"] != roots for item in manifest["files"]):
        found.fault(f"{roots} is not in the manifest", file=PROTOCOL, pointer="/timestamp/roots")
