"""Step 6: where each entry of the ledger may stand, and what it says of the seal and of what came before."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from audits.attempts import key_of
from audits.fault import Fault, Found
from audits.ledger import LEDGER, ROLES, Ledger
from audits.lineage import COSIGN, REQUEST, RESPONSE, Seal
from audits.load import SMALL, Folder, moment
from audits.study import Study
from audits.trust import Trust

Json = dict[str, Any]
_SECOND = {"cosigned", "timestamped", "pushed", "amended", "deviation", "relocation", "closed"}
"""The types of edition 2."""
_THIRD = {"attempt", "duplicate"}
"""The types of edition 3."""
_COLLECTING = ("shard-stored", "unit-invalid", "collection-ended", *_THIRD)
_BEFORE = ("cosigned", "timestamped", "amended")
"""What stands before the first collection only."""
_SHARD = re.compile(r"records/([^/]+?)(?:\.attempt-([2-9]))?/([0-9]{5})\.(jsonl\.gz|meta\.json)")
_USER = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*@|[^/:]*@[^/:]*:")
"""A remote with a user: in a URL, or as ``user@host:path``."""


@dataclass(slots=True, kw_only=True)
class Walk:
    """A walk through the ledger, and what its entries are held against."""

    folder: Folder
    ledger: Ledger
    seals: list[Seal]
    """The lineage, the present seal last."""
    trust: Trust
    study: Study | None
    """None if step 5 failed; what rests on the protocol is not judged then."""
    times: dict[str, datetime]
    """``genTime`` by seal, of the timestamps whose token is sound."""
    beside: set[tuple[str, str, str]] = field(default_factory=set)
    """Type, seal and actor (of ``cosigned`` only) of what came once and may not come again."""
    stamped: set[str] = field(default_factory=set)
    """The seals with a ``timestamped`` entry."""
    told: list[str] = field(default_factory=list)
    """The deviations."""

    @property
    def missing(self) -> str:
        """The protocol's word on missing units; the wider one if it is not known."""
        return "bound" if self.study is None else str(self.study.protocol["missing"])

    @property
    def third(self) -> bool:
        """Whether section 21 applies; if the protocol is not known, whether the ledger speaks of it."""
        if self.study is not None:
            return self.study.edition >= 3
        entries = self.ledger.entries
        return any(entry["type"] in _THIRD or "cause" in entry["body"] for entry in entries)

    def seal(self, digest: str) -> Seal | None:
        """A seal of the lineage."""
        return next((seal for seal in self.seals if seal.digest == digest), None)


def check_order(walk: Walk, found: Found) -> None:
    """Walk the entries through the states they may come in, and check what each says."""
    ledger, present, third = walk.ledger, walk.seals[-1], walk.third
    if walk.study is not None:
        ledger.attempts.most = walk.study.protocol["attempts"]
        ledger.attempts.shards = {name: unit.shards for name, unit in walk.study.units.items()}
    for i, entry in enumerate(ledger.entries):
        place, kind, body = f"{LEDGER} line {i + 1}", entry["type"], entry["body"]
        if not set(ROLES[kind]) & set(walk.trust.roles.get(entry["actor"], ())):
            what = f"{entry['actor']} has no role {' or '.join(ROLES[kind])}"
            found.fault(what, file=place, pointer="/actor")
        if walk.study is not None and walk.study.edition < 2 and kind in _SECOND:
            found.fault("is of edition 2, and the protocol names no edition", file=place, pointer="/type")
        if walk.study is not None and walk.study.edition < 3 and kind in _THIRD:
            what = "is of edition 3, and the protocol is of an earlier one"
            found.fault(what, file=place, pointer="/type")
        if (kind == "sealed") != (i == 0):
            found.fault("`sealed` comes once and first", file=place, pointer="/type")
        elif why := _misplaced(ledger, kind, walk.missing):
            found.fault(f"`{kind}` cannot come here: {why}", file=place, pointer="/type")
        if kind in ("sealed", "amended"):
            _enter_seal(walk, entry, place, found)
            continue
        in_force = ledger.seal or present.digest
        if body.get("seal", in_force) != in_force:
            found.fault("names another seal", file=place, pointer="/body/seal")
        if kind in _OF_UNITS:
            if third:
                ledger.attempts.enter(entry, ledger.stored, place, found)
            else:
                _only_one(walk, entry, place, found)
        _ENTER[kind](walk, entry, place, found)
    if ledger.entries and ledger.seal != present.digest:
        found.fault("its last seal is not the present one", file=LEDGER)
    for seal in walk.seals[:-1]:  # the present one may wait for its entry, until data are drawn
        there = [seal.folder + name for name in (RESPONSE, REQUEST) if walk.folder.has(seal.folder + name)]
        if there and seal.digest not in walk.stamped:
            found.fault("the ledger has no `timestamped` entry of this seal", file=there[0])
    if walk.told:
        found.notes.insert(0, "deviations: " + " | ".join(walk.told))


