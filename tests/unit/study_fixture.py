"""A small study for tests: two configurations of a coin, two arms, sealed for real.

The study needs no engine: its command `coin.py` turns arm, bias, seed and row into a value by SHA-256, so
that `fabricate_records` writes, from docs/formats.md alone, exactly the records that a collector would. Use

    paths = make_study(tmp_path)          # <tmp_path>/repo/studies/coin, trust and a first commit
    seal(paths)                           # manifest, signature, ledger, commit, tag
    fabricate_records(paths)              # shards, ledger lines, signed head, commit

Keys lie beside the repository: `signing_key(paths, "ada")` is the author's, "rex" the reviewer's, "col" the
collector's; "eve" has a key and no trust.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from prereg.codec.canonical import digest, dump_file
from prereg.codec.convert import to_json
from prereg.model.law import Crashed, Outcome, Valued
from prereg.model.plan import Shard, plan
from prereg.model.record import Counters, Record, ShardMeta
from prereg.model.tree import TreeMeta
from prereg.seal.build import SealResult, seal_study
from prereg.seal.finish import sign_head_and_commit
from prereg.seal.keys import SigningKey, generate_key, load_key
from prereg.seal.records import Encoded, encode_shard
from prereg.seal.trust import add_signer
from prereg.seal.verify import verify_study
from prereg.store.files import write_whole
from prereg.store.layout import StudyPaths, study_paths
from prereg.store.ledger import LedgerWriter

ENVIRONMENTS = {"plain": digest(b"the environment of the coin")}
PEOPLE = {"ada": "author", "rex": "reviewer", "col": "collector", "eve": None}
SEALED_AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)

COIN = '''\
import hashlib
import json
import sys


def flip(arm, bias, seed, row):
    """One draw: heads, tails, a number, or None for a crash of the whole request."""
    if hashlib.sha256(f"crash {arm} {seed}".encode()).digest()[0] < 8:
        return None
    byte = hashlib.sha256(f"{arm} {seed} {row}".encode()).digest()[0]
    if byte > 250:
        return byte / 2
    return "heads" if byte < bias + (40 if arm == "new" else 0) else "tails"


if __name__ == "__main__":
    arm, bias, seed, rows = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    values = [flip(arm, bias, seed, row) for row in range(rows)]
    if None in values:
        sys.exit(3)
    for value in values:
        print(json.dumps({"value": value}))
'''

BIAS = {"fair": 128, "loaded": 60}


def make_study(
    tmp_path: Path,
    *,
    study: str = "coin",
    draws: int = 12,
    rows: int = 2,
    shard_requests: int = 3,
    first_seed: int = 5_000,
    missing: str = "refuse",
    commit: bool = True,
) -> StudyPaths:
    """A checked, unsealed study in a git repository at `tmp_path/repo`; a second call adds a second study.

    `commit` commits the study's files before they are sealed.
    """
    repository = tmp_path / "repo"
    if not repository.exists():
        repository.mkdir(parents=True)
        git(repository, "init", "-q", "-b", "main")
        for name, role in PEOPLE.items():
            key = generate_key(tmp_path / "keys" / name)
            if role is not None:
                add_signer(repository, f"{name}@example.org", key.public_line, [role])  # type: ignore[list-item]
        git(repository, "add", "trust")
        git(repository, "commit", "-q", "-m", "Trust")
    root = repository / "studies" / study
    root.mkdir(parents=True)
    for name, value in study_files(study, draws, rows, shard_requests, first_seed, missing).items():
        (root / name).write_text(json.dumps(value, indent=1))
    (root / "coin.py").write_text(COIN)
    (root / "searches.jsonl").write_text("")
    (root / "NOTES.md").write_text("# A coin\n\nÜber nothing.\n", encoding="utf-8")
    (root / ".gitattributes").write_text("* -text\n")
    if commit:
        git(repository, "add", "studies")
        git(repository, "commit", "-q", "-m", "Draft")
    return study_paths(root)


def study_files(
    study: str, draws: int, rows: int, shard_requests: int, first_seed: int, missing: str
) -> dict[str, Any]:
    """The five authored files as JSON values."""
    requests = draws // rows
    sampling = {"draws": draws, "rows": rows, "shard_requests": shard_requests}
    units = [f"main.{c}.{arm}" for c in BIAS for arm in ("old", "new")]
    protocol = {
        "schema": "prereg/protocol/v1",
        "study": study,
        "title": "A coin",
        "authors": [{"name": "Ada", "principal": "ada@example.org"}],
        "question": "Does the new coin fall otherwise?",
        "template": "two-arm",
        "models": {},
        "prompts": {},
        "arms": [
            {"id": "old", "role": "reference", "speculation": False},
            {"id": "new", "role": "test", "speculation": False},
        ],
        "configurations": [
            {
                "id": name,
                "role": "probe",
                "about": f"a bias of {bias}",
                "build": "plain",
                "adapter": "command",
                "model": None,
                "prompt": None,
                "horizon": None,
                "features": {},
                "drafter": None,
                "predicates": [],
                "command": ["{python}", "coin.py", "{arm}", str(bias), "{seed}", "{rows}"],
            }
            for name, bias in BIAS.items()
        ],
        "stages": [{"id": "main", "purpose": "discovery", "configurations": list(BIAS)}],
        "sampling": {"old": sampling, "new": sampling},
        "alpha": 0.05,
        "decision": {"rule": "event-gap", "threshold": 0.01, "calibration_allowance": None},
        "missing": missing,
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
        "power": {"gap": 0.5, "witness": 0.5, "target": 0.5},
    }
    events = [
        {"id": "heads", "kind": "value", "equals": "heads"},
        {"id": "tails", "kind": "outcome", "outcome": {"value": "tails"}},
        {"id": "rest", "kind": "other"},
        {"id": "crashed", "kind": "crash"},
    ]
    return {
        "protocol.json": protocol,
        "seeds.json": {
            "schema": "prereg/seeds/v1",
            "study": study,
            "blocks": [
                {
                    "id": unit.replace(".", "-"),
                    "role": "discovery",
                    "unit": unit,
                    "first": str(first_seed + i * requests),
                    "end": str(first_seed + (i + 1) * requests),
                }
                for i, unit in enumerate(units)
            ],
        },
        "events.json": {
            "schema": "prereg/events/v1",
            "study": study,
            "harness_sha256": None,
            "configurations": {name: {"reference": None, "events": events} for name in BIAS},
        },
        "predicates.json": {"schema": "prereg/predicates/v1", "study": study, "predicates": []},
        "predictions.json": {
            "schema": "prereg/predictions/v1",
            "study": study,
            "predictions": [
                {
                    "id": "fair-holds",
                    "statement": "The fair coin is not seen to differ.",
                    "claim": {"kind": "verdict", "configuration": "fair", "in": ["NOT_REJECTED"]},
                }
            ],
        },
    }


def signing_key(paths: StudyPaths, who: str = "ada") -> SigningKey:
    """The key of "ada" (author), "rex" (reviewer), "col" (collector) or "eve" (nobody)."""
    return load_key(paths.repository.parent / "keys" / who)


def seal(paths: StudyPaths, *, who: str = "ada", now: datetime = SEALED_AT) -> SealResult:
    """Seal the study for real, as the author."""
    return seal_study(
        paths,
        key=signing_key(paths, who),
        principal=f"{who}@example.org",
        environments=ENVIRONMENTS,
        now=now,
    )


def outcome(bias: int, arm: str, seed: int, rows: int, row: int) -> Outcome:
    """What the coin's command gives for one draw, as the harness would record it."""
    scope: dict[str, Any] = {"__name__": "coin"}
    exec(compile(COIN, "coin.py", "exec"), scope)
    values = [scope["flip"](arm, bias, str(seed), r) for r in range(rows)]
    return Crashed(crash="ExitStatus") if None in values else Valued(value=values[row])


