"""A whole tiny study, written from docs/formats.md by hand: no code of prereg, and none of the auditor.

It has its own keys, repository, ledger, records, and a decisions file computed the slow way with scipy.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from audits_slow import EVENTS, LAW, A, B, C, D, Json, canon, slow_decision, slow_status

ROOT = Path(__file__).resolve().parents[2]


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def machine(value: Any) -> bytes:
    return canon(value) + b"\n"


def clock() -> Callable[[], str]:
    """Moments, one second apart."""
    ticks = iter(range(100_000))

    def now() -> str:
        n = next(ticks)
        return f"2026-11-29T{10 + n // 3600:02d}:{n // 60 % 60:02d}:{n % 60:02d}.000001+00:00"

    return now


def run(*command: str, cwd: Path | None = None, feed: bytes | None = None) -> bytes:
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_GLOBAL": "/dev/null"}
    env |= {
        f"GIT_{who}_{what}": "t@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    return subprocess.run(command, cwd=cwd, input=feed, env=env, check=True, capture_output=True).stdout


def make_key(folder: Path, name: str, kind: str = "ed25519") -> Path:
    path = folder / name
    run("ssh-keygen", "-q", "-t", kind, "-N", "", "-C", name, "-f", str(path))
    return path


def sign(key: Path, data: bytes, namespace: str) -> bytes:
    return run("ssh-keygen", "-q", "-Y", "sign", "-f", str(key), "-n", namespace, feed=data)


def public(key: Path) -> str:
    return " ".join(key.with_name(key.name + ".pub").read_text().split()[:2])


def fingerprint(key: Path) -> str:
    return run("ssh-keygen", "-lf", str(key) + ".pub").decode().split()[1]


@dataclass
class Plan:
    """What is to be built; every field may be changed by a test."""

    study: str = "tiny"
    rule: str = "channel-S"
    missing: str = "refuse"
    draws: int = 40
    rows: int = 4
    shard_requests: int = 4
    first_seed: int = 1000
    threshold: float = 0.01
    configurations: tuple[str, ...] = ("control", "probe")
    events: list[Json] = field(default_factory=lambda: list(EVENTS))
    law: list[Json] | None = field(default_factory=lambda: list(LAW))
    allowance: float | None = 0.005
    off: Callable[[str, int], Json] = lambda c, j: [A, B, A, C][j % 4]
    on: Callable[[str, int], Json] = lambda c, j: D if c == "probe" and j % 2 else [A, B, A, C][j % 4]
    proposals: Callable[[str], int] = lambda c: 3
    invalid: tuple[str, ...] = ()
    """Units that are INVALID."""
    left_out: tuple[str, ...] = ()
    """Units never collected: the collection ends incomplete."""
    predictions: list[Json] | None = None
    upto: str = "audited"
    """The last verb: sealed, collected, analysed or audited."""
    edit: Callable[[str, Any], Any] = lambda name, value: value
    """Changes an authored or machine value before it is written (and bound by what follows)."""
    no_seal_commit: bool = False
    """Commit the seal only together with the records."""


class Builder:
    """Builds a study as the verbs of a lifecycle would leave it."""

    def __init__(self, root: Path, keys: Path, plan: Plan) -> None:
        self.root, self.keys, self.plan = root, keys, plan
        self.folder = root / "studies" / plan.study
        self.now = clock()
        self.lines: list[bytes] = []
        self.stage, self.arms = "main", ("off", "on")
        self.drawn: dict[str, list[Json]] = {}
        self.counted: dict[str, list[int]] = {}

    def write(self, path: str, data: bytes) -> bytes:
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        return data

    def commit(self, message: str) -> None:
        run("git", "add", "-A", cwd=self.root)
        run("git", "commit", "-q", "--allow-empty", "-m", message, cwd=self.root)

    def build(self) -> Path:
        verbs = [self.seal, self.collect, self.analyse, self.audit]
        last = ["sealed", "collected", "analysed", "audited"].index(self.plan.upto)
        self.start()
        for verb in verbs[: last + 1]:
            verb()
        return self.folder

    def start(self) -> None:
        if not (self.root / ".git").exists():
            self.root.mkdir(parents=True, exist_ok=True)
            run("git", "init", "-q", "-b", "main", cwd=self.root)
            trust = self.root / "trust"
            trust.mkdir()
            (trust / "allowed_signers").write_text(
                "# who may sign\n"
                f'ann@example.org namespaces="prereg-seal,prereg-ledger" {public(self.keys / "author")} Ann\n'
                f"rev@example.org,rev2@example.org {public(self.keys / 'reviewer')}\n"
                f"col@example.org {public(self.keys / 'collector')}\n"
            )
            roles = {"ann@example.org": ["author"], "rev@example.org": ["reviewer"]}
            roles["col@example.org"] = ["collector"]
            (trust / "roles.json").write_text(json.dumps({"schema": "prereg/roles/v1", "roles": roles}))
            (self.root / "README").write_text("a repository of studies\n")
            self.commit("begin")

    def authored(self) -> dict[str, Json]:
        p = self.plan
        conformance = p.rule == "channel-S"
        drafter = {"kind": "prompt-lookup", "max_ngram": 2, "max_tokens": 2}
        sampling = {"draws": p.draws, "rows": p.rows, "shard_requests": p.shard_requests}
        units = [f"{self.stage}.{c}.{arm}" for c in p.configurations for arm in self.arms]
        requests = p.draws // p.rows
        protocol = {
            "schema": "prereg/protocol/v1", "study": p.study, "title": "Tiny", "question": "Does it differ?",
            "authors": [{"name": "Ann", "principal": "ann@example.org"}],
            "template": "conformance" if conformance else "two-arm", "models": {}, "prompts": {"p": [1, 2]},
            "arms": [
                {"id": "off", "role": "reference", "speculation": False},
                {"id": "on", "role": "test", "speculation": conformance},
            ],
            "configurations": [
                {
                    "id": c, "role": "probe", "about": "x", "build": "b-1", "adapter": "command",
                    "model": None, "prompt": "p", "horizon": 3, "features": {"any": [1.5]}, "command": ["x"],
                    "drafter": drafter if conformance else None,
                    "predicates": ["horizon", "letters"] if conformance else [],
                }
                for c in p.configurations
            ],
            "stages": [
                {"id": self.stage, "purpose": "discovery", "configurations": list(p.configurations)}
            ],
            "sampling": dict.fromkeys(self.arms, sampling),
            "alpha": 0.05,
            "decision": {"rule": p.rule, "threshold": p.threshold, "calibration_allowance": p.allowance},
            "missing": p.missing, "stopping": {"rule": "fixed"}, "attempts": 1,
            "ceilings": {
                "study_seconds": 9, "unit_seconds": 9, "request_seconds": 9, "on_ceiling": "INVALID",
            },
            "exclusions": [], "runtime": "venv", "power": {"gap": 0.1, "witness": 0.1, "target": 0.8},
        }  # fmt: skip
        predictions = p.predictions
        if predictions is None:
            last = p.configurations[-1]
            predictions = [
                {
                    "id": "fails", "statement": "x",
                    "claim": {"kind": "verdict", "configuration": last, "in": ["FAILS"]},
                },
                {
                    "id": "few", "statement": "x",
                    "claim": {
                        "kind": "count", "configurations": list(p.configurations), "verdict": "NOT_REJECTED",
                        "at_least": 1,
                    },
                },
            ]  # fmt: skip
        events = {c: {"reference": p.law, "events": p.events} for c in p.configurations}
        rules = [
            {"id": "horizon", "rule": {"kind": "max-tokens", "n": 3}},
            {"id": "letters", "rule": {"kind": "allowed-tokens", "tokens": [0, 1, 2, 3]}},
        ]
        return {
            "protocol.json": protocol,
            "seeds.json": {
                "schema": "prereg/seeds/v1", "study": p.study,
                "blocks": [
                    {
                        "id": f"block-{i}", "role": "discovery", "unit": unit,
                        "first": str(p.first_seed + i * requests),
                        "end": str(p.first_seed + (i + 1) * requests),
                    }
                    for i, unit in enumerate(units)
                ],
            },
            "events.json": {
                "schema": "prereg/events/v1", "study": p.study, "configurations": events,
                "harness_sha256": None if p.law is None else "a" * 64,
            },
            "predicates.json": {
                "schema": "prereg/predicates/v1", "study": p.study,
                "predicates": [{"statement": "x", "source": "y", **rule} for rule in rules],
            },
            "predictions.json": {
                "schema": "prereg/predictions/v1", "study": p.study, "predictions": predictions,
            },
        }  # fmt: skip

    def seal(self) -> None:
        self.files = {name: self.plan.edit(name, value) for name, value in self.authored().items()}
        for name, value in self.files.items():
            self.write(name, json.dumps(value, indent=1).encode())
        self.write("NOTES.md", b"# Notes\n")
        self.write("searches.jsonl", b"")
        self.write(".gitattributes", b"* -text\n")
        self.write("code/harness/run.py", b"print()\n")
        (self.folder / "code/harness/run.py").chmod(0o755)
        shutil.copytree(ROOT / "schemas" / "v1", self.folder / "code" / "schemas" / "v1")
        self.plan.edit("code", self.folder / "code")
        listed = []
        for path in sorted(self.folder.rglob("*")):
            if path.is_file():
                data = path.read_bytes()
                mode = "100755" if path.stat().st_mode & 0o100 else "100644"
                name = path.relative_to(self.folder).as_posix()
                listed.append({"path": name, "size": len(data), "mode": mode, "sha256": sha(data)})
        listed.sort(key=lambda item: str(item["path"]))
        manifest = {
            "schema": "prereg/manifest/v1", "study": self.plan.study, "created": self.now(), "rules": 1,
            "commit": run("git", "rev-parse", "HEAD", cwd=self.root).decode().strip(),
            "author": {"principal": "ann@example.org", "key": fingerprint(self.keys / "author")},
            "environments": {"b-1": "e" * 64}, "files": listed,
        }  # fmt: skip
        self.manifest = self.plan.edit("manifest", manifest)
        data = self.write("seal/manifest.json", machine(self.manifest))
        self.digest = sha(data)
        signature = self.write("seal/manifest.json.sig", sign(self.keys / "author", data, "prereg-seal"))
        sums = "".join(f"{item['sha256']}  {item['path']}\n" for item in self.manifest["files"])
        self.write("seal/SHA256SUMS", f"{sums}{self.digest}  seal/manifest.json\n".encode())
        body = {"seal": self.digest, "signature_sha256": sha(signature), "commit": self.manifest["commit"]}
        self.entry("sealed", "ann@example.org", body)
        self.head("author")
        if not self.plan.no_seal_commit:
            self.commit("seal")

    def entry(self, kind: str, actor: str, body: Json) -> None:
        body = self.plan.edit(f"{kind} body", body)
        value = {
            "seq": len(self.lines) + 1, "time": self.now(), "type": kind, "actor": actor, "body": body,
            "body_sha256": sha(canon(body)), "prev": sha(self.lines[-1]) if self.lines else "0" * 64,
        }  # fmt: skip
        self.lines.append(machine(self.plan.edit(kind, value)))
        self.write("ledger.jsonl", b"".join(self.lines))

    def head(self, key: str) -> None:
        last = json.loads(self.lines[-1])
        value = {
            "schema": "prereg/head/v1", "study": self.plan.study, "seq": last["seq"], "time": last["time"],
            "head": sha(self.lines[-1]), "actor": last["actor"],
        }  # fmt: skip
        data = self.write("ledger.head.json", machine(self.plan.edit("head", value)))
        self.write("ledger.head.json.sig", sign(self.keys / key, data, "prereg-ledger"))

    def collect(self) -> None:
        p = self.plan
        body: Json = {"seal": self.digest, "attempt": 1, "environments": {"b-1": "e" * 64}, "workers": 1}
        self.entry("collection-started", "col@example.org", body | {"network": "cut", "network_reason": None})
        stored = 0
        for c in p.configurations:
            for arm in self.arms:
                unit = f"{self.stage}.{c}.{arm}"
                if unit in p.left_out:
                    continue
                if unit in p.invalid:
                    body = {"unit": unit, "attempt": 1, "reason": "the worker died"}
                    self.entry("unit-invalid", "col@example.org", body)
                    continue
                for shard, lines in enumerate(self.shards(c, arm, unit)):
                    self.store(unit, shard, lines)
                    stored += 1
        body = {"seal": self.digest, "complete": not p.left_out, "stored": stored, "invalid": list(p.invalid)}
        self.entry("collection-ended", "col@example.org", body)
        self.head("collector")
        self.commit("collect")

    def shards(self, c: str, arm: str, unit: str) -> Iterator[list[Json]]:
        p = self.plan
        first = next(int(b["first"]) for b in self.files["seeds.json"]["blocks"] if b["unit"] == unit)
        lines: list[Json] = []
        self.drawn[unit] = []
        sums = [0, 0, 0]
        for request in range(p.draws // p.rows):
            for row in range(p.rows):
                draw = request * p.rows + row
                outcome = (p.on if arm == "on" else p.off)(c, draw)
                n = p.proposals(c) if arm == "on" and p.rule == "channel-S" else 0
                counters = {"proposals": n, "verifications": min(n, 1), "accepted": min(n, 2)}
                record = {
                    "seal": self.digest, "unit": unit, "shard": request // p.shard_requests, "attempt": 1,
                    "draw": draw, "seed": str(first + request), "row": row, "outcome": outcome,
                    "counters": counters,
                }  # fmt: skip
                record = p.edit("record", record)
                self.drawn[unit].append(record["outcome"])
                for i, key in enumerate(("proposals", "verifications", "accepted")):
                    sums[i] += record["counters"][key]
                lines.append(record)
        self.counted[unit] = sums
        size = p.rows * p.shard_requests
        for at in range(0, len(lines), size):
            yield lines[at : at + size]

    def store(self, unit: str, shard: int, records: list[Json]) -> None:
        lines = self.plan.edit("lines", b"".join(map(machine, records)))
        packed = self.plan.edit("packed", pack(lines))
        stem = f"records/{unit}/{shard:05d}"
        p = self.plan
        planned = len(records) // p.rows
        first = next(int(b["first"]) for b in self.files["seeds.json"]["blocks"] if b["unit"] == unit)
        meta = {
            "schema": "prereg/shard-meta/v1", "study": p.study, "seal": self.digest, "unit": unit,
            "shard": shard, "attempt": 1, "first_seed": str(first + shard * p.shard_requests),
            "requests": planned,
            "rows": p.rows, "draws": len(records), "records_sha256": sha(packed), "records_size": len(packed),
            "lines_sha256": sha(lines), "lines_size": len(lines), "environment": "e" * 64, "network": "cut",
            "started": self.now(), "ended": self.now(),
        }  # fmt: skip
        self.write(f"{stem}.jsonl.gz", packed)
        data = self.write(f"{stem}.meta.json", machine(p.edit("meta", meta)))
        body = {
            "unit": unit, "shard": shard, "attempt": 1, "records_sha256": sha(packed), "draws": len(records),
            "records_size": len(packed), "meta_sha256": sha(data),
        }  # fmt: skip
        self.entry("shard-stored", "col@example.org", body)

    def analyse(self) -> None:
        data = self.write("analysis/decisions.json", machine(self.plan.edit("decisions", self.decisions())))
        self.entry("analysis", "ann@example.org", {"seal": self.digest, "decisions_sha256": sha(data)})
        self.head("author")
        self.commit("analyse")

    def audit(self) -> None:
        report = {
            "schema": "prereg/audit-report/v1", "study": self.plan.study, "seal": self.digest,
            "ledger_head": sha(self.lines[-1]), "audited_at": self.now(), "history": "checked",
            "auditor": {"rules": 1, "code_sha256": "c" * 64, "python": "3.11.0"}, "result": "AGREES",
            "steps": [{"number": 1, "name": "folder", "status": "ok", "applied": 1, "detail": ""}],
            "configurations": [], "predictions": [],
        }  # fmt: skip
        data = self.write("audit/report.json", machine(self.plan.edit("report", report)))
        signature = self.write("audit/report.json.sig", sign(self.keys / "reviewer", data, "prereg-audit"))
        body = {"seal": self.digest, "report_sha256": sha(data), "signature_sha256": sha(signature)}
        self.entry("audit", "rev@example.org", body | {"result": "AGREES"})
        self.head("reviewer")
        self.commit("audit")

    def decision(self, c: str) -> Json:
        units = [f"{self.stage}.{c}.{arm}" for arm in self.arms]
        off, on = (self.drawn.get(unit) for unit in units)
        sums: list[int | None] = [*self.counted.get(units[1], [None, None, None])]
        return slow_decision(self.plan, c, off, on, sums)

    def decisions(self) -> Json:
        """Section 10 to 12 the slow way: over draws one by one, with scipy's quantiles."""
        rows = [self.decision(c) for c in self.plan.configurations]
        verdicts = {row["id"]: row["verdict"] for row in rows}
        statuses = []
        for prediction in self.files["predictions.json"]["predictions"]:
            statuses.append({"id": prediction["id"], "status": slow_status(prediction["claim"], verdicts)})
        return {
            "schema": "prereg/decisions/v1", "study": self.plan.study, "seal": self.digest, "rules": 1,
            "alpha": 0.05, "m": len(rows), "configurations": rows, "predictions": statuses,
        }  # fmt: skip


def pack(lines: bytes, level: int = 6, mtime: int = 0) -> bytes:
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=buffer, compresslevel=level, mtime=mtime) as member:
        member.write(lines)
    return buffer.getvalue()