def _misplaced(ledger: Ledger, kind: str, missing: str) -> str:
    over = ledger.complete or ledger.analysis is not None
    if ledger.closed:
        return "the study is closed"
    if kind in _BEFORE and ledger.started:
        return "a collection was started"
    if kind == "collection-started" and over:
        return "the collection is over"
    if kind in _COLLECTING and (over or not ledger.collecting):
        return "no collection is under way"
    if kind == "analysis" and not (ledger.complete or (missing == "bound" and ledger.ended)):
        return "the collection is not complete"
    if kind == "audit" and not over:
        return "the collection is not complete"
    return ""


def _enter_seal(walk: Walk, entry: Json, place: str, found: Found) -> None:
    """A seal comes into force; it is one of the lineage, and the entry says of it what it says."""
    ledger, body = walk.ledger, entry["body"]
    before, seal = ledger.seal, walk.seal(body["seal"])
    # A seal that is not known is one fault; what follows is held against the present one.
    ledger.seal = seal.digest if seal is not None else walk.seals[-1].digest
    ledger.sealed_at = entry["time"]
    if entry["type"] == "amended" and body["previous"] != before:
        found.fault("is not the seal in force before", file=place, pointer="/body/previous")
    if seal is None:
        found.fault("names another seal", file=place, pointer="/body/seal")
        return
    manifest = seal.manifest
    if manifest.get("amends") != body.get("previous"):
        found.fault("is not what the manifest amends", file=place, pointer="/body/previous")
    _check_file(walk, seal.signature, body["signature_sha256"], "signature_sha256", place, found)
    if body["commit"] != manifest["commit"]:
        found.fault("is not the manifest's commit", file=place, pointer="/body/commit")
    if entry["actor"] != manifest["author"]["principal"]:
        found.fault("is not the manifest's author", file=place, pointer="/actor")
    if moment(entry["time"], place, "/time") < moment(manifest["created"], seal.path, "/created"):
        found.fault("is before the manifest was created", file=place, pointer="/time")


def _check_file(walk: Walk, path: str, digest: str, key: str, place: str, found: Found) -> None:
    """An entry has the digest of a file."""
    try:
        if walk.folder.read(path, SMALL).digest != digest:
            found.fault(f"is not of {path}", file=place, pointer=f"/body/{key}")
    except Fault as fault:
        found.faults.append(fault)