def records_of(seal_digest: str, shard: Shard) -> list[Record]:
    """The records of one shard, by the plan and the coin."""
    bias = BIAS[shard.unit.configuration]
    return [
        Record(
            seal=seal_digest,
            unit=shard.unit.id,
            shard=shard.index,
            attempt=1,
            draw=shard.first_draw + i * shard.rows + row,
            seed=str(seed),
            row=row,
            outcome=outcome(bias, shard.unit.arm, seed, shard.rows, row),
            counters=Counters(proposals=0, verifications=0, accepted=0),
        )
        for i, seed in enumerate(shard.seeds())
        for row in range(shard.rows)
    ]


def shard_meta(
    study: str,
    seal_digest: str,
    shard: Shard,
    encoded: Encoded,
    draws: int,
    *,
    attempt: int = 1,
    times: tuple[str, str] = ("2026-03-01T12:00:01.000000+00:00", "2026-03-01T12:00:02.000000+00:00"),
    tree: TreeMeta | None = None,
) -> ShardMeta:
    """The meta of a stored shard of so many lines, started and ended at these times."""
    return ShardMeta(
        study=study,
        seal=seal_digest,
        unit=shard.unit.id,
        shard=shard.index,
        attempt=attempt,
        first_seed=str(shard.first_seed),
        requests=shard.requests,
        rows=shard.rows,
        draws=draws,
        records_sha256=encoded.records_sha256,
        records_size=encoded.records_size,
        lines_sha256=encoded.lines_sha256,
        lines_size=encoded.lines_size,
        environment=ENVIRONMENTS["plain"],
        network="not-cut",
        started=times[0],
        ended=times[1],
        tree=tree,
    )


