"""Step 5: what the authored files say of each other."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from audits.fault import Fault, Found
from audits.jsonc import canonical
from audits.predict import VERDICTS, channel, named, rule_of
from audits.study import Study

FILE = "protocol.json"


def check_unique(items: Iterable[str], file: str, pointer: str, found: Found) -> None:
    """No two of these ids are equal."""
    seen: set[str] = set()
    for item in items:
        if item in seen:
            found.fault(f"{item!r} is there twice", file=file, pointer=pointer)
        seen.add(item)


def check_protocol(study: Study, manifest: dict[str, Any], found: Found) -> None:
    """The protocol's references to its own parts, to the predicates and to the sealed environments."""
    protocol, file = study.protocol, FILE
    rule = protocol["decision"]["rule"]
    sealed = {item["path"]: item["sha256"] for item in manifest["files"]}
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
        if c["predicates"] and rule == "event-gap":
            found.fault("event-gap has no predicate that binds", file=file, pointer=f"{at}/predicates")
        if c["adapter"] == "command" and c["command"] is None:
            found.fault("adapter `command` without a command", file=file, pointer=f"{at}/command")
        helper = (c["drafter"] or {}).get("model")
        if helper is not None and helper not in protocol["models"]:
            what = f"{helper!r} is not among the protocol's models"
            found.fault(what, file=file, pointer=f"{at}/drafter/model")
        _check_own_files(c["features"], sealed, f"{at}/features", found)
    _check_stages(study, found)
    arms = set(study.arms) if study.stages("draws") else set()
    if set(protocol["sampling"]) != arms:
        what = "does not hold every arm, and no other" if arms else "is not empty, and nothing is drawn"
        found.fault(what, file=file, pointer="/sampling")
    builds = {c["build"] for c in study.drawn}
    for arm, plan in protocol["sampling"].items():
        at = f"/sampling/{arm}"
        if plan["draws"] % plan["rows"]:
            found.fault("draws is not a multiple of rows", file=file, pointer=f"{at}/draws")
        for build, own in plan.get("builds", {}).items():
            if build not in builds:
                what = "no configuration of a stage of draws has this build"
                found.fault(what, file=file, pointer=f"{at}/builds/{build}")
            if plan["draws"] % own["rows"]:
                what = "draws is not a multiple of these rows"
                found.fault(what, file=file, pointer=f"{at}/builds/{build}/rows")
    if rule == "channel-S" and protocol["decision"]["calibration_allowance"] is None:
        what = "channel-S needs a calibration allowance"
        found.fault(what, file=file, pointer="/decision/calibration_allowance")
    if rule == "event-gap" and protocol["decision"]["calibration_allowance"] is not None:
        what = "event-gap has no reference to calibrate against: it is null"
        found.fault(what, file=file, pointer="/decision/calibration_allowance")
    nothing = {"rule": "exact", "threshold": 0, "calibration_allowance": None}
    if not study.stages("draws") and protocol["decision"] != nothing:
        what = f"is not {canonical(nothing).decode()}, and the only stage is exact"
        found.fault(what, file=file, pointer="/decision")
    if study.stages("draws") and rule == "exact":
        what = "`exact` is for a study whose only stage is exact"
        found.fault(what, file=file, pointer="/decision/rule")


def _check_own_files(features: dict[str, Any], sealed: dict[str, str], at: str, found: Found) -> None:
    """A file that a processor or a stopping rule comes from is one of the manifest's, with its digest."""
    for part in ("processors", "stopping", "stopping_criteria"):
        entries = features.get(part)
        for i, entry in enumerate(entries if isinstance(entries, list) else ()):
            if not isinstance(entry, dict) or "file" not in entry:
                continue
            path, here = entry["file"], f"{at}/{part}/{i}"
            # The manifest's own paths are safe (step 2), and so is one that is among them.
            if not isinstance(path, str) or path not in sealed:
                found.fault("is not a file of the manifest", file=FILE, pointer=f"{here}/file")
            elif entry.get("sha256") != sealed[path]:
                what = f"is not the manifest's digest of {path!a}"
                found.fault(what, file=FILE, pointer=f"{here}/sha256")