def _started(walk: Walk, entry: Json, place: str, found: Found) -> None:
    ledger, manifest = walk.ledger, walk.seals[-1].manifest
    asked = walk.study is not None and walk.study.edition >= 2 and "timestamp" in walk.study.protocol
    if asked and not ledger.started and ledger.seal not in walk.stamped:
        what = "the protocol asks for a timestamp, and no `timestamped` entry is before"
        found.fault(what, file=place, pointer="/type")
    ledger.collecting, ledger.ended, ledger.started = True, False, True
    ledger.said |= {entry["body"]["network"]}
    ledger.attempts.begun.clear()
    told = entry["body"]["environments"]
    for build, digest in told.items():
        if manifest["environments"].get(build) != digest:
            pointer = f"/body/environments/{build}"
            found.fault("is not the sealed environment's fingerprint", file=place, pointer=pointer)
    if missing := sorted(manifest["environments"].keys() - told.keys()):
        what = f"names no environment for {missing[0]}, which the manifest has"
        found.fault(what, file=place, pointer="/body/environments")


def _stored(walk: Walk, entry: Json, place: str, found: Found) -> None:
    ledger, body = walk.ledger, entry["body"]
    key = key_of(body)
    if key in ledger.stored:
        found.fault(f"shard {key[2]} of {key[0]} was stored before", file=place, pointer="/body/shard")
    ledger.stored[key] = body
    ledger.networks[key] = ledger.said


def _invalid(walk: Walk, entry: Json, place: str, found: Found) -> None:
    ledger, unit = walk.ledger, entry["body"]["unit"]
    if not ledger.attempts.failed:  # an earlier edition, where the first one is the last
        if unit in ledger.invalid:
            found.fault(f"{unit} was INVALID before", file=place, pointer="/body/unit")
        ledger.invalid[unit] = entry["body"]["reason"]
    elif unit in ledger.attempts.over:
        ledger.invalid[unit] = entry["body"]["reason"]


def _ended(walk: Walk, entry: Json, place: str, found: Found) -> None:
    ledger, body = walk.ledger, entry["body"]
    ledger.collecting, ledger.ended = False, True
    ledger.complete = ledger.complete or body["complete"]
    if body["stored"] != len(ledger.stored):
        what = f"says {body['stored']} shards; the ledger stored {len(ledger.stored)}"
        found.fault(what, file=place, pointer="/body/stored")
    named, over = set(body["invalid"]), set(ledger.invalid)
    # If it is not known how often a unit may be tried, any that failed may be over.
    perhaps = set(ledger.attempts.failed) if walk.study is None else set()
    if not over <= named <= over | perhaps:
        found.fault("does not name the units that are INVALID", file=place, pointer="/body/invalid")


def _analysis(walk: Walk, entry: Json, _: str, __: Found) -> None:
    walk.ledger.analysis = entry


def _audit(walk: Walk, entry: Json, _: str, __: Found) -> None:
    walk.ledger.audit = entry


def _once(walk: Walk, entry: Json, actor: str, place: str, found: Found) -> Seal | None:
    """The seal in force, where this entry is the first of its kind for it."""
    key = entry["type"], walk.ledger.seal, actor
    if key in walk.beside:
        found.fault(f"`{entry['type']}` comes once for each seal", file=place, pointer="/type")
    walk.beside.add(key)
    return walk.seal(walk.ledger.seal)


def _cosigned(walk: Walk, entry: Json, place: str, found: Found) -> None:
    seal = _once(walk, entry, entry["actor"], place, found)
    if seal is not None:
        path = f"{seal.folder}{COSIGN}{entry['actor']}.sig"
        _check_file(walk, path, entry["body"]["signature_sha256"], "signature_sha256", place, found)


def _timestamped(walk: Walk, entry: Json, place: str, found: Found) -> None:
    body, seal = entry["body"], _once(walk, entry, "", place, found)
    walk.stamped.add(walk.ledger.seal)
    if seal is None:
        return
    _check_file(walk, seal.folder + REQUEST, body["request_sha256"], "request_sha256", place, found)
    _check_file(walk, seal.folder + RESPONSE, body["token_sha256"], "token_sha256", place, found)
    told = walk.times.get(seal.digest)  # of a token that is not sound, step 4 says so
    if told is not None and moment(body["time"], place, "/body/time") != told:
        found.fault(f"the token's genTime is {told.isoformat()}", file=place, pointer="/body/time")