def store_shard(writer: LedgerWriter, study: str, seal_digest: str, shard: Shard, who: str) -> None:
    """Write one shard's two files and its ledger line."""
    unit, paths = shard.unit.id, writer.paths
    encoded = encode_shard(records_of(seal_digest, shard))
    sealed = next(e.time for e in reversed(writer.entries) if e.type in ("sealed", "amended"))
    meta = shard_meta(study, seal_digest, shard, encoded, shard.draws, times=(sealed, sealed))
    meta_bytes = dump_file(to_json(meta))
    write_whole(paths.shard_records(unit, shard.index), encoded.data)
    write_whole(paths.shard_meta(unit, shard.index), meta_bytes)
    body = {
        "unit": unit,
        "shard": shard.index,
        "attempt": 1,
        "records_sha256": encoded.records_sha256,
        "records_size": encoded.records_size,
        "meta_sha256": digest(meta_bytes),
        "draws": shard.draws,
    }
    writer.append("shard-stored", body, f"{who}@example.org")


def fabricate_records(
    paths: StudyPaths,
    *,
    invalid: Mapping[str, str] | None = None,
    skip: Collection[tuple[str, int]] = (),
    who: str = "col",
    end: bool = True,
) -> str:
    """Collect a sealed study without running anything; returns the commit.

    `invalid` are units to be lost, with the reason; `skip` are (unit, shard) not to be stored, which makes
    the collection incomplete. Without `end` there is no `collection-ended` entry.
    """
    verified = verify_study(paths, need="sealed")
    actor = f"{who}@example.org"
    lost = dict(invalid or {})
    shards = plan(verified.study.protocol, verified.study.seeds)
    todo = [s for s in shards if s.unit.id not in lost and (s.unit.id, s.index) not in skip]
    with LedgerWriter.open(paths) as writer:
        started = {
            "seal": verified.seal,
            "attempt": 1,
            "environments": ENVIRONMENTS,
            "workers": 1,
            "network": "not-cut",
            "network_reason": "a test",
        }
        writer.append("collection-started", started, actor)
        for shard in todo:
            store_shard(writer, verified.manifest.study, verified.seal, shard, who)
        for unit, reason in lost.items():
            writer.append("unit-invalid", {"unit": unit, "attempt": 1, "reason": reason}, actor)
        if end:
            body = {
                "seal": verified.seal,
                "complete": not skip,
                "stored": len(todo),
                "invalid": sorted(lost),
            }
            writer.append("collection-ended", body, actor)
    return sign_head_and_commit(
        paths,
        key=signing_key(paths, who),
        principal=actor,
        message=f"Collect study {verified.manifest.study}",
        touched=[paths.records] if todo else [],
    )


def copy_repository(paths: StudyPaths, to: Path) -> StudyPaths:
    """A copy of the whole repository and its keys, to be tampered with."""
    shutil.copytree(paths.repository.parent, to, symlinks=True)
    return StudyPaths(root=to / paths.repository.name / "studies" / paths.name)


def git(repository: Path, *arguments: str) -> str:
    """Run git with a fixed identity and nothing inherited."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    for role in ("AUTHOR", "COMMITTER"):
        env |= {f"GIT_{role}_NAME": "Test", f"GIT_{role}_EMAIL": "test@example.org"}
    env |= {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
    done = subprocess.run(
        ["git", *arguments], cwd=repository, env=env, check=True, capture_output=True, text=True
    )
    return done.stdout
