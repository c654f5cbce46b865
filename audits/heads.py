"""The heads in history, a part of step 9: each is sound, and every hand-over was signed by who made it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from audits.attested import Attested
from audits.fault import Fault, Found
from audits.jsonc import JsonFault, parse_machine
from audits.ledger import (
    HEAD,
    HEAD_SIGNATURE,
    LEDGER,
    Ledger,
    check_head_signature,
    compare_head,
)
from audits.load import SMALL
from audits.repo import Change, Repository
from audits.schema import Schema
from audits.trust import Trust

_NONE = ("000000", "")
_FILES = ("100644", "100755")
Object = tuple[str, str]
"""A mode and the name of an object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signing:
    """What the heads of a study are held against."""

    ledger: Ledger
    study: str
    schema: Schema
    trust: Trust
    attested: Attested
    """What stamps say of heads by keys that were compromised."""


def check_heads(
    repository: Repository,
    parents: dict[str, tuple[str, ...]],
    changes: list[Change],
    since: set[str],
    signing: Signing,
    found: Found,
) -> None:
    """Look at every head and signature that a commit of ``since`` holds."""
    pairs = _pairs(parents, changes, since)
    bytes_of = repository.blobs(name for pair in pairs for mode, name in pair if mode in _FILES)
    signed: set[int] = set()
    for pair, commit in pairs.items():
        wrong = Found()
        try:
            signed.add(line_signed([_read(one, bytes_of) for one in pair], signing, wrong))
        except Fault as fault:
            wrong.faults.append(fault)
        if wrong.faults:
            first = wrong.faults[0]
            what = f"commit {commit} holds one that is not sound: {first.what}"
            found.fault(what, file=first.file or HEAD, pointer=first.pointer)
    found.applied += len(pairs)
    entries = signing.ledger.entries
    for line, (entry, following) in enumerate(pairwise(entries), 1):
        if entry["actor"] != following["actor"] and line not in signed:
            what = f"{following['actor']} wrote the next, and no commit has this one's head signed by "
            found.fault(what + entry["actor"], file=f"{LEDGER} line {line}")


def _pairs(
    parents: dict[str, tuple[str, ...]], changes: list[Change], since: set[str]
) -> dict[tuple[Object, Object], str]:
    """Every pair of a head and its signature, with the first commit that holds it."""
    changed: dict[tuple[str, str], dict[str, Object]] = {}
    for change in changes:
        if change.path in (HEAD, HEAD_SIGNATURE):
            changed.setdefault((change.commit, change.parent), {})[change.path] = change.mode, change.blob
    held: dict[str, tuple[Object, Object]] = {"": (_NONE, _NONE)}
    pairs: dict[tuple[Object, Object], str] = {}
    for commit, several in parents.items():
        parent = several[0] if several else ""
        new, (head, signature) = changed.get((commit, parent), {}), held[parent]
        held[commit] = pair = new.get(HEAD, head), new.get(HEAD_SIGNATURE, signature)
        if commit in since and all(mode != _NONE[0] for mode, _ in pair):
            pairs.setdefault(pair, commit)
    return pairs


def _read(one: Object, bytes_of: dict[str, bytes]) -> bytes:
    mode, name = one
    if mode not in _FILES:
        raise Fault(f"it is no regular file (mode {mode})")
    if len(bytes_of[name]) > SMALL:
        raise Fault(f"larger than the {SMALL} bytes it may have")
    return bytes_of[name]


def line_signed(pair: list[bytes], signing: Signing, wrong: Found) -> int:
    """The line whose signed head this is; 0 if something is wrong with it, where no fault is raised."""
    try:
        head = parse_machine(pair[0])
    except JsonFault as fault:
        raise fault.at(HEAD) from None
    signing.schema.check(head, HEAD)
    line: int = head["seq"]
    if not 1 <= line <= len(signing.ledger.entries):
        raise Fault(f"{LEDGER} has no line {line}", file=HEAD, pointer="/seq")
    compare_head(head, signing.ledger, line, signing.study, wrong)
    if not wrong.faults:
        entry, outside = signing.ledger.entries[line - 1], signing.attested.head(line)
        check_head_signature((pair[0], pair[1]), head, entry, signing.trust, outside)
    return 0 if wrong.faults else line