def _check_stages(study: Study, found: Found) -> None:
    protocol, by_id = study.protocol, {c["id"]: c for c in study.configurations}
    seen: set[tuple[str, str]] = set()
    for i, stage in enumerate(protocol["stages"]):
        here = stage.get("channel", "draws")
        for j, name in enumerate(stage["configurations"]):
            at = f"/stages/{i}/configurations/{j}"
            if name not in by_id:
                found.fault(f"{name!r} is not a configuration", file=FILE, pointer=at)
                continue
            if (here, name) in seen:
                found.fault(f"{name!r} is in a second stage of channel {here}", file=FILE, pointer=at)
            seen.add((here, name))
            if here == "exact" and by_id[name]["adapter"] == "command":
                found.fault("an exact stage has no configuration of adapter `command`", file=FILE, pointer=at)
            if here == "exact" and by_id[name]["drafter"] is None:
                found.fault("an exact stage has no configuration without a drafter", file=FILE, pointer=at)
    for i, name in enumerate(by_id):
        if not {("draws", name), ("exact", name)} & seen:
            found.fault(f"{name!r} is in no stage", file=FILE, pointer=f"/configurations/{i}")
    exact = len(study.stages("exact"))
    if exact > 1:
        found.fault(f"has {exact} exact stages", file=FILE, pointer="/stages")
    if ("exact" in protocol) != bool(exact):
        found.fault("is there exactly when an exact stage is", file=FILE, pointer="/exact")
    both = {name for of, name in seen if of == "draws"} & {name for of, name in seen if of == "exact"}
    if exact and "exact" in protocol and protocol["exact"]["premise_alpha"] is not None and not both:
        what = "no configuration is in a stage of draws and in the exact stage: nothing can be tested"
        found.fault(what, file=FILE, pointer="/exact/premise_alpha")


def check_events(study: Study, harness: str | None, found: Found) -> None:
    """The events and references of every configuration, under the rule of the study."""
    file, rule = "events.json", study.protocol["decision"]["rule"]
    if set(study.events) != {c["id"] for c in study.configurations}:
        what = "does not hold every configuration of the protocol, and no other"
        raise Fault(what, file=file, pointer="/configurations")
    references = {name for name, law in study.events.items() if law["reference"] is not None}
    drawn = {name for stage in study.stages("draws") for name in stage["configurations"]}
    if rule == "channel-S" and not drawn <= references:
        what = "channel-S needs a reference for every configuration that is drawn"
        found.fault(what, file=file, pointer="/configurations")
    if bool(references) != (harness is not None):
        what = "is null without an oracle, and only then"
        found.fault(what, file=file, pointer="/harness_sha256")
    for name, law in study.events.items():
        if law["reference"] is not None and rule == "event-gap":
            at = f"/configurations/{name}/reference"
            found.fault("event-gap has no reference", file=file, pointer=at)
        for i, event in enumerate(law["events"]):
            if any("crash" in outcome for outcome in (event.get("outcome", ()), *event.get("outcomes", ()))):
                at = f"/configurations/{name}/events/{i}"
                found.fault(f"`{event['kind']}` must not name a crash", file=file, pointer=at)
        check_unique((e["id"] for e in law["events"]), file, f"/configurations/{name}/events", found)
        if law["reference"] is not None:
            at = f"/configurations/{name}/reference"
            check_unique((canonical(r["outcome"]).decode() for r in law["reference"]), file, at, found)
            if abs(math.fsum(r["p"] for r in law["reference"]) - 1.0) > 1e-6:
                found.fault("its probabilities do not sum to 1", file=file, pointer=at)


def check_predictions(study: Study, found: Found) -> None:
    """A claim names configurations that its channel judges, and verdicts of its channel's rule."""
    for i, prediction in enumerate(study.predictions):
        claim, at = prediction["claim"], f"/predictions/{i}/claim"
        of = channel(claim)
        rule, ids = rule_of(claim, study.protocol["decision"]["rule"]), study.claimable(of)
        for name in named(claim):
            if name not in ids:
                what = f"{name!r} is not a configuration of a stage of channel {of}"
                if of in ("records", "hypothesis"):
                    what = f"{name!r} is not a configuration of a stage of draws with {of}"
                found.fault(what, file="predictions.json", pointer=at)
        for verdict in claim["in"] if claim["kind"] == "verdict" else [claim["verdict"]]:
            if verdict not in VERDICTS[rule]:
                what = f"{verdict!r} is no verdict of the rule {rule}"
                found.fault(what, file="predictions.json", pointer=at)
