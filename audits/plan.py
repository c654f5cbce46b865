"""Step 5: the sealed study, its cross references, and the plan that follows from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from audits.containers import check_images
from audits.fault import Fault, Found
from audits.jsonc import parse
from audits.load import Folder
from audits.references import check_events, check_predictions, check_protocol, check_unique
from audits.register import HYPOTHESES, check_registered
from audits.schema import Schema
from audits.second import check_first_edition, check_told
from audits.signing import check_asked
from audits.study import EXACT_REQUESTS, Study, Unit
from audits.third import check_earlier_edition, check_names, check_tried_again

FILES = ("protocol", "seeds", "events", "predicates", "predictions")
"""The authored files every study has."""


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
    )
    if study.stages("exact"):
        _ = schemas["leaf"]  # no exact stage without the schema of its lines
    registered: dict[str, Any] | None = None
    if study.edition >= 2:
        _ = schemas["hypotheses"]
        registered = _hypotheses(folder, schemas, listed, bad, study, found)
    else:
        check_first_edition(study, found)
    if study.edition >= 3:
        check_names(study, found)
        check_tried_again(study, found)
    else:
        check_earlier_edition(study, found)
    lists = (
        ("protocol.json", "/stages", protocol["stages"]),
        ("protocol.json", "/configurations", study.configurations),
        ("predicates.json", "/predicates", values["predicates"]["predicates"]),
        ("predictions.json", "/predictions", study.predictions),
        ("seeds.json", "/blocks", study.blocks),
    )
    for file, pointer, items in lists:
        check_unique((item["id"] for item in items), file, pointer, found)
    check_protocol(study, manifest, found)
    check_events(study, values["events"]["harness_sha256"], found)
    check_asked(protocol, manifest, found)
    check_images(study, manifest, found)
    if study.edition >= 2:
        check_registered(study, registered, found)
        check_told(study, found)
    check_predictions(study, found)
    if not found.faults:
        _plan(study, manifest, found)
    return study


def _hypotheses(
    folder: Folder, schemas: dict[str, Schema], listed: set[str], bad: set[str], study: Study, found: Found
) -> dict[str, Any] | None:
    """The registered hypotheses, and the study told of them; None without the file."""
    if HYPOTHESES not in listed:
        return None
    if HYPOTHESES in bad:
        raise Fault("is not the sealed file (step 3)", file=HYPOTHESES)
    value: dict[str, Any] = folder.authored(HYPOTHESES)
    schemas["hypotheses"].check(value, HYPOTHESES)
    if value["study"] != study.id:
        found.fault(f"is not of study {study.id}", file=HYPOTHESES, pointer="/study")
    study.registered |= {row["configuration"]: row["hypothesis"] for row in value["configurations"]}
    found.applied += 1
    return value


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


def _plan(study: Study, manifest: dict[str, Any], found: Found) -> None:
    blocks: dict[str, tuple[str, dict[str, Any]]] = {}
    for i, block in enumerate(study.blocks):
        first, end, at = int(block["first"]), int(block["end"]), f"/blocks/{i}"
        if first >= 2**64 or end > 2**64:
            found.fault("a seed is not below 2^64", file="seeds.json", pointer=at)
        if end <= first:
            found.fault("an empty block", file="seeds.json", pointer=at)
        if block["unit"] in blocks:
            found.fault(f"{block['unit']} has a second block", file="seeds.json", pointer=at)
        blocks[block["unit"]] = at, block
    for stage in study.protocol["stages"]:
        for unit in _units(study, stage, manifest):
            if unit.id not in blocks:
                found.fault(f"{unit.id} has no block", file="seeds.json", pointer="/blocks")
                continue
            at, block = blocks.pop(unit.id)
            first, end = int(block["first"]), int(block["end"])
            if block["role"] != stage["purpose"]:
                what = f"is {block['role']}; the purpose of stage {stage['id']} is {stage['purpose']}"
                found.fault(what, file="seeds.json", pointer=f"{at}/role")
            if end - first != unit.requests:
                what = f"{unit.id} has {end - first} seeds for {unit.requests} requests"
                found.fault(what, file="seeds.json", pointer="/blocks")
            study.units[unit.id] = replace(unit, first=first)
            if unit.shards > 100_000:
                found.fault(f"{unit.id} has more shards than five digits count", file="protocol.json")
    for name in blocks:
        what = f"a block of {name}, which the protocol does not plan"
        found.fault(what, file="seeds.json", pointer="/blocks")
    found.applied += len(study.units)


def _units(study: Study, stage: dict[str, Any], manifest: dict[str, Any]) -> Iterator[Unit]:
    """The units of a stage, their seeds still to be found."""
    by_id = {c["id"]: c for c in study.configurations}
    exact = stage.get("channel", "draws") == "exact"
    for configuration in (by_id[name] for name in stage["configurations"]):
        for arm in study.protocol["arms"]:
            if exact:
                requests = shard_requests = EXACT_REQUESTS
                rows = 1
            else:
                sampling = study.protocol["sampling"][arm["id"]]
                own = sampling.get("builds", {}).get(configuration["build"], sampling)
                rows, shard_requests = own["rows"], own["shard_requests"]
                requests = sampling["draws"] // rows
            yield Unit(
                id=f"{stage['id']}.{configuration['id']}.{arm['id']}",
                configuration=configuration["id"],
                arm=arm["id"],
                drafter=arm["speculation"] and configuration["drafter"] is not None,
                environment=manifest["environments"][configuration["build"]],
                first=0,
                requests=requests,
                rows=rows,
                shard_requests=shard_requests,
                exact=exact,
            )
