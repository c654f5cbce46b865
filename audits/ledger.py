"""Step 6: the ledger's chain, its types and order, and its signed head."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

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
}
"""The roles whose holder may write an entry of each type."""


@dataclass(slots=True)
class Ledger:
    """What the ledger says."""

    entries: list[dict[str, Any]] = field(default_factory=list)
    digests: list[str] = field(default_factory=list)
    """The digest of each line, its newline included."""
    stored: dict[tuple[str, int], dict[str, Any]] = field(default_factory=dict)
    """The body of ``shard-stored`` by unit and shard."""
    networks: dict[tuple[str, int], frozenset[str]] = field(default_factory=dict)
    """What the collections started before a shard was stored say of the network, by unit and shard."""
    said: frozenset[str] = frozenset()
    """What the collections started so far say of the network."""
    invalid: dict[str, str] = field(default_factory=dict)
    """The reason by unit, of every unit that is INVALID."""
    collecting: bool = False
    """A collection was started and not ended."""
    ended: bool = False
    """A collection was ended, complete or not, and none was started after."""
    complete: bool = False
    """A complete collection was ended."""
    analysis: dict[str, Any] | None = None
    """The last ``analysis`` entry."""
    audit: dict[str, Any] | None = None
    """The last ``audit`` entry."""

    @property
    def head(self) -> str | None:
        """The digest of the last line."""
        return self.digests[-1] if self.digests else None

    @property
    def state(self) -> str:
        """The study's state."""
        last = self.entries[-1]["type"] if self.entries else ""
        if last == "collection-ended":
            return "collected" if self.complete else "collecting"
        names = {"": "draft", "sealed": "sealed", "analysis": "analysed", "audit": "audited"}
        return names.get(last, "collecting")


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


def check_order(ledger: Ledger, seal: dict[str, Any], trust: Trust, missing: str, found: Found) -> None:
    """Walk the entries through the states they may come in, and check what each says of the seal.

    ``seal`` holds ``digest``, ``signature_sha256`` and the ``manifest``; ``missing`` is the protocol's.
    """
    manifest = seal["manifest"]
    for i, entry in enumerate(ledger.entries):
        place, kind, body = f"{LEDGER} line {i + 1}", entry["type"], entry["body"]
        if not set(ROLES[kind]) & set(trust.roles.get(entry["actor"], ())):
            what = f"{entry['actor']} has no role {' or '.join(ROLES[kind])}"
            found.fault(what, file=place, pointer="/actor")
        if body.get("seal", seal["digest"]) != seal["digest"]:
            found.fault("names another seal", file=place, pointer="/body/seal")
        if (kind == "sealed") != (i == 0):
            found.fault("`sealed` comes once and first", file=place, pointer="/type")
        elif why := _misplaced(ledger, kind, missing):
            found.fault(f"`{kind}` cannot come here: {why}", file=place, pointer="/type")
        _ENTER[kind](ledger, entry, manifest, place, found)
    if not ledger.entries:
        return
    first, body = ledger.entries[0], ledger.entries[0]["body"]
    place = f"{LEDGER} line 1"
    if first["type"] == "sealed":
        if body["signature_sha256"] != seal["signature_sha256"]:
            found.fault("is not of seal/manifest.json.sig", file=place, pointer="/body/signature_sha256")
        if body["commit"] != manifest["commit"]:
            found.fault("is not the manifest's commit", file=place, pointer="/body/commit")
        if first["actor"] != manifest["author"]["principal"]:
            found.fault("is not the manifest's author", file=place, pointer="/actor")
        created = moment(manifest["created"], "seal/manifest.json", "/created")
        if moment(first["time"], place, "/time") < created:
            found.fault("is before the manifest was created", file=place, pointer="/time")


def _misplaced(ledger: Ledger, kind: str, missing: str) -> str:
    over = ledger.complete or ledger.analysis is not None
    if kind == "collection-started" and over:
        return "the collection is over"
    if kind in ("shard-stored", "unit-invalid", "collection-ended") and (over or not ledger.collecting):
        return "no collection is under way"
    if kind == "analysis" and not (ledger.complete or (missing == "bound" and ledger.ended)):
        return "the collection is not complete"
    if kind == "audit" and not over:
        return "the collection is not complete"
    return ""


