"""The signed head of a ledger: written at the end of each verb, checked by the next (section 5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from prereg.codec.canonical import dump_file
from prereg.codec.convert import read_machine, to_json
from prereg.errors import VerificationFailed
from prereg.model.seal import Entry, EntryType, Head, Role
from prereg.seal import sshsig
from prereg.seal.keys import SigningKey
from prereg.seal.revocation import Rescue
from prereg.seal.trust import LEDGER, Trust, check_signer
from prereg.store.ledger import parse_time

WHERE = "ledger.head.json"
Attests = Callable[[int, bytes], Rescue]
"""What the stamps of heads say of a head, by the entry that it names and the key that signed it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedHead:
    """A head that names a line of the ledger, and who signed it; whether they may is not judged."""

    entry: Entry
    """The entry that it names."""
    key: bytes
    """The public key in OpenSSH's wire form."""
    where: str


ROLES: dict[EntryType, tuple[Role, ...]] = {
    "sealed": ("author",),
    "collection-started": ("collector", "author"),
    "shard-stored": ("collector", "author"),
    "unit-invalid": ("collector", "author"),
    "attempt": ("collector", "author"),
    "duplicate": ("collector", "author"),
    "collection-ended": ("collector", "author"),
    "analysis": ("author",),
    "audit": ("reviewer",),
    "cosigned": ("author",),
    "timestamped": ("author", "collector"),
    "pushed": ("author", "collector"),
    "amended": ("author",),
    "deviation": ("author", "collector"),
    "relocation": ("author", "collector"),
    "closed": ("author",),
}
"""Who may make which entry (sections 4 and 19)."""


def head_bytes(study: str, entries: Sequence[Entry], head: str) -> bytes:
    """The bytes of ledger.head.json after the last of `entries`, whose digest is `head`."""
    last = entries[-1]
    value = Head(study=study, seq=last.seq, head=head, time=last.time, actor=last.actor)
    return dump_file(to_json(value))


def sign_head(data: bytes, key: SigningKey) -> bytes:
    """The bytes of ledger.head.json.sig."""
    return key.sign(data, namespace=LEDGER)


def check_head(
    data: bytes,
    signature: bytes,
    *,
    study: str,
    entries: Sequence[Entry],
    lines: Sequence[str],
    trust: Trust,
    behind: bool,
    attests: Attests | None = None,
) -> int:
    """Check that the head names the ledger's last entry and is signed by that entry's actor.

    `lines` are the digests of the ledger's lines. With `behind` the head may name an earlier entry: that is
    what a killed verb leaves. `attests` asks the stamps of heads. Returns the number of entries that are
    signed. Raises VerificationFailed.
    """
    head = read_head(data, signature, study=study, entries=entries, lines=lines)
    trust_head(head, trust, None if attests is None else attests(head.entry.seq, head.key))
    seq = head.entry.seq
    if seq < len(entries) and not behind:
        raise VerificationFailed(
            f"names entry {seq} of {len(entries)}: the later ones are not signed, as a killed run "
            "leaves them",
            where=f"{WHERE}#/seq",
            next_step=f"{REMEDY.get(entries[-1].type, 'prereg collect')} DIR",
        )
    return seq


def read_head(
    data: bytes,
    signature: bytes,
    *,
    study: str,
    entries: Sequence[Entry],
    lines: Sequence[str],
    where: str = WHERE,
) -> SignedHead:
    """Read a head that names a line of the ledger, and whose signature matches. Raises VerificationFailed."""
    head = read_machine(data, "head", Head, where=where)
    if head.study != study:
        raise VerificationFailed(f"belongs to study {head.study!r}, not {study!r}", where=f"{where}#/study")
    if head.seq > len(entries):
        raise VerificationFailed(
            f"names entry {head.seq}, but ledger.jsonl ends with entry {len(entries)}: entries are missing",
            where=f"{where}#/seq",
        )
    named = entries[head.seq - 1]
    if head.head != lines[head.seq - 1]:
        raise VerificationFailed(
            f"is not the digest of line {head.seq} of ledger.jsonl", where=f"{where}#/head"
        )
    if head.time != named.time:
        raise VerificationFailed("is not the time of the entry that it names", where=f"{where}#/time")
    if head.actor != named.actor:
        raise VerificationFailed("is not the actor of the entry that it names", where=f"{where}#/actor")
    found = sshsig.verify(signature, data, namespace=LEDGER, where=f"{where}.sig")
    return SignedHead(entry=named, key=found.public_key, where=f"{where}.sig")


def trust_head(head: SignedHead, trust: Trust, rescue: Rescue | None) -> None:
    """Check that the head's signer may make the entry that it names. Raises Untrusted."""
    check_signer(
        trust,
        principal=head.entry.actor,
        public_key=head.key,
        roles=ROLES[head.entry.type],
        namespace=LEDGER,
        at=parse_time(head.entry.time),
        rescue=rescue,
        where=head.where,
    )


REMEDY: dict[EntryType, str] = {
    "analysis": "prereg analyse",
    "audit": "prereg audit",
    "pushed": "prereg push",
    "amended": "prereg amend",
    "deviation": "prereg deviate",
    "relocation": "prereg relocate",
    "closed": "prereg close",
    "cosigned": "prereg cosign",
    "timestamped": "prereg timestamp",
}
"""The verb that completes what was cut off after an entry; of any other entry that is `prereg collect`."""
