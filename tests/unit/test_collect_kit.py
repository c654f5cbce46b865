"""What the tests of collection share: a sealed study of a command of its own, in a repository with keys."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from prereg.collect.environments import fingerprints
from prereg.collect.executors.base import Failed, Finished
from prereg.collect.executors.local import LocalExecutor
from prereg.collect.progress import Cost
from prereg.collect.runner import CollectResult, collect_study
from prereg.collect.runtime import build_environment
from prereg.seal.build import seal_study
from prereg.seal.keys import SigningKey, generate_key
from prereg.seal.trust import add_signer
from prereg.seal.verify import verify_report
from prereg.store.layout import StudyPaths, distribution_root
from prereg.store.ledger import read_ledger
from tests.unit.silent import Silent

AUTHOR = "ada@example.org"

SIMULATE = """import json, sys
arm, seed, rows = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
for row in range(rows):
    print(json.dumps({"value": f"{arm}-{(seed * 31 + row) % 7}"}))
"""


@dataclass(kw_only=True)
class Desk(Silent):
    """A repository, its key, and what collection said."""

    repository: Path
    key: SigningKey
    key_file: Path
    notes: list[str] = field(default_factory=list)
    advanced: int = 0
    worked: float = 0.0
    begun: tuple[int, int, Cost] | None = None

    def note(self, text: str) -> None:
        self.notes.append(text)

    def begin(self, total: int, done: int, cost: Cost) -> None:
        self.begun = (total, done, cost)

    def advance(self, draws: int, work: float = 0.0) -> None:
        self.advanced += draws
        self.worked += work

    def paths(self, study: str) -> StudyPaths:
        return StudyPaths(root=self.repository / "studies" / study)

    def collect(self, study: str = "toy", workers: int = 2, executor: Any = LocalExecutor) -> CollectResult:
        return collect_study(
            self.paths(study),
            key=self.key,
            principal=AUTHOR,
            progress=self,
            workers=workers,
            executor=executor,
        )


def make_desk(folder: Path) -> Desk:
    repository = folder / "repository"
    (repository / "studies").mkdir(parents=True)
    git(repository, "init", "-q", "-b", "main")
    key_file = folder / "keys" / "ada"
    key = generate_key(key_file)
    add_signer(repository, AUTHOR, key.public_line, ["author", "collector"])
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "Trust")
    return Desk(repository=repository, key=key, key_file=key_file)


def fresh_desk(folder: Path, factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A desk whose builds are shared by the whole test run, and whose temporary files stay in its folder."""
    monkeypatch.setenv("PREREG_CACHE", str(factory.getbasetemp() / "prereg-cache"))
    scratch = folder / "tmp"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    build_environment("plain", Silent())
    return make_desk(folder)


def git(repository: Path, *argv: str) -> str:
    who = ["-c", "user.name=T", "-c", "user.email=t@example.org"]
    return subprocess.run(
        ["git", *who, *argv], cwd=repository, check=True, capture_output=True, text=True
    ).stdout


def protocol(study: str, **changes: Any) -> dict[str, Any]:
    """A study of two configurations; each unit has 5 shards, the last a short one."""
    value: dict[str, Any] = {
        "schema": "prereg/protocol/v1",
        "study": study,
        "title": "Toy",
        "authors": [{"name": "Ada", "principal": AUTHOR}],
        "question": "Do the two arms differ?",
        "template": "two-arm",
        "models": {},
        "prompts": {},
        "arms": [
            {"id": "a", "role": "reference", "speculation": False},
            {"id": "b", "role": "test", "speculation": False},
        ],
        "configurations": [configuration("one"), configuration("two")],
        "stages": [{"id": "main", "purpose": "discovery", "configurations": ["one", "two"]}],
        "sampling": {arm: {"draws": 28, "rows": 2, "shard_requests": 3} for arm in "ab"},
        "alpha": 0.05,
        "decision": {"rule": "event-gap", "threshold": 0.01, "calibration_allowance": None},
        "missing": "refuse",
        "stopping": {"rule": "fixed"},
        "attempts": 1,
        "ceilings": {
            "study_seconds": 600,
            "unit_seconds": 300,
            "request_seconds": 20,
            "on_ceiling": "INVALID",
        },
        "exclusions": [],
        "runtime": "venv",
        "power": {"gap": 0.1, "witness": 0.1, "target": 0.8},
    }
    value.update(changes)
    if "configurations" in changes:
        value["stages"][0]["configurations"] = [c["id"] for c in changes["configurations"]]
    return value


def configuration(name: str, command: list[str] | None = None) -> dict[str, Any]:
    return {
        "id": name,
        "role": "probe",
        "about": "A toy",
        "build": "plain",
        "adapter": "command",
        "model": None,
        "prompt": None,
        "horizon": None,
        "features": {},
        "drafter": None,
        "predicates": [],
        "command": command or ["{python}", "simulate.py", "{arm}", "{seed}", "{rows}"],
    }