def _started(ledger: Ledger, entry: Json, manifest: Json, place: str, found: Found) -> None:
    ledger.collecting, ledger.ended = True, False
    ledger.said |= {entry["body"]["network"]}
    for build, digest in entry["body"]["environments"].items():
        if manifest["environments"].get(build) != digest:
            pointer = f"/body/environments/{build}"
            found.fault("is not the sealed environment's fingerprint", file=place, pointer=pointer)


def _stored(ledger: Ledger, entry: Json, _: Json, place: str, found: Found) -> None:
    body = entry["body"]
    key = body["unit"], body["shard"]
    if key in ledger.stored:
        found.fault(f"shard {key[1]} of {key[0]} was stored before", file=place, pointer="/body/shard")
    ledger.stored[key] = body
    ledger.networks[key] = ledger.said


def _invalid(ledger: Ledger, entry: Json, _: Json, place: str, found: Found) -> None:
    unit = entry["body"]["unit"]
    if unit in ledger.invalid:
        found.fault(f"{unit} was INVALID before", file=place, pointer="/body/unit")
    ledger.invalid[unit] = entry["body"]["reason"]


def _ended(ledger: Ledger, entry: Json, _: Json, place: str, found: Found) -> None:
    body = entry["body"]
    ledger.collecting, ledger.ended = False, True
    ledger.complete = ledger.complete or body["complete"]
    if body["stored"] != len(ledger.stored):
        what = f"says {body['stored']} shards; the ledger stored {len(ledger.stored)}"
        found.fault(what, file=place, pointer="/body/stored")
    if set(body["invalid"]) != set(ledger.invalid):
        found.fault("does not name the units that are INVALID", file=place, pointer="/body/invalid")


def _analysis(ledger: Ledger, entry: Json, _: Json, __: str, ___: Found) -> None:
    ledger.analysis = entry


def _audit(ledger: Ledger, entry: Json, _: Json, __: str, ___: Found) -> None:
    ledger.audit = entry


def _sealed(_: Ledger, __: Json, ___: Json, ____: str, _____: Found) -> None:
    pass


_ENTER: dict[str, Callable[[Ledger, Json, Json, str, Found], None]] = {
    "sealed": _sealed,
    "collection-started": _started,
    "shard-stored": _stored,
    "unit-invalid": _invalid,
    "collection-ended": _ended,
    "analysis": _analysis,
    "audit": _audit,
}


def check_head(
    folder: Folder, ledger: Ledger, study: str, schema: Schema, trust: Trust, found: Found
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
    check_head_signature(pair, head, ledger.entries[last - 1], trust)
    found.applied += 1


def compare_head(head: Json, ledger: Ledger, line: int, study: str, found: Found) -> None:
    """A head says of a line what the line says."""
    entry = ledger.entries[line - 1]
    expected = {"study": study, "seq": line, "head": ledger.digests[line - 1], "actor": entry["actor"]}
    for key, value in expected.items():
        if head[key] != value:
            found.fault(f"does not agree with {LEDGER} line {line}", file=HEAD, pointer=f"/{key}")
    if moment(head["time"], HEAD, "/time") < moment(entry["time"], LEDGER, "/time"):
        found.fault(f"is before the time of {LEDGER} line {line}", file=HEAD, pointer="/time")


def check_head_signature(pair: tuple[bytes, bytes], head: Json, entry: Json, trust: Trust) -> None:
    """The bytes of a head are signed by its actor, who may make such an entry."""
    try:
        trust.check(
            *pair,
            namespace="prereg-ledger",
            principal=head["actor"],
            roles=ROLES[entry["type"]],
            at=moment(head["time"], HEAD, "/time"),
        )
    except Fault as fault:
        raise fault.at(HEAD_SIGNATURE) from None
