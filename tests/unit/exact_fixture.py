"""A small study with an exact stage for tests: two configurations of a decoder over three tokens.

No engine runs: the trees are written down here, from docs/formats.md alone, as a collector would record them.
`same` has one law in both arms, `other` has not. Use

    paths = make_exact_study(tmp_path)    # <tmp_path>/repo/studies/tree, trust and a first commit
    study_fixture.seal(paths)
    fabricate(paths)                      # shards of draws, trees, ledger lines, signed head, commit
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import study_fixture
from exact_leaves import FIRST, SECOND, leaves_of, tree_meta
from study_fixture import ENVIRONMENTS, git, shard_meta, signing_key

from prereg.codec.canonical import digest, dump_file
from prereg.codec.convert import to_json
from prereg.model.law import Decoded
from prereg.model.plan import Shard, plan
from prereg.model.record import Counters, LeafRecord, Record
from prereg.model.tree import (
    TreeMeta,
)
from prereg.seal.finish import sign_head_and_commit
from prereg.seal.leaves import encode_tree
from prereg.seal.records import encode_shard
from prereg.seal.verify import verify_study
from prereg.store.files import write_whole
from prereg.store.harness import harness_digest
from prereg.store.layout import StudyPaths
from prereg.store.ledger import LedgerWriter

MODEL = {
    "kind": "tiny-llama",
    "seed": "1",
    "initializer_range": 0.1,
    "vocab": ["a", "b", "<eos>"],
    "eos": 2,
    "hidden": 8,
    "intermediate": 8,
    "layers": 1,
    "heads": 1,
    "context": 16,
}


def configuration(name: str, **changes: Any) -> dict[str, Any]:
    return {
        "id": name,
        "role": "probe",
        "about": "a decoder that is written down",
        "build": "plain",
        "adapter": "hf",
        "model": "tiny",
        "prompt": "ab",
        "horizon": 2,
        "features": {},
        "drafter": {"kind": "prompt-lookup", "max_ngram": 2, "max_tokens": 2},
        "predicates": ["horizon"],
        "command": None,
        **changes,
    }


def exact_protocol(study: str = "tree") -> dict[str, Any]:
    """A stage of draws on `same`, and the exact stage on both."""
    return {
        "schema": "prereg/protocol/v1",
        "study": study,
        "title": "A tree",
        "authors": [{"name": "Ada", "principal": "ada@example.org"}],
        "question": "Does speculation change the law?",
        "template": "exact",
        "models": {"tiny": MODEL},
        "prompts": {"ab": [0, 1]},
        "arms": [
            {"id": "off", "role": "reference", "speculation": False},
            {"id": "on", "role": "test", "speculation": True},
        ],
        "configurations": [configuration("same"), configuration("other")],
        "stages": [
            {"id": "drawn", "purpose": "discovery", "configurations": ["same"]},
            {
                "id": "walked",
                "purpose": "discovery",
                "configurations": ["other", "same"],
                "channel": "exact",
            },
        ],
        "sampling": {
            "off": {"draws": 400, "rows": 100, "shard_requests": 2},
            "on": {"draws": 400, "rows": 1, "shard_requests": 200},
        },
        "alpha": 0.05,
        "decision": {"rule": "channel-S", "threshold": 0.01, "calibration_allowance": 0.05},
        "exact": {
            "tolerance": 1e-5,
            "runs": None,
            "mass": 0,
            "close_last": True,
            "close_floor": 0,
            "premise_alpha": 0.05,
        },
        "missing": "refuse",
        "stopping": {"rule": "fixed"},
        "attempts": 1,
        "ceilings": {
            "study_seconds": 600,
            "unit_seconds": 300,
            "request_seconds": 30,
            "on_ceiling": "INVALID",
        },
        "exclusions": [],
        "runtime": "venv",
        "power": {"gap": 0.3, "witness": 0.1, "target": 0.5},
    }


def tokens(first: int, second: int) -> dict[str, Any]:
    return {"tokens": [first, second], "finish": "length"}


def exact_files(
    protocol: dict[str, Any], first_seed: int = 7_000, predictions: Sequence[dict[str, Any]] = ()
) -> dict[str, Any]:
    """The five authored files around a protocol."""
    blocks = []
    for stage in protocol["stages"]:
        for name in stage["configurations"]:
            for arm in protocol["arms"]:
                sampling = protocol["sampling"].get(arm["id"])
                exact = stage.get("channel") == "exact"
                requests = 4 if exact or sampling is None else sampling["draws"] // sampling["rows"]
                unit = f"{stage['id']}.{name}.{arm['id']}"
                blocks.append(
                    {
                        "id": unit.replace(".", "-"),
                        "role": stage["purpose"],
                        "unit": unit,
                        "first": str(first_seed),
                        "end": str(first_seed + requests),
                    }
                )
                first_seed += requests
    law = [{"outcome": tokens(i, j), "p": FIRST[i] * SECOND[j]} for i in FIRST for j in SECOND]
    events = [
        {"id": "starts-with-0", "kind": "prefix", "tokens": [0]},
        {"id": "is-0-0", "kind": "outcome", "outcome": tokens(0, 0)},
        {"id": "other", "kind": "other"},
        {"id": "crash", "kind": "crash"},
    ]
    family = {"reference": law, "events": events}
    study = protocol["study"]
    return {
        "protocol.json": protocol,
        "seeds.json": {"schema": "prereg/seeds/v1", "study": study, "blocks": blocks},
        "events.json": {
            "schema": "prereg/events/v1",
            "study": study,
            "harness_sha256": harness_digest(),
            "configurations": {c["id"]: family for c in protocol["configurations"]},
        },
        "predicates.json": {
            "schema": "prereg/predicates/v1",
            "study": study,
            "predicates": [
                {
                    "id": "horizon",
                    "statement": "At most two tokens.",
                    "source": "the documentation",
                    "rule": {"kind": "max-tokens", "n": 2},
                }
            ],
        },
        "predictions.json": {
            "schema": "prereg/predictions/v1",
            "study": study,
            "predictions": copy.deepcopy(list(predictions) or PREDICTIONS),
        },
    }


PREDICTIONS = [
    {
        "id": "walked",
        "statement": "Walked, the other departs.",
        "claim": {"kind": "verdict", "configuration": "other", "in": ["DEPARTS"], "channel": "exact"},
    },
    {
        "id": "drawn",
        "statement": "Drawn, the same is not rejected.",
        "claim": {"kind": "verdict", "configuration": "same", "in": ["NOT_REJECTED"]},
    },
]


def make_exact_study(
    tmp_path: Path,
    change: Callable[[dict[str, Any]], None] | None = None,
    predictions: Sequence[dict[str, Any]] = (),
    own: Mapping[str, str] | None = None,
) -> StudyPaths:
    """The study, unsealed, in a git repository at `tmp_path/repo`; `change` may alter its protocol.

    `own` has the texts of more files of its own, by path.
    """
    paths = study_fixture.make_study(tmp_path, study="tree", commit=False)
    (paths.root / "coin.py").unlink()
    protocol = exact_protocol()
    if change is not None:
        change(protocol)
    for name, value in exact_files(protocol, predictions=predictions).items():
        (paths.root / name).write_text(json.dumps(value, indent=1))
    for name, text in (own or {}).items():
        (paths.root / name).parent.mkdir(parents=True, exist_ok=True)
        (paths.root / name).write_text(text)
    git(paths.repository, "add", "studies")
    git(paths.repository, "commit", "-q", "-m", "Draft")
    return paths


def records_of(seal: str, shard: Shard) -> list[Record]:
    """Draws that are spread over the law of the tree as evenly as can be."""
    on = shard.unit.arm == "on"
    cycle = [tokens(i, j) for i in FIRST for j, times in ((0, 1), (1, 3)) for _ in range(times)]
    found = []
    for i, seed in enumerate(shard.seeds()):
        for row in range(shard.rows):
            draw = shard.first_draw + i * shard.rows + row
            outcome = cycle[draw % len(cycle)]
            found.append(
                Record(
                    seal=seal,
                    unit=shard.unit.id,
                    shard=shard.index,
                    attempt=1,
                    draw=draw,
                    seed=str(seed),
                    row=row,
                    outcome=Decoded(tokens=tuple(outcome["tokens"]), finish="length"),
                    counters=Counters(proposals=2 * on, verifications=int(on), accepted=0),
                )
            )
    return found


def store(
    writer: LedgerWriter,
    study: str,
    seal: str,
    shard: Shard,
    who: str = "col",
    leaves: Sequence[LeafRecord] | None = None,
    meta: TreeMeta | None = None,
) -> None:
    """Write one shard and its ledger line; `leaves` and `meta` stand in for those of the fixture."""
    records: Sequence[Record | LeafRecord]
    tree = None
    if shard.channel == "exact":
        walked = leaves_of(seal, shard) if leaves is None else list(leaves)
        records, encoded = walked, encode_tree(walked)
        tree = tree_meta(walked) if meta is None else meta
    else:
        drawn = records_of(seal, shard)
        records, encoded = drawn, encode_shard(drawn)
    value = to_json(shard_meta(study, seal, shard, encoded, len(records), tree=tree))
    meta_bytes = dump_file(value)
    write_whole(writer.paths.shard_records(shard.unit.id, shard.index), encoded.data)
    write_whole(writer.paths.shard_meta(shard.unit.id, shard.index), meta_bytes)
    body = {
        "unit": shard.unit.id,
        "shard": shard.index,
        "attempt": 1,
        "records_sha256": encoded.records_sha256,
        "records_size": encoded.records_size,
        "meta_sha256": digest(meta_bytes),
        "draws": len(records),
    }
    writer.append("shard-stored", body, f"{who}@example.org")


def fabricate(
    paths: StudyPaths,
    *,
    trees: Mapping[str, tuple[Sequence[LeafRecord], TreeMeta]] | None = None,
    invalid: Mapping[str, str] | None = None,
    who: str = "col",
) -> str:
    """Collect a sealed study without running anything; returns the commit.

    `trees` gives units other leaves and another meta than the fixture's; `invalid` are units to be lost.
    """
    verified = verify_study(paths, need="sealed")
    study, seal, actor = verified.manifest.study, verified.seal, f"{who}@example.org"
    lost, given = dict(invalid or {}), dict(trees or {})
    todo = [s for s in plan(verified.study.protocol, verified.study.seeds) if s.unit.id not in lost]
    with LedgerWriter.open(paths) as writer:
        started = {
            "seal": seal,
            "attempt": 1,
            "environments": ENVIRONMENTS,
            "workers": 1,
            "network": "not-cut",
            "network_reason": "a test",
        }
        writer.append("collection-started", started, actor)
        for shard in todo:
            leaves, meta = given.get(shard.unit.id, (None, None))
            store(writer, study, seal, shard, who, leaves, meta)
        for unit, reason in lost.items():
            writer.append("unit-invalid", {"unit": unit, "attempt": 1, "reason": reason}, actor)
        body = {"seal": seal, "complete": True, "stored": len(todo), "invalid": sorted(lost)}
        writer.append("collection-ended", body, actor)
    return sign_head_and_commit(
        paths,
        key=signing_key(paths, who),
        principal=actor,
        message=f"Collect study {study}",
        touched=[paths.records],
    )
