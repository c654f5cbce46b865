"""Hand-made trees as the auditor's own: written as leaf lines, read by its reader, decided by its rules."""

from __future__ import annotations

from collections import Counter
from typing import Any

from audits_slow import EVENTS, LAW, Json, canon
from audits_tools import ROOT, machine
from audits_trees import TOLERANCE

from audits.decide import Derived
from audits.exact import arms_of, decide_exact
from audits.jsonc import parse
from audits.leaves import LeafReader, Tree
from audits.premise import Tested, derive_premise
from audits.records import LineReader, Records, Tally
from audits.schema import Schema
from audits.study import Study, Unit

SEAL = "ab" * 32
FILES = "records/x.c.on/00000.jsonl.gz", "records/x.c.on/00000.meta.json"


def schema(name: str) -> Schema:
    return Schema(parse((ROOT / f"schemas/v1/{name}.schema.json").read_bytes()))


LEAF = schema("leaf")
READER = LeafReader(LEAF, SEAL, LineReader(schema("record"), SEAL).part)


def unit(arm: str = "on") -> Unit:
    return Unit(
        id=f"x.c.{arm}", configuration="c", arm=arm, drafter=arm == "on", environment="e" * 64, first=70,
        requests=4, rows=1, shard_requests=4, exact=True,
    )  # fmt: skip


def leaf_lines(tree: Json, arm: str = "on") -> list[Json]:
    said = {"seal": SEAL, "unit": f"x.c.{arm}", "shard": 0, "attempt": 1}
    return [said | {"leaf": i} | leaf for i, leaf in enumerate(tree["leaves"])]


def read(tree: Json, arm: str = "on") -> Tree:
    lines = b"".join(map(machine, leaf_lines(tree, arm)))
    meta = {"draws": len(tree["leaves"]), "tree": tree["meta"]}
    return READER.tree(unit(arm), lines, meta, FILES)


def study(law: list[Json] | None = LAW, events: list[Json] = EVENTS, **exact: Any) -> Study:
    sealed = {"tolerance": TOLERANCE, "premise_alpha": 0.05}
    stages = [
        {"id": "x", "channel": "exact", "configurations": ["c"]}, {"id": "m", "configurations": ["d", "c"]},
    ]  # fmt: skip
    configurations = [{"id": name, "predicates": ["horizon", "letters"]} for name in ("c", "d")]
    return Study(
        id="s",
        protocol={"configurations": configurations, "stages": stages, "exact": sealed | exact},
        blocks=[],
        events={"c": {"reference": law, "events": events}},
        predicates={
            "horizon": {"kind": "max-tokens", "n": 3},
            "letters": {"kind": "allowed-tokens", "tokens": [0, 1, 2, 3]},
        },
        predictions=[],
        off="off",
        on="on",
    )


def records(off: Json | None, on: Json | None, draws: dict[str, list[Json] | None] | None = None) -> Records:
    """Of configuration ``c``: its two trees and what was drawn of it; None for a lost unit."""
    found = Records()
    for arm, tree in (("off", off), ("on", on)):
        if tree is None:
            found.lost[f"x.c.{arm}"] = "INVALID"
        else:
            found.trees[f"x.c.{arm}"] = read(tree, arm)
    for arm, outcomes in (draws or {}).items():
        if outcomes is None:
            found.lost[f"m.c.{arm}"] = "INVALID"
        else:
            found.tallies[f"m.c.{arm}"] = Tally(Counter(map(canon, outcomes)))
    return found


def decided(off: Json | None, on: Json | None, law: list[Json] | None = LAW, **exact: Any) -> Derived:
    plan = study(law, **exact)
    return decide_exact(plan, plan.configurations[0], arms_of(plan, records(off, on), "c"))


def premise_of(off: Json | None, on: Json | None, draws: dict[str, list[Json] | None]) -> Tested:
    plan, found = study(), records(off, on, draws)
    arms = arms_of(plan, found, "c")
    verdict = decide_exact(plan, plan.configurations[0], arms).row["verdict"]
    return derive_premise(plan, found, plan.configurations[0], arms, verdict)
