"""Step 5: the sealed study, its cross references, and the plan that follows from it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from audits.fault import Fault, Found
from audits.jsonc import canonical, parse
from audits.load import Folder
from audits.schema import Schema

FILES = ("protocol", "seeds", "events", "predicates", "predictions")
"""The authored files every study has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A unit and its shards, as planned."""

    id: str
    configuration: str
    arm: str
    drafter: bool
    """Whether anything may be proposed: the arm speculates and the configuration has a drafter."""
    environment: str
    """The sealed fingerprint of its build."""
    first: int
    """Its first seed."""
    requests: int
    rows: int
    shard_requests: int

    @property
    def draws(self) -> int:
        """Draws of the unit."""
        return self.requests * self.rows

    @property
    def shards(self) -> int:
        """Shards of the unit."""
        return -(-self.requests // self.shard_requests)

    def span(self, shard: int) -> tuple[int, int]:
        """The half-open interval of a shard's requests."""
        first = shard * self.shard_requests
        return first, min(first + self.shard_requests, self.requests)


@dataclass(slots=True, kw_only=True)
class Study:
    """A sealed study, checked."""

    id: str
    protocol: dict[str, Any]
    blocks: list[dict[str, Any]]
    events: dict[str, Any]
    """By configuration: ``reference`` and ``events``."""
    predicates: dict[str, dict[str, Any]]
    """The rule of each predicate, by id, in the file's order."""
    predictions: list[dict[str, Any]]
    off: str
    on: str
    stage: str
    units: dict[str, Unit] = field(default_factory=dict)

    @property
    def configurations(self) -> list[dict[str, Any]]:
        """The configurations in the protocol's order."""
        value: list[dict[str, Any]] = self.protocol["configurations"]
        return value

    def unit(self, configuration: str, arm: str) -> str:
        """The id of a unit."""
        return f"{self.stage}.{configuration}.{arm}"


def _unique(items: Iterable[str], file: str, pointer: str, found: Found) -> None:
    seen: set[str] = set()
    for item in items:
        if item in seen:
            found.fault(f"{item!r} is there twice", file=file, pointer=pointer)
        seen.add(item)


def load_study(
    folder: Folder, schemas: dict[str, Schema], manifest: dict[str, Any], bad: set[str], found: Found
) -> Study:
    """Parse the authored files and check every reference between them; raises if a file cannot be used."""
    values: dict[str, dict[str, Any]] = {}
    listed = {item["path"] for item in manifest["files"]}
    for name in FILES:
        file = f"{name}.json"
        if file not in listed:
            raise Fault("is not in the manifest", file=file)
        if file in bad:
            raise Fault("is not the sealed file (step 3)", file=file)
        values[name] = folder.authored(file)
        schemas[name].check(values[name], file)
        if values[name]["study"] != manifest["study"]:
            found.fault(f"is not of study {manifest['study']}", file=file, pointer="/study")
        found.applied += 1
    _optional_files(folder, schemas, listed - bad, found)
    protocol = values["protocol"]
    roles = {arm["role"]: arm["id"] for arm in protocol["arms"]}
    if set(roles) != {"reference", "test"} or roles["reference"] == roles["test"]:
        raise Fault("needs one reference arm and one test arm", file="protocol.json", pointer="/arms")
    study = Study(
        id=manifest["study"],
        protocol=protocol,
        blocks=values["seeds"]["blocks"],
        events=values["events"]["configurations"],
        predicates={item["id"]: item["rule"] for item in values["predicates"]["predicates"]},
        predictions=values["predictions"]["predictions"],
        off=roles["reference"],
        on=roles["test"],
        stage=protocol["stages"][0]["id"],
    )
    _unique((c["id"] for c in study.configurations), "protocol.json", "/configurations", found)
    _unique((p["id"] for p in values["predicates"]["predicates"]), "predicates.json", "/predicates", found)
    _unique((p["id"] for p in study.predictions), "predictions.json", "/predictions", found)
    _unique((b["id"] for b in study.blocks), "seeds.json", "/blocks", found)
    _check_protocol(study, manifest, found)
    _check_events(study, values["events"]["harness_sha256"], found)
    _check_predictions(study, found)
    if not found.faults:
        _plan(study, manifest, found)
    return study


def _optional_files(folder: Folder, schemas: dict[str, Schema], usable: set[str], found: Found) -> None:
    if "repairs/repairs.json" in usable:
        schemas["repairs"].check(folder.authored("repairs/repairs.json"), "repairs/repairs.json")
        found.applied += 1
    if "searches.jsonl" in usable:
        for i, line in enumerate(folder.read("searches.jsonl").data.splitlines()):
            try:
                if line.strip() and not isinstance(parse(line), dict):
                    raise Fault("not an object")
            except Fault as fault:
                raise fault.at(f"searches.jsonl line {i + 1}") from None
        found.applied += 1


