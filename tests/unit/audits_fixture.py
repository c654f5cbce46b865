"""A whole tiny study, written from docs/formats.md by hand: no code of prereg, and none of the auditor.

It has its own keys, repository, ledger, records, and a decisions file computed the slow way with scipy.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from audits_plan import ARMS, MAIN, WALK, Plan, authored
from audits_slow import Json, canon, slow_decision, slow_status
from audits_slow_exact import slow_exact, slow_premise
from audits_slow_second import slow_exactly, slow_second
from audits_tools import ROOT, clock, fingerprint, machine, pack, public, run, sha, sign


class Builder:
    """Builds a study as the verbs of a lifecycle would leave it."""

    def __init__(self, root: Path, keys: Path, plan: Plan) -> None:
        self.root, self.keys, self.plan = root, keys, plan
        self.folder = root / "studies" / plan.study
        self.now = clock()
        self.attempt = 1
        """The attempt that is drawn; edition 3 alone has others."""
        self.lines: list[bytes] = []
        self.drawn: dict[str, list[Json]] = {}
        self.lines_of: dict[str, list[Json]] = {}
        """By unit: its records whole."""
        self.counted: dict[str, list[int]] = {}
        self.walked: dict[str, Json] = {}
        """By unit of the exact stage: its ``leaves`` and the ``meta`` of its tree."""

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

    def seal(self) -> None:
        self.files = {name: self.plan.edit(name, value) for name, value in authored(self.plan).items()}
        for name, value in self.files.items():
            self.write(name, json.dumps(value, indent=1).encode())
        self.write("NOTES.md", b"# Notes\n")
        self.write("searches.jsonl", b"")
        self.write(".gitattributes", b"* -text\n")
        self.write("code/harness/run.py", b"print()\n")
        (self.folder / "code/harness/run.py").chmod(0o755)
        shutil.copytree(ROOT / "schemas" / "v1", self.folder / "code" / "schemas" / "v1")
        self.plan.edit("code", self.folder / "code")
        self.bind("sealed")
        if not self.plan.no_seal_commit:
            self.commit("seal")

    def listed(self) -> list[Json]:
        """Every file that the manifest binds."""
        listed = []
        for path in self.folder.rglob("*"):
            name = path.relative_to(self.folder).as_posix()
            if path.is_file() and not name.startswith(("seal/", "ledger.")):
                data = path.read_bytes()
                mode = "100755" if path.stat().st_mode & 0o100 else "100644"
                listed.append({"path": name, "size": len(data), "mode": mode, "sha256": sha(data)})
        return sorted(listed, key=lambda item: str(item["path"]))

    def bind(self, kind: str, **more: Any) -> None:
        """Make a manifest of what is there, sign it, and enter it with ``more`` in the entry's body."""
        manifest = {
            "schema": "prereg/manifest/v1", "study": self.plan.study, "created": self.now(), "rules": 1,
            "commit": run("git", "rev-parse", "HEAD", cwd=self.root).decode().strip(),
            "author": {"principal": "ann@example.org", "key": fingerprint(self.keys / "author")},
            "environments": dict.fromkeys(self.plan.builds, "e" * 64), "files": self.listed(),
        }  # fmt: skip
        if "previous" in more:
            manifest["amends"] = more["previous"]
        self.manifest = self.plan.edit("manifest", manifest)
        data = self.write("seal/manifest.json", machine(self.manifest))
        self.digest = sha(data)
        signature = self.write("seal/manifest.json.sig", sign(self.keys / "author", data, "prereg-seal"))
        sums = "".join(f"{item['sha256']}  {item['path']}\n" for item in self.manifest["files"])
        self.write("seal/SHA256SUMS", f"{sums}{self.digest}  seal/manifest.json\n".encode())
        body = {"seal": self.digest, "signature_sha256": sha(signature), "commit": self.manifest["commit"]}
        self.entry(kind, "ann@example.org", body | more)
        self.head("author")

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
        body: Json = {"seal": self.digest, "attempt": 1, "workers": 1}
        body["environments"] = dict.fromkeys(p.builds, "e" * 64)
        self.entry("collection-started", "col@example.org", body | {"network": "cut", "network_reason": None})
        stored = 0
        for stage, c, arm in p.units:
            unit = f"{stage}.{c}.{arm}"
            if unit in p.left_out:
                continue
            if unit in p.invalid:
                body = {"unit": unit, "attempt": 1, "reason": "the worker died"}
                self.entry("unit-invalid", "col@example.org", body)
            elif stage == WALK:
                self.store(unit, 0, self.leaves(c, arm, unit), (1, 4), self.walked[unit]["meta"])
                stored += 1
            else:
                for shard, lines in enumerate(self.shards(c, arm, unit)):
                    self.store(unit, shard, lines, p.sizes(c, arm))
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
        rows, shard_requests = p.sizes(c, arm)
        for request in range(p.draws // rows):
            for row in range(rows):
                draw = request * rows + row
                outcome = (p.on if arm == "on" else p.off)(c, draw)
                n = p.proposals(c) if arm == "on" and p.rule != "event-gap" else 0
                counters = {"proposals": n, "verifications": min(n, 1), "accepted": min(n, 2)}
                record = {
                    "seal": self.digest, "unit": unit, "shard": request // shard_requests,
                    "attempt": self.attempt, "draw": draw, "seed": str(first + request), "row": row,
                    "outcome": outcome, "counters": counters,
                }  # fmt: skip
                if p.second and c in p.second.records:
                    record["record"] = p.second.record(c, arm, draw, outcome)
                record = p.edit("record", record)
                self.drawn[unit].append(record["outcome"])
                for i, key in enumerate(("proposals", "verifications", "accepted")):
                    sums[i] += record["counters"][key]
                lines.append(record)
        self.counted[unit], self.lines_of[unit] = sums, lines
        size = rows * shard_requests
        for at in range(0, len(lines), size):
            yield lines[at : at + size]

    def leaves(self, c: str, arm: str, unit: str) -> list[Json]:
        """The leaf lines of a unit of the exact stage."""
        tree = self.plan.trees(c, arm)
        said = {"seal": self.digest, "unit": unit, "shard": 0, "attempt": self.attempt}
        lines = [said | {"leaf": i} | leaf for i, leaf in enumerate(tree["leaves"])]
        lines = [self.plan.edit("leaf", line) for line in lines]
        self.walked[unit] = {"leaves": lines, "meta": self.plan.edit("tree", tree["meta"] | {"unit": unit})}
        self.walked[unit]["meta"].pop("unit", None)
        return lines

    def home(self, unit: str) -> str:
        """The folder of a unit's records in the present attempt."""
        return f"records/{unit}" + (f".attempt-{self.attempt}" if self.attempt > 1 else "")

    def store(
        self, unit: str, shard: int, records: list[Json], sizes: tuple[int, int], tree: Json | None = None
    ) -> None:
        """``sizes`` are the rows of a request and the requests of a shard."""
        lines = self.plan.edit("lines", b"".join(map(machine, records)))
        packed = self.plan.edit("packed", pack(lines))
        stem = f"{self.home(unit)}/{shard:05d}"
        p = self.plan
        rows = sizes[0]
        planned = len(records) // rows if tree is None else 4
        first = next(int(b["first"]) for b in self.files["seeds.json"]["blocks"] if b["unit"] == unit)
        meta = {
            "schema": "prereg/shard-meta/v1", "study": p.study, "seal": self.digest, "unit": unit,
            "shard": shard, "attempt": self.attempt, "first_seed": str(first + shard * sizes[1]),
            "requests": planned,
            "rows": rows, "draws": len(records), "records_sha256": sha(packed), "records_size": len(packed),
            "lines_sha256": sha(lines), "lines_size": len(lines), "environment": "e" * 64, "network": "cut",
            "started": self.now(), "ended": self.now(),
        }  # fmt: skip
        if tree is not None:
            meta["tree"] = tree
        self.write(f"{stem}.jsonl.gz", packed)
        data = self.write(f"{stem}.meta.json", machine(p.edit("meta", meta)))
        body = {
            "unit": unit, "shard": shard, "attempt": self.attempt, "records_sha256": sha(packed),
            "draws": len(records), "records_size": len(packed), "meta_sha256": sha(data),
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
        units = [f"{MAIN}.{c}.{arm}" for arm in ARMS]
        off, on = (self.drawn.get(unit) for unit in units)
        sums: list[int | None] = [*self.counted.get(units[1], [None, None, None])]
        row = slow_decision(self.plan, c, off, on, sums)
        if self.plan.second:
            row |= slow_second(self.plan, c, row, *(self.lines_of.get(unit) for unit in units))
        return row

    def exact(self) -> Json:
        """Section 14 the slow way."""
        p, rows, tests = self.plan, [], []
        for c in p.exact:
            trees = {arm: self.walked.get(f"{WALK}.{c}.{arm}") for arm in ARMS}
            rows.append(slow_exact(c, trees, p.tolerance, p.law, p.events_of(c)))
            if p.second and c in p.second.laws:
                rows[-1]["hypothesis"] = slow_exactly(p, c, rows[-1]["verdict"], trees)
            if c in p.tested and p.premise_alpha is not None:
                level = p.premise_alpha / (len(p.tested) * 4 * len(p.events_of(c)))
                draws = {arm: self.drawn.get(f"{MAIN}.{c}.{arm}") for arm in ARMS}
                tests.append(slow_premise(c, rows[-1]["verdict"], trees, draws, level, p.events_of(c)))
        premise = {"alpha": p.premise_alpha, "m": len(tests), "configurations": tests}
        said: Json = {"tolerance": p.tolerance, "configurations": rows}
        return said | {"premise": None if p.premise_alpha is None else premise}

    def decisions(self) -> Json:
        """Section 10 to 12 and 14 the slow way: over draws and leaves one by one."""
        p = self.plan
        rows = [self.decision(c) for c in p.drawn]
        extra = {"exact": self.exact()} if p.exact else {}
        verdicts = {"draws": {row["id"]: row["verdict"] for row in rows}}
        verdicts["exact"] = (
            {row["id"]: row["verdict"] for row in extra["exact"]["configurations"]} if extra else {}
        )
        for of, key in (("records", "verdict"), ("hypothesis", "status")):
            verdicts[of] = {row["id"]: row[of][key] for row in rows if of in row}
        statuses = []
        for prediction in self.files["predictions.json"]["predictions"]:
            claim = prediction["claim"]
            status = slow_status(claim, verdicts[claim.get("channel", "draws")])
            statuses.append({"id": prediction["id"], "status": status})
        return extra | {
            "schema": "prereg/decisions/v1", "study": p.study, "seal": self.digest, "rules": 1,
            "alpha": 0.05, "m": len(rows), "configurations": rows, "predictions": statuses,
        }  # fmt: skip
