"""Step 6: the ledger's chain, and its signed head."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from audits.attempts import Attempts, Key
from audits.attested import Attested, Outside, never
from audits.fault import Fault, Found
from audits.jsonc import JsonFault, canonical, parse_machine
from audits.load import SMALL, Folder, moment, sha256
from audits.schema import Schema
from audits.trust import Trust

Json = dict[str, Any]
LEDGER = "ledger.jsonl"
HEAD = "ledger.head.json"
HEAD_SIGNATURE = "ledger.head.json.sig"
ROLES = {
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
    "attempt": ("author", "collector"),
    "duplicate": ("author", "collector"),
}
"""The roles whose holder may write an entry of each type."""
_STATES = {
    "sealed": "sealed",
    "amended": "sealed",
    "collection-started": "collecting",
    "shard-stored": "collecting",
    "unit-invalid": "collecting",
    "analysis": "analysed",
    "audit": "audited",
    "closed": "closed",
}
"""The state that an entry of a type makes; that of a collection's end depends on it, and others make none."""


@dataclass(slots=True)
class Ledger:
    """What the ledger says."""

    entries: list[dict[str, Any]] = field(default_factory=list)
    digests: list[str] = field(default_factory=list)
    """The digest of each line, its newline included."""
    stored: dict[Key, dict[str, Any]] = field(default_factory=dict)
    """The body of ``shard-stored`` by unit, attempt and shard."""
    networks: dict[Key, frozenset[str]] = field(default_factory=dict)
    """What the collections started before a shard was stored say of the network, by the same three."""
    said: frozenset[str] = frozenset()
    """What the collections started so far say of the network."""
    invalid: dict[str, str] = field(default_factory=dict)
    """The reason by unit, of every unit that is INVALID; in edition 3, of every unit that is over."""
    attempts: Attempts = field(default_factory=Attempts)
    """What edition 3 says of the attempts at each unit; in an earlier edition there is none of it."""
    collecting: bool = False
    """A collection was started and not ended."""
    ended: bool = False
    """A collection was ended, complete or not, and none was started after."""
    complete: bool = False
    """A complete collection was ended."""
    seal: str = ""
    """The seal in force."""
    sealed_at: str = ""
    """The time of the entry that put it in force."""
    started: bool = False
    """A collection was started at least once."""
    closed: bool = False
    """The study was closed."""
    analysis: dict[str, Any] | None = None
    """The last ``analysis`` entry."""
    audit: dict[str, Any] | None = None
    """The last ``audit`` entry."""

    @property
    def head(self) -> str | None:
        """The digest of the last line."""
        return self.digests[-1] if self.digests else None

    def sealing(self) -> dict[str, int]:
        """The line, from 1, that put each seal in force."""
        kinds = ("sealed", "amended")
        lines = [(e["body"]["seal"], i) for i, e in enumerate(self.entries, 1) if e["type"] in kinds]
        return dict(reversed(lines))

    @property
    def state(self) -> str:
        """The study's state."""
        for entry in reversed(self.entries):
            if entry["type"] == "collection-ended":
                return "collected" if self.complete else "collecting"
            if entry["type"] in _STATES:
                return _STATES[entry["type"]]
        return "draft"


def parse_ledger(data: bytes, schema: Schema, found: Found) -> Ledger:
    """Parse the lines, and check each against its schema and the one before it."""
    ledger = Ledger()
    if not data.endswith(b"\n"):
        raise Fault("does not end with a newline: its last line is cut short", file=LEDGER)
    before, time = "0" * 64, None
    for i, line in enumerate(data[:-1].split(b"\n")):
        place = f"{LEDGER} line {i + 1}"
        try:
            entry = parse_machine(line + b"\n")
        except JsonFault as fault:
            raise fault.at(place) from None
        schema.check(entry, place)
        now = moment(entry["time"], place, "/time")
        if entry["seq"] != i + 1:
            found.fault(f"seq is {entry['seq']}, not {i + 1}", file=place, pointer="/seq")
        if entry["prev"] != before:
            found.fault("prev is not the digest of the line before", file=place, pointer="/prev")
        if entry["body_sha256"] != sha256(canonical(entry["body"])):
            found.fault("body_sha256 is not the digest of the body", file=place, pointer="/body_sha256")
        if time is not None and now < time:
            found.fault("its time is before the line before", file=place, pointer="/time")
        before, time = sha256(line + b"\n"), now
        ledger.entries.append(entry)
        ledger.digests.append(before)
        found.applied += 1
    return ledger


def check_head(
    folder: Folder, ledger: Ledger, study: str, schema: Schema, trust: Trust, attested: Attested, found: Found
) -> None:
    """The head file names the last line, and is signed by that line's actor."""
    head = folder.machine(HEAD, SMALL)
    schema.check(head, HEAD)
    last = len(ledger.entries)
    if ledger.collecting and 1 <= head["seq"] < last:
        # A collection under way rewrites the head only when it ends.
        found.notes.append(f"the head signs {head['seq']} of {last} lines: a collection is under way")
        last = head["seq"]
    compare_head(head, ledger, last, study, found)
    pair = folder.read(HEAD, SMALL).data, folder.read(HEAD_SIGNATURE, SMALL).data
    check_head_signature(pair, head, ledger.entries[last - 1], trust, attested.head(last))
    found.applied += 1


def compare_head(head: Json, ledger: Ledger, line: int, study: str, found: Found) -> None:
    """A head says of a line what the line says."""
    entry = ledger.entries[line - 1]
    expected = {"study": study, "seq": line, "head": ledger.digests[line - 1]}
    expected |= {"actor": entry["actor"], "time": entry["time"]}
    for key, value in expected.items():
        if head[key] != value:
            found.fault(f"does not agree with {LEDGER} line {line}", file=HEAD, pointer=f"/{key}")


def check_head_signature(
    pair: tuple[bytes, bytes], head: Json, entry: Json, trust: Trust, outside: Outside = never
) -> None:
    """The bytes of a head are signed by its actor, who may make such an entry."""
    try:
        trust.check(
            *pair,
            namespace="prereg-ledger",
            principal=head["actor"],
            roles=ROLES[entry["type"]],
            at=moment(head["time"], HEAD, "/time"),
            outside=outside,
        )
    except Fault as fault:
        raise fault.at(HEAD_SIGNATURE) from None
