"""The signed head of a ledger: written at the end of each verb, checked by the next (section 5)."""

from __future__ import annotations

from collections.abc import Sequence

from prereg.codec.canonical import dump_file
from prereg.codec.convert import read_machine, to_json
from prereg.errors import VerificationFailed
from prereg.model.seal import Entry, EntryType, Head, Role
from prereg.seal import sshsig
from prereg.seal.keys import SigningKey
from prereg.seal.trust import LEDGER, Trust, check_signer
from prereg.store.ledger import parse_time

WHERE = "ledger.head.json"

ROLES: dict[EntryType, tuple[Role, ...]] = {
    "sealed": ("author",),
    "collection-started": ("collector", "author"),
    "shard-stored": ("collector", "author"),
    "unit-invalid": ("collector", "author"),
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
) -> int:
    """Check that the head names the ledger's last entry and is signed by that entry's actor.

    `lines` are the digests of the ledger's lines. With `behind` the head may name an earlier entry: that is
    what a killed verb leaves. Returns the number of entries that are signed. Raises VerificationFailed.
    """
    head = read_machine(data, "head", Head, where=WHERE)
    if head.study != study:
        raise VerificationFailed(f"belongs to study {head.study!r}, not {study!r}", where=f"{WHERE}#/study")
    if head.seq > len(entries):
        raise VerificationFailed(
            f"names entry {head.seq}, but ledger.jsonl ends with entry {len(entries)}: entries are missing",
            where=f"{WHERE}#/seq",
        )
    named = entries[head.seq - 1]
    if head.head != lines[head.seq - 1]:
        raise VerificationFailed(
            f"is not the digest of line {head.seq} of ledger.jsonl", where=f"{WHERE}#/head"
        )
    if head.time != named.time:
        raise VerificationFailed("is not the time of the entry that it names", where=f"{WHERE}#/time")
    if head.actor != named.actor:
        raise VerificationFailed("is not the actor of the entry that it names", where=f"{WHERE}#/actor")
    where = f"{WHERE}.sig"
    found = sshsig.verify(signature, data, namespace=LEDGER, where=where)
    check_signer(
        trust,
        principal=head.actor,
        public_key=found.public_key,
        roles=ROLES[named.type],
        namespace=LEDGER,
        at=parse_time(head.time),
        where=where,
    )
    if head.seq < len(entries) and not behind:
        raise VerificationFailed(
            f"names entry {head.seq} of {len(entries)}: the later ones are not signed, as a killed run "
            "leaves them",
            where=f"{WHERE}#/seq",
            next_step=f"{REMEDY.get(entries[-1].type, 'prereg collect')} DIR",
        )
    return head.seq


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
