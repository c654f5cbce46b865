"""How far a seal is: who has signed it and whether its time is stamped, by its files alone.

`status` and `seal` show this. It judges no key and no history, and names
keys that are revoked: what that means `prereg verify` says.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from prereg.codec.convert import read_authored
from prereg.errors import PreregError, UsageError
from prereg.model.places import spans
from prereg.model.plural import plural
from prereg.model.study import Protocol
from prereg.seal import sshsig
from prereg.seal.head_stamps import FOLDER, HeadStamp, read_head_stamp
from prereg.seal.manifest import read_manifest
from prereg.seal.signers import Signatures, signatures_of
from prereg.seal.stamped import Stamp
from prereg.seal.timestamp import verify_timestamp
from prereg.seal.timestamp_client import check_url
from prereg.seal.trust import Trust, read_trust
from prereg.store.files import read_in, read_once
from prereg.store.folder import walk
from prereg.store.layout import StudyPaths
from prereg.store.ledger import line_digests, read_ledger


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """How far the stamps of a ledger's heads reach (section 22)."""

    entries: int
    """The entries of the ledger."""
    seq: int = 0
    """The last entry that a stamp attests; 0 for none."""
    time: datetime | None = None
    """As older than this."""
    signers: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """The last entry whose head is stamped, by who signed that head and the fingerprint of the key."""

    def as_json(self) -> dict[str, object]:
        """For `--json`."""
        time = None if self.time is None else self.time.isoformat()
        signers = [{"principal": p, "key": k, "stamped": seq} for (p, k), seq in self.signers.items()]
        return {"entries": self.entries, "stamped": self.seq, "time": time, "signers": signers}

    def __str__(self) -> str:
        if self.time is None:
            return f"none of {self.entries} {plural(self.entries, 'entry', 'entries')}"
        names = [principal for principal, _ in self.signers]
        own = (
            f"{p}'s{f' {key}' if names.count(p) > 1 else ''} up to {seq}"
            for (p, key), seq in self.signers.items()
        )
        return f"up to entry {self.seq} of {self.entries}, {self.time.isoformat()}; heads: {', '.join(own)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokedKey:
    """A revoked key of somebody who made an entry of this study's ledger."""

    key: str
    principals: tuple[str, ...]
    reason: str
    at: str

    def __str__(self) -> str:
        return f"{self.key} of {', '.join(self.principals)}: {self.reason}, {self.at}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What a protocol asks of its seal, and what is there of it."""

    signatures: Signatures | None
    stamp: Stamp
    heads: Reach | None = None
    """How far the stamps of heads reach; None where the protocol knows none."""
    revoked: tuple[RevokedKey, ...] = ()
    """Keys of the study's people that are revoked."""

    @property
    def verb(self) -> str | None:
        """The verb that must come before a collection, or None."""
        if self.signatures is not None and not self.signatures.complete:
            return "prereg cosign"
        if self.stamp.state != "none" and not self.stamp.entered:
            return "prereg timestamp"
        return None


def standing(paths: StudyPaths) -> Standing | None:
    """The standing of a sealed study; None for a draft, or if its files cannot be read."""
    try:
        protocol = _protocol(paths)
        manifest = read_manifest(read_once(paths.manifest))
        ledger = read_once(paths.ledger)
        entries = read_ledger(ledger)
        span = spans(entries)[-1]
        keys = {
            entry.actor: sshsig.fingerprint(
                sshsig.parse(
                    read_once(paths.cosignature(entry.actor)), where=str(paths.cosignature(entry.actor))
                ).public_key
            )
            for entry in span
            if entry.type == "cosigned"
        }
    except PreregError:
        return None
    return Standing(
        signatures=signatures_of(protocol.signers, manifest, keys),
        stamp=_stamp(paths, protocol, entered=any(e.type == "timestamped" for e in span)),
        heads=_reach(paths, protocol, ledger),
        revoked=_revoked(paths, {e.actor for e in entries}),
    )


def refuse_stamp(paths: StudyPaths, url: str) -> None:
    """Raise UsageError if the protocol of a draft asks for no time stamp, or `url` is no address."""
    check_url(url)
    if _protocol(paths).timestamp is None:
        raise UsageError(
            "the protocol asks for no time stamp",
            where="protocol.json",
            next_step='"edition": 2, "timestamp": {"roots": "roots.pem"} in it, or no --timestamp',
        )


def _protocol(paths: StudyPaths) -> Protocol:
    return read_authored(read_once(paths.protocol), "protocol", Protocol, where="protocol.json")


def _stamp(paths: StudyPaths, protocol: Protocol, *, entered: bool) -> Stamp:
    if protocol.timestamp is None:
        return Stamp(state="none")
    if not paths.timestamp_response.exists():
        return Stamp(state="owed")
    try:
        time = verify_timestamp(
            read_once(paths.timestamp_request),
            read_once(paths.timestamp_response),
            signature=read_once(paths.manifest_signature),
            roots=read_once(paths.root / protocol.timestamp.roots),
        )
    except PreregError:
        return Stamp(state="attached", entered=entered)
    return Stamp(state="verified", time=time, entered=entered)


def _reach(paths: StudyPaths, protocol: Protocol, ledger: bytes) -> Reach | None:
    """The stamp of a head that reaches furthest; one that is not good counts for nothing here."""
    if protocol.timestamp is None or not protocol.since(3):
        return None
    entries, lines = read_ledger(ledger), line_digests(ledger)
    found: list[HeadStamp] = []
    tree = walk(paths)
    for folder in (name for name in tree.folders if name.startswith(f"{FOLDER}/")):
        try:
            roots = read_once(paths.root / protocol.timestamp.roots)
            one = read_head_stamp(
                lambda name: read_in(paths.root, name)[0], tree, folder, protocol.study, entries, lines, roots
            )
        except PreregError:
            continue
        found.append(one)
    found.sort(key=lambda s: s.seq)
    if not found:
        return Reach(entries=len(entries))
    # Of heads a stamp saves only those of its own key, so that each key's reach counts for itself.
    signers = {(s.head.entry.actor, sshsig.fingerprint(s.head.key)): s.seq for s in found}
    return Reach(entries=len(entries), seq=found[-1].seq, time=found[-1].time, signers=signers)


def _revoked(paths: StudyPaths, actors: Collection[str]) -> tuple[RevokedKey, ...]:
    """The revoked keys of `actors`; none where the trust files cannot be read, which `verify` says."""
    try:
        trust = read_trust(paths.allowed_signers, paths.roles)
    except PreregError:
        return ()
    return tuple(
        RevokedKey(key=name, principals=owners, reason=one.reason, at=one.at)
        for name, one in trust.revocations.items()
        if (owners := _owners(trust, name, actors))
    )


def _owners(trust: Trust, key: str, actors: Collection[str]) -> tuple[str, ...]:
    lines = (s for s in trust.signers if sshsig.fingerprint(s.public_key) == key)
    return tuple(sorted({p for s in lines for p in s.principals if p in actors}))