def make_study(
    desk: Desk,
    study: str = "toy",
    *,
    first_seed: int = 5_000_000,
    script: str = SIMULATE,
    seal: bool = True,
    code: Mapping[str, str] | None = None,
    **changes: Any,
) -> StudyPaths:
    """Write a study, and seal it with the environments that are built."""
    paths = desk.paths(study)
    paths.root.mkdir()
    plan = protocol(study, **changes)
    blocks, at = [], first_seed
    for stage in plan["stages"]:
        for name in stage["configurations"]:
            for arm in plan["arms"]:
                end = at + plan["sampling"][arm["id"]]["draws"] // rows_of(plan, arm["id"])
                unit = f"{stage['id']}.{name}.{arm['id']}"
                blocks.append(
                    {
                        "id": f"{name}-{arm['id']}",
                        "role": "discovery",
                        "unit": unit,
                        "first": str(at),
                        "end": str(end),
                    }
                )
                at = end
    event = {"kind": "value", "id": "zero", "equals": "a-0"}
    families = {c["id"]: {"reference": None, "events": [event]} for c in plan["configurations"]}
    files = {
        "protocol.json": plan,
        "seeds.json": {"schema": "prereg/seeds/v1", "study": study, "blocks": blocks},
        "events.json": {
            "schema": "prereg/events/v1",
            "study": study,
            "harness_sha256": None,
            "configurations": families,
        },
        "predicates.json": {"schema": "prereg/predicates/v1", "study": study, "predicates": []},
        "predictions.json": {"schema": "prereg/predictions/v1", "study": study, "predictions": []},
    }
    for name, value in files.items():
        (paths.root / name).write_text(json.dumps(value, indent=1))
    (paths.root / "simulate.py").write_text(script)
    (paths.root / "NOTES.md").write_text("A toy study.\n")
    (paths.root / "searches.jsonl").write_text("")
    if seal:
        builds = {c["build"] for c in plan["configurations"]}
        seal_study(paths, key=desk.key, principal=AUTHOR, environments=fingerprints(builds))
    return paths


def rows_of(plan: Mapping[str, Any], arm: str) -> int:
    """Draws of one request of an arm, whose build is the only one."""
    sampling = plan["sampling"][arm]
    rows: int = sampling.get("builds", {}).get("plain", sampling)["rows"]
    return rows


def draws_of(paths: StudyPaths) -> dict[str, list[tuple[int, str, int]]]:
    """Draw, seed and row of every record that the ledger holds of a unit's last attempt, by unit."""
    stored = [e.body for e in read_ledger(paths.ledger.read_bytes()) if e.type == "shard-stored"]
    last = {
        unit: max(b["attempt"] for b in stored if b["unit"] == unit) for unit in {b["unit"] for b in stored}
    }
    found: dict[str, list[tuple[int, str, int]]] = {}
    for body in stored:
        unit, shard, attempt = body["unit"], body["shard"], body["attempt"]
        if attempt != last[unit]:
            continue
        for line in gzip.decompress(paths.shard_records(unit, shard, attempt).read_bytes()).splitlines():
            record = json.loads(line)
            found.setdefault(unit, []).append((record["draw"], record["seed"], record["row"]))
    return {unit: sorted(draws) for unit, draws in found.items()}


def expected_draws(paths: StudyPaths) -> dict[str, list[tuple[int, str, int]]]:
    """What the sealed plan asks for."""
    plan = json.loads((paths.root / "protocol.json").read_text())
    blocks = json.loads((paths.root / "seeds.json").read_text())["blocks"]
    out = {}
    for block in blocks:
        rows = rows_of(plan, block["unit"].split(".")[2])
        first, end = int(block["first"]), int(block["end"])
        out[block["unit"]] = [
            ((seed - first) * rows + row, str(seed), row) for seed in range(first, end) for row in range(rows)
        ]
    return out


def types_of(paths: StudyPaths) -> list[str]:
    return [entry.type for entry in read_ledger(paths.ledger.read_bytes())]


def check_whole(paths: StudyPaths) -> None:
    """Every sealed draw once, everything verified, committed and signed."""
    assert draws_of(paths) == expected_draws(paths)
    for step in verify_report(paths):
        assert step.status != "failed", step
    assert git(paths.repository, "status", "--porcelain") == ""


def body_of(paths: StudyPaths, type_: str) -> dict[str, Any]:
    return [e.body for e in read_ledger(paths.ledger.read_bytes()) if e.type == type_][-1]


class StopAfter(LocalExecutor):
    """Raises what Ctrl-C does, after some results."""

    shards = 3

    def run(self, *args: Any, **kwargs: Any) -> Generator[Finished | Failed, None, None]:
        for number, result in enumerate(super().run(*args, **kwargs)):
            if number == self.shards:
                signal.raise_signal(signal.SIGINT)
            yield result


def stop_after(desk: Desk, shards: int) -> None:
    result = desk.collect(executor=type("Stop", (StopAfter,), {"shards": shards}))
    assert not result.complete


def collect_process(
    desk: Desk, study: str = "toy", *, before: str = "", workers: int = 2, **env: str
) -> subprocess.Popen[str]:
    """A `collect` of its own process, which can be killed."""
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from prereg.collect.progress import Lines\n"
        "from prereg.collect.runner import collect_study\n"
        "from prereg.errors import PreregError\n"
        "from prereg.seal.keys import load_key\n"
        "from prereg.store.layout import study_paths\n"
        f"{before}\n"
        "try:\n"
        f"    result = collect_study(study_paths(Path({str(desk.paths(study).root)!r})),\n"
        f"        key=load_key(Path({str(desk.key_file)!r})), principal={AUTHOR!r},\n"
        f"        progress=Lines(sys.stderr, every=0), workers={workers})\n"
        "except PreregError as error:\n"
        "    print(error, error.next_step, file=sys.stderr)\n"
        "    sys.exit(error.exit_code)\n"
        "sys.exit(result.exit_code)\n"
    )
    return subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=distribution_root(),
        env={**os.environ, **env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
