"""Which entry may stand where in a ledger, and what follows from where it stands (formats, 5, 19 and 21)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from prereg.model.seal import EDITION_2, Entry, EntryType, State

_ONCE_A_SEAL: tuple[EntryType, ...] = ("cosigned", "timestamped")
_AFTER_THE_END: tuple[EntryType, ...] = ("analysis", "audit", "pushed", "deviation", "relocation", "closed")
_JUDGED: tuple[EntryType, ...] = ("analysis", "audit")
_DURING: tuple[EntryType, ...] = (
    "attempt",
    "shard-stored",
    "duplicate",
    "unit-invalid",
    "collection-ended",
)
_SEALS: tuple[EntryType, ...] = ("sealed", "amended")


def state(entries: Sequence[Entry]) -> State:
    """The study's state by its ledger; no entries are a draft."""
    if not entries:
        return "draft"
    last = bearing(entries)
    match last.type:
        case "sealed" | "amended":
            return "sealed"
        case "collection-ended":
            return "collected" if last.body["complete"] else "collecting"
        case "collection-started" | "attempt" | "shard-stored" | "duplicate" | "unit-invalid":
            return "collecting"
        case "analysis":
            return "analysed"
        case "audit":
            return "audited"
        case "closed":
            return "closed"
        case "cosigned" | "timestamped" | "pushed" | "deviation" | "relocation":
            raise AssertionError(f"{last.type} bears no state")
        case _ as never:
            assert_never(never)


def place_fault(entries: Sequence[Entry], entry: Entry) -> str | None:
    """Why `entry` may not follow `entries`, or None.

    Looks at types, at `complete`, and at actors where they count. That an analysis of an incomplete
    collection needs a protocol that bounds what is missing is for whoever knows the protocol.
    """
    kind = entry.type
    if not entries:
        return None if kind == "sealed" else f"starts with {kind}, not with sealed"
    if kind == "sealed":
        return "a second entry 'sealed'"
    last = bearing(entries)
    if last.type == "closed":
        again = kind == "closed"
        return "a second entry 'closed'" if again else f"an entry {kind!r} after the study was closed"
    if kind not in _AFTER_THE_END:
        if last.type in _JUDGED:
            return f"an entry {kind!r} after an {last.type}"
        if last.type == "collection-ended" and last.body["complete"]:
            return f"an entry {kind!r} after the collection was complete"
    if kind == "analysis" and last.type not in ("collection-ended", *_JUDGED):
        return "analysis before a collection has ended"
    if kind == "audit" and last.type not in _JUDGED and not is_complete(entries):
        return "audit before a collection was complete or an analysis"
    if kind in _DURING and last.type in ("sealed", "amended", "collection-ended"):
        return f"an entry {kind!r} outside a collection"
    if kind in ("amended", *_ONCE_A_SEAL) and any(e.type == "collection-started" for e in entries):
        return f"an entry {kind!r} after a collection was started"
    if kind in _ONCE_A_SEAL and _said_of_this_seal(entries, entry):
        return f"a second entry {kind!r} of one seal" + (f" by {entry.actor}" if kind == "cosigned" else "")
    return None


def seals(entries: Sequence[Entry]) -> list[str]:
    """The digests of the seal and of its amendments, oldest first: the study's lineage."""
    return [e.body["seal"] for e in entries if e.type in _SEALS]


def spans(entries: Sequence[Entry]) -> list[tuple[Entry, ...]]:
    """The entries of each seal in turn, the one that makes it in front."""
    found: list[list[Entry]] = []
    for entry in entries:
        if entry.type in _SEALS:
            found.append([])
        if found:
            found[-1].append(entry)
    return [tuple(span) for span in found]


def deviations_of(entries: Sequence[Entry]) -> list[Entry]:
    """The departures from the protocol that were told, in order; whoever shows decisions shows them too."""
    return [e for e in entries if e.type == "deviation"]


def is_complete(entries: Sequence[Entry]) -> bool:
    """Whether some `collection-ended` says that nothing is missing."""
    return any(e.type == "collection-ended" and e.body["complete"] for e in entries)


def bearing(entries: Sequence[Entry]) -> Entry:
    """The last entry that bears a state; a ledger's first one does."""
    return next(e for e in reversed(entries) if e.type not in EDITION_2 or e.type in ("amended", "closed"))


def _said_of_this_seal(entries: Sequence[Entry], entry: Entry) -> bool:
    for earlier in reversed(entries):
        if earlier.type in _SEALS:
            return False
        if earlier.type == entry.type and (entry.type != "cosigned" or earlier.actor == entry.actor):
            return True
    return False
