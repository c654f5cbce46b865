"""Time stamps of the ledger's heads: which are good, and what they save (docs/formats.md section 22).

A stamp attests its head, and every line of the ledger up to it, as older than the time of its token. Where a
key turns out to be compromised, that decides what its owner signed and what a thief may have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from prereg.errors import PreregError, VerificationFailed
from prereg.model.plural import plural
from prereg.model.seal import Entry
from prereg.model.study import Protocol
from prereg.seal.head import SignedHead, read_head, trust_head
from prereg.seal.revocation import Rescue
from prereg.seal.timestamp import verify_timestamp
from prereg.seal.trust import Compromised, Trust
from prereg.store.folder import Tree
from prereg.store.ledger import line_digests, read_ledger

FOLDER = "stamps"
HEAD, SIGNATURE, REQUEST, RESPONSE = (
    "ledger.head.json",
    "ledger.head.json.sig",
    "timestamp.tsq",
    "timestamp.tsr",
)
FILES = (HEAD, SIGNATURE, REQUEST, RESPONSE)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadStamp:
    """A verified stamp of a signed head."""

    head: SignedHead
    time: datetime
    """`genTime`."""

    @property
    def seq(self) -> int:
        """The entry that its head names: it attests all up to there."""
        return self.head.entry.seq


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadStamps:
    """The stamps of a study's heads that count."""

    stamps: tuple[HeadStamp, ...] = ()
    fault: PreregError | None = None
    """What is wrong with the first that does not; step 6 says so."""

    def entry(self, seq: int) -> Rescue:
        """Whether what entry `seq` has the digest of was there before a time, by any stamp from there on."""
        return lambda at: any(s.time < at for s in self.stamps if s.seq >= seq)

    def head(self, seq: int, key: bytes) -> Rescue:
        """Whether a head of entry `seq` by that key was signed before a time.

        Only by a stamp of a head that the same key signed: whoever held it then had signed all up to there.
        """
        return lambda at: any(s.time < at for s in self.stamps if s.seq >= seq and s.head.key == key)

    def reach(self, fault: Compromised, entries: int) -> Compromised:
        """`fault`, of a head by a compromised key, with how far stamps save the heads of that key."""
        seqs = [s.seq for s in self.stamps if s.head.key == fault.key and fault.at and s.time < fault.at]
        word = (
            f"stamps of this key's heads reach up to entry {max(seqs)} of {entries}"
            if seqs
            else "no stamp of this key's heads is older than that"
        )
        return Compromised(f"{fault.what}; {word}", where=fault.where, next_step=fault.next_step)

    def check(self) -> str:
        """Raise what is wrong with a stamp; else how far they reach, in words (step 6)."""
        if self.fault is not None:
            raise self.fault
        if not self.stamps:
            return ""
        last = max(self.stamps, key=lambda s: s.seq)
        many = f"{len(self.stamps)} {plural(len(self.stamps), 'stamp')} of heads"
        return f"; {many}, the last of entry {last.seq}, {last.time.isoformat()}"


def read_head_stamps(
    read: Callable[[str], bytes],
    tree: Tree,
    protocol: Protocol,
    *,
    files: Mapping[str, bytes],
    trust: Trust,
) -> HeadStamps:
    """Every stamp of a head that counts, and what is wrong with the first that does not.

    `read` gives the bytes of a file of the study, the same ones whenever it is asked; `files` are the sealed
    files, the roots among them. Where the ledger is no chain, which is for step 6 to name, there is none.
    """
    if FOLDER not in tree.folders:
        return HeadStamps()
    plan = protocol.timestamp
    if plan is None or not protocol.since(3):
        what = (
            "a study of an earlier edition has no stamps of heads" if plan else "the protocol asks for none"
        )
        return HeadStamps(fault=VerificationFailed(f"stamps are there, but {what}", where=FOLDER))
    if not any(name.startswith(f"{FOLDER}/") for name in (*tree.folders, *tree.files)):
        return HeadStamps()  # an empty folder says nothing
    roots = files.get(plan.roots)
    if roots is None:
        return HeadStamps(
            fault=VerificationFailed(
                f"there is no sealed file {plan.roots!r}", where="protocol.json#/timestamp/roots"
            )
        )
    try:
        ledger = read("ledger.jsonl")
        entries, lines = read_ledger(ledger), line_digests(ledger)
    except PreregError as error:
        return HeadStamps(fault=error)
    return _counting(_read_all(read, tree, protocol.study, entries, lines, roots), trust)


def _read_all(
    read: Callable[[str], bytes],
    tree: Tree,
    study: str,
    entries: Sequence[Entry],
    lines: Sequence[str],
    roots: bytes,
) -> HeadStamps:
    """The stamps that are verified, of heads whose signatures match; who signed them is not judged."""
    found, faults = [], []
    for folder in sorted(name for name in tree.folders if name.startswith(f"{FOLDER}/")):
        try:
            found.append(read_head_stamp(read, tree, folder, study, entries, lines, roots))
        except PreregError as error:
            faults.append(error)
    return HeadStamps(stamps=tuple(found), fault=faults[0] if faults else None)


def read_head_stamp(
    read: Callable[[str], bytes],
    tree: Tree,
    folder: str,
    study: str,
    entries: Sequence[Entry],
    lines: Sequence[str],
    roots: bytes,
) -> HeadStamp:
    """One stamp: its four files, its head and its token. Raises VerificationFailed or BadTimestamp."""
    missing = [name for name in FILES if f"{folder}/{name}" not in tree.files]
    if missing:
        raise VerificationFailed(
            f"has no {missing[0]}",
            where=folder,
            next_step=f"git checkout -- {folder}; or, if a stamping was interrupted, rm -r {folder}",
        )
    head, signature, request, response = (read(f"{folder}/{name}") for name in FILES)
    where = f"{folder}/{HEAD}"
    named = read_head(head, signature, study=study, entries=entries, lines=lines, where=where)
    if folder != f"{FOLDER}/{named.entry.seq}":
        raise VerificationFailed(f"is {named.entry.seq}, not the name of its folder", where=f"{where}#/seq")
    time = verify_timestamp(request, response, signature=signature, roots=roots, of=f"{folder}/{SIGNATURE}")
    return HeadStamp(head=named, time=time)


def _counting(found: HeadStamps, trust: Trust) -> HeadStamps:
    """The stamps whose own heads are by who may sign them: by a stolen key only as far as a stamp attests."""
    but_theft, _ = _trusted(found.stamps, trust, lambda seq, key: lambda at: True)
    counting, fault = _trusted(found.stamps, trust, replace(found, stamps=but_theft).head)
    return HeadStamps(stamps=counting, fault=found.fault or fault)


def _trusted(
    stamps: Iterable[HeadStamp], trust: Trust, attests: Callable[[int, bytes], Rescue]
) -> tuple[tuple[HeadStamp, ...], PreregError | None]:
    good: list[HeadStamp] = []
    fault: PreregError | None = None
    for one in stamps:
        try:
            trust_head(one.head, trust, attests(one.seq, one.head.key))
            good.append(one)
        except PreregError as error:
            fault = fault or error
    return tuple(good), fault