def _pushed(_: Walk, entry: Json, place: str, found: Found) -> None:
    if _USER.match(entry["body"]["remote"]):
        found.fault("names a user or a password", file=place, pointer="/body/remote")


def _deviation(walk: Walk, entry: Json, place: str, found: Found) -> None:
    body = entry["body"]
    about = f" about {', '.join(body['about'])}" if body["about"] else ""
    walk.told.append(f"{place} by {entry['actor']}{about}: {body['text']}")
    if walk.study is None or walk.ledger.seal != walk.seals[-1].digest:
        return
    known = {c["id"] for c in walk.study.configurations} | walk.study.units.keys()
    for i, name in enumerate(body["about"]):
        if name not in known:
            what = f"{name} is no configuration or unit"
            found.fault(what, file=place, pointer=f"/body/about/{i}")


def _relocation(walk: Walk, entry: Json, place: str, found: Found) -> None:
    for i, item in enumerate(entry["body"]["files"]):
        pointer, match = f"/body/files/{i}", _SHARD.fullmatch(item["to"])
        key = (match.group(1), int(match.group(2) or 1), int(match.group(3))) if match else None
        stored = walk.ledger.stored.get(key) if key else None
        if match is None or stored is None:
            what = f"{item['to']} is no file of a shard that was stored before"
            found.fault(what, file=place, pointer=f"{pointer}/to")
            continue
        records = match.group(4) == "jsonl.gz"
        if item["sha256"] != stored["records_sha256" if records else "meta_sha256"]:
            found.fault("is not what the ledger stored", file=place, pointer=f"{pointer}/sha256")
        try:
            size = stored["records_size"] if records else len(walk.folder.read(item["to"], SMALL).data)
        except Fault as fault:
            found.faults.append(fault)
            continue
        if item["size"] != size:
            found.fault(f"it has {size} bytes", file=place, pointer=f"{pointer}/size")


def _closed(walk: Walk, _: Json, __: str, ___: Found) -> None:
    walk.ledger.closed = True


def _attempt(walk: Walk, entry: Json, place: str, found: Found) -> None:
    body = entry["body"]
    if walk.study is None:
        return
    unit = walk.study.units.get(body["unit"])
    if unit is None or body["shard"] >= unit.shards:
        found.fault("names a shard that is not in the plan", file=place, pointer="/body/shard")


def _duplicate(_: Walk, __: Json, ___: str, ____: Found) -> None:
    """Section 21 has its place checked before; what it says of the second result is for step 7."""


def _only_one(walk: Walk, entry: Json, place: str, found: Found) -> None:
    """Before edition 3 there is one attempt, and no word on why it failed.

    If the protocol is not known, there is one as well: no `attempt` is in the ledger, and no cause.
    """
    body = entry["body"]
    if body["attempt"] != 1:
        known = "the protocol is of an earlier edition than 3"
        why = known if walk.study is not None else "the ledger tells of no failed one"
        what = f"is {body['attempt']}: there is one attempt, for {why}"
        found.fault(what, file=place, pointer="/body/attempt")
    if "cause" in body:
        what = "is of edition 3, and the protocol is of an earlier one"
        found.fault(what, file=place, pointer="/body/cause")


_OF_UNITS = {"shard-stored", "unit-invalid", *_THIRD}
"""The types that name an attempt at a unit."""
_ENTER: dict[str, Callable[[Walk, Json, str, Found], None]] = {
    "collection-started": _started,
    "shard-stored": _stored,
    "unit-invalid": _invalid,
    "collection-ended": _ended,
    "analysis": _analysis,
    "audit": _audit,
    "cosigned": _cosigned,
    "timestamped": _timestamped,
    "pushed": _pushed,
    "deviation": _deviation,
    "relocation": _relocation,
    "closed": _closed,
    "attempt": _attempt,
    "duplicate": _duplicate,
}