def _check_protocol(study: Study, manifest: dict[str, Any], found: Found) -> None:
    protocol, file = study.protocol, "protocol.json"
    ids = {c["id"] for c in study.configurations}
    for i, c in enumerate(study.configurations):
        at = f"/configurations/{i}"
        for key, names in (("model", protocol["models"]), ("prompt", protocol["prompts"])):
            if c[key] is not None and c[key] not in names:
                what = f"{c[key]!r} is not among the protocol's {key}s"
                found.fault(what, file=file, pointer=f"{at}/{key}")
        if c["build"] not in manifest["environments"]:
            found.fault("the manifest has no environment of this build", file=file, pointer=f"{at}/build")
        for name in c["predicates"]:
            if name not in study.predicates:
                found.fault(f"{name!r} is not in predicates.json", file=file, pointer=f"{at}/predicates")
        if c["predicates"] and protocol["decision"]["rule"] == "event-gap":
            found.fault("event-gap has no predicate that binds", file=file, pointer=f"{at}/predicates")
        if c["adapter"] == "command" and c["command"] is None:
            found.fault("adapter `command` without a command", file=file, pointer=f"{at}/command")
    if set(protocol["stages"][0]["configurations"]) != ids:
        what = "the stage does not hold every configuration, and no other"
        found.fault(what, file=file, pointer="/stages/0/configurations")
    if set(protocol["sampling"]) != {study.off, study.on}:
        found.fault("does not hold every arm, and no other", file=file, pointer="/sampling")
    for arm, plan in protocol["sampling"].items():
        if plan["draws"] % plan["rows"]:
            found.fault("draws is not a multiple of rows", file=file, pointer=f"/sampling/{arm}/draws")
    if protocol["decision"]["rule"] == "channel-S" and protocol["decision"]["calibration_allowance"] is None:
        what = "channel-S needs a calibration allowance"
        found.fault(what, file=file, pointer="/decision/calibration_allowance")


def _check_events(study: Study, harness: str | None, found: Found) -> None:
    file, channel = "events.json", study.protocol["decision"]["rule"] == "channel-S"
    if set(study.events) != {c["id"] for c in study.configurations}:
        what = "does not hold every configuration of the protocol, and no other"
        raise Fault(what, file=file, pointer="/configurations")
    references = [law for law in study.events.values() if law["reference"] is not None]
    if channel and len(references) < len(study.events):
        what = "channel-S needs a reference for every configuration"
        found.fault(what, file=file, pointer="/configurations")
    if bool(references) != (harness is not None):
        what = "is null without an oracle, and only then"
        found.fault(what, file=file, pointer="/harness_sha256")
    for name, law in study.events.items():
        if law["reference"] is not None and not channel:
            at = f"/configurations/{name}/reference"
            found.fault("event-gap has no reference", file=file, pointer=at)
        for i, event in enumerate(law["events"]):
            if any("crash" in outcome for outcome in (event.get("outcome", ()), *event.get("outcomes", ()))):
                at = f"/configurations/{name}/events/{i}"
                found.fault(f"`{event['kind']}` must not name a crash", file=file, pointer=at)
        _unique((e["id"] for e in law["events"]), file, f"/configurations/{name}/events", found)
        if law["reference"] is not None:
            at = f"/configurations/{name}/reference"
            _unique((canonical(r["outcome"]).decode() for r in law["reference"]), file, at, found)
            if abs(math.fsum(r["p"] for r in law["reference"]) - 1.0) > 1e-6:
                found.fault("its probabilities do not sum to 1", file=file, pointer=at)


def _check_predictions(study: Study, found: Found) -> None:
    ids = {c["id"] for c in study.configurations}
    for i, prediction in enumerate(study.predictions):
        claim = prediction["claim"]
        named = [claim["configuration"]] if claim["kind"] == "verdict" else claim["configurations"]
        for name in named:
            if name not in ids:
                at = f"/predictions/{i}/claim"
                found.fault(f"{name!r} is not a configuration", file="predictions.json", pointer=at)


def _plan(study: Study, manifest: dict[str, Any], found: Found) -> None:
    blocks: dict[str, tuple[int, int]] = {}
    for i, block in enumerate(study.blocks):
        first, end, at = int(block["first"]), int(block["end"]), f"/blocks/{i}"
        if first >= 2**64 or end > 2**64:
            found.fault("a seed is not below 2^64", file="seeds.json", pointer=at)
        if end <= first:
            found.fault("an empty block", file="seeds.json", pointer=at)
        if block["unit"] in blocks:
            found.fault(f"{block['unit']} has a second block", file="seeds.json", pointer=at)
        blocks[block["unit"]] = first, end
    for c in study.configurations:
        for arm in study.protocol["arms"]:
            sampling = study.protocol["sampling"][arm["id"]]
            name = study.unit(c["id"], arm["id"])
            requests = sampling["draws"] // sampling["rows"]
            if name not in blocks:
                found.fault(f"{name} has no block", file="seeds.json", pointer="/blocks")
                continue
            first, end = blocks.pop(name)
            if end - first != requests:
                what = f"{name} has {end - first} seeds for {requests} requests"
                found.fault(what, file="seeds.json", pointer="/blocks")
            study.units[name] = Unit(
                id=name,
                configuration=c["id"],
                arm=arm["id"],
                drafter=arm["speculation"] and c["drafter"] is not None,
                environment=manifest["environments"][c["build"]],
                first=first,
                requests=requests,
                rows=sampling["rows"],
                shard_requests=sampling["shard_requests"],
            )
            if study.units[name].shards > 100_000:
                found.fault(f"{name} has more shards than five digits count", file="protocol.json")
    for name in blocks:
        what = f"a block of {name}, which the protocol does not plan"
        found.fault(what, file="seeds.json", pointer="/blocks")
    found.applied += len(study.units)
