"""The exact stage on Transformers 5.17.0 and llama-cpp-python 0.3.35: a study from its draft to its audit."""

from __future__ import annotations

import dataclasses
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from prereg.analyse.run import analyse_study
from prereg.audit.run import audit_study
from prereg.codec.convert import read_authored
from prereg.collect.environments import fingerprints
from prereg.collect.executors import crew
from prereg.collect.oracle import enumerate_references
from prereg.collect.rehearse import rehearse
from prereg.collect.runner import collect_study, journals_of
from prereg.collect.runtime import built, load_build
from prereg.draft.family import build_events, events_json
from prereg.draft.lint import check_study
from prereg.draft.scaffold import Blanks, draft_study, plan_seeds
from prereg.model.study import Protocol
from prereg.model.tree import UnitTree
from prereg.seal.build import seal_study
from prereg.seal.evidence import exact_trees
from prereg.seal.keys import SigningKey, generate_key
from prereg.seal.trust import add_signer
from prereg.seal.verify import verify_study
from prereg.store.harness import harness_digest
from prereg.store.layout import StudyPaths, distribution_root
from tests.engines import lcp_environment as lcp
from tests.unit.silent import Silent

pytestmark = pytest.mark.engines

AUTHOR, REVIEWER = "ada@example.org", "rex@example.org"
BUILD, LCP_BUILD = "hf-5.17.0", "lcp-0.3.35"


class Told(Silent):
    """What a collection said."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.leaves = 0

    def note(self, text: str) -> None:
        self.notes.append(text)

    def advance(self, draws: int, work: float = 0.0, leaves: int = 0) -> None:
        self.leaves += leaves


@dataclasses.dataclass(kw_only=True)
class Desk:
    """A drafted study in a repository, with an author's and a reviewer's key."""

    paths: StudyPaths
    key: SigningKey
    key_file: Path
    reviewer: SigningKey
    protocol: Protocol

    @property
    def builds(self) -> list[str]:
        return sorted({c.build for c in self.protocol.configurations})

    def check(self) -> Any:
        rates = {build: load_build(build).requests_per_second for build in self.builds}
        return check_study(self.paths, rates=rates, harness_sha256=harness_digest())

    def seal(self) -> None:
        seal_study(self.paths, key=self.key, principal=AUTHOR, environments=fingerprints(self.builds))

    def collect(self, workers: int = 2) -> Any:
        told = Told()
        result = collect_study(self.paths, key=self.key, principal=AUTHOR, progress=told, workers=workers)
        assert (result.complete, dict(result.invalid)) == (True, {}), told.notes
        return result

    def trees(self) -> dict[str, UnitTree]:
        return exact_trees(verify_study(self.paths))


def desk(folder: Path, change: Callable[[dict[str, Any]], None]) -> Desk:
    """The template `exact` with few draws and with `change`, and its laws, in a new repository."""
    repository = folder / "repository"
    repository.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", "-b", "main"], cwd=repository, check=True)
    key_file = folder / "keys" / "ada"
    key, reviewer = generate_key(key_file), generate_key(folder / "keys" / "rex")
    add_signer(repository, AUTHOR, key.public_line, ["author", "collector"])
    add_signer(repository, REVIEWER, reviewer.public_line, ["reviewer"])
    subprocess.run(["git", "add", "trust"], cwd=repository, check=True)
    who = ["-c", "user.name=A", "-c", f"user.email={AUTHOR}"]
    subprocess.run(["git", *who, "commit", "-q", "-m", "Trust"], cwd=repository, check=True)
    blanks = Blanks(title="T", question="Q?", author="Ada", principal=AUTHOR)
    paths = draft_study(repository / "studies" / "tiny", "exact", blanks, [])
    value: dict[str, Any] = json.loads(paths.protocol.read_bytes())
    value["sampling"] = {
        "off": {"draws": 400, "rows": 200, "shard_requests": 2},
        "on": {"draws": 400, "rows": 1, "shard_requests": 400},
    }
    value["power"]["target"] = 0.1
    change(value)
    paths.protocol.write_text(json.dumps(value))
    protocol = read_authored(paths.protocol.read_bytes(), "protocol", Protocol, where="protocol.json")
    (paths.root / "seeds.json").write_text(json.dumps(plan_seeds(protocol, 5_000_000)))
    laws = enumerate_references(protocol, Silent()).laws
    paths.events.write_text(json.dumps(events_json(build_events(protocol, laws, harness_digest()))))
    return Desk(paths=paths, key=key, key_file=key_file, reviewer=reviewer, protocol=protocol)


def only_walked(*names: str) -> Callable[[dict[str, Any]], None]:
    """Keep the exact stage alone, with these configurations."""

    def change(value: dict[str, Any]) -> None:
        value["configurations"] = [c for c in value["configurations"] if c["id"] in names]
        value["stages"] = [{**value["stages"][1], "configurations": list(names)}]
        value["sampling"] = {}
        value["decision"] = {"rule": "exact", "threshold": 0, "calibration_allowance": None}
        value["exact"]["premise_alpha"] = None

    return change


def predict(paths: StudyPaths, name: str, verdict: str, **more: str) -> None:
    """Predict the verdict on a configuration, and those on more of them."""
    claims = [
        {"kind": "verdict", "configuration": each, "in": [said], "channel": "exact"}
        for each, said in ({name: verdict} | more).items()
    ]
    value = {
        "schema": "prereg/predictions/v1",
        "study": "tiny",
        "predictions": [{"id": f"p{i}", "statement": "S.", "claim": c} for i, c in enumerate(claims)],
    }
    (paths.root / "predictions.json").write_text(json.dumps(value))


def test_a_study_of_both_channels_from_draft_to_audit(tmp_path: Path) -> None:
    study = desk(tmp_path, lambda value: None)
    report = study.check()
    assert report.ok, report.findings
    tried = rehearse(study.paths, report.study)
    assert {(r.channel, r.configuration) for r in tried} == {
        ("draws", "plain"),
        ("draws", "guidance"),
        *(("exact", c.id) for c in study.protocol.configurations),
    }
    assert not any(r.fatal for r in tried)
    study.seal()
    result = study.collect()
    assert result.draws == 1600
    assert result.leaves == sum(len(tree.leaves) for tree in study.trees().values())
    for unit, tree in study.trees().items():
        checks = tree.meta.admission
        assert (checks.interference.checked, checks.randomness.unaccounted) == (4, 0), unit
        assert checks.replay.checked == 24 and tree.meta.unexplored == 0
        assert (sum(leaf.proposals for leaf in tree.leaves) > 0) == unit.endswith(".on")
    decisions = analyse_study(study.paths, key=study.key, principal=AUTHOR)
    assert decisions.exact is not None and decisions.exact.premise is not None
    found = {c.id: c for c in decisions.exact.configurations}
    assert {name: c.verdict for name, c in found.items()} == {
        "plain": "EQUAL_WITHIN_TOLERANCE",
        "stop-string": "DEPARTS",
        "min-new-tokens": "EQUAL_WITHIN_TOLERANCE",
        "guidance": "DEPARTS",
    }
    assert found["guidance"].tv_lower == pytest.approx(0.4244, abs=0.001)
    assert found["stop-string"].witness_mass == pytest.approx(0.2312, abs=0.001)
    assert [p.status for p in decisions.exact.premise.configurations] == ["NOT_REJECTED"] * 2
    assert [p.status for p in decisions.predictions] == ["HELD"] * 6
    audit = audit_study(study.paths, key=study.reviewer, principal=REVIEWER)
    assert audit.result == "AGREES", audit.text


def as_walked(trees: dict[str, UnitTree]) -> dict[str, Any]:
    return {unit: (tree.leaves, tree.meta.runs) for unit, tree in trees.items()}


def test_a_tree_does_not_depend_on_who_walked_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prereg.collect.split.PART_RUNS", 4)
    monkeypatch.setattr(crew, "HELP_AFTER", 0.0)
    callers: dict[int, int] = {}
    call = crew._Limited.call

    def counted(self: Any, op: str, **fields: Any) -> Any:
        callers[self._worker.pid] = callers.get(self._worker.pid, 0) + 1
        return call(self, op, **fields)

    monkeypatch.setattr(crew._Limited, "call", counted)
    found = []
    for workers in (1, 3):
        study = desk(tmp_path / str(workers), only_walked("guidance"))
        predict(study.paths, "guidance", "DEPARTS")
        study.seal()
        callers.clear()
        study.collect(workers)
        assert len(callers) == workers
        found.append(as_walked(study.trees()))
        assert not journals_of(verify_study(study.paths).seal).exists()
    assert found[0] == found[1]
    assert len(found[0]["exact.guidance.on"][0]) == 301


def test_a_killed_walk_goes_on_from_its_journal(tmp_path: Path) -> None:
    study = desk(tmp_path, only_walked("plain"))
    predict(study.paths, "plain", "EQUAL_WITHIN_TOLERANCE")
    study.seal()
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from prereg.collect import split\n"
        "from prereg.collect.progress import Lines\n"
        "from prereg.collect.runner import collect_study\n"
        "from prereg.seal.keys import load_key\n"
        "from prereg.store.layout import study_paths\n"
        "split.PART_RUNS = 2\n"
        f"key = load_key(Path({str(study.key_file)!r}))\n"
        f"paths = study_paths(Path({str(study.paths.root)!r}))\n"
        f"collect_study(paths, key=key, principal={AUTHOR!r}, progress=Lines(sys.stderr), workers=1)\n"
    )
    journals = journals_of(verify_study(study.paths).seal)

    def parts() -> int:
        return sum(max(0, file.read_bytes().count(b"\n") - 1) for file in journals.glob("*.jsonl"))

    process = subprocess.Popen([sys.executable, "-c", code], cwd=distribution_root())
    deadline = time.monotonic() + 300
    while parts() < 5 and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.02)
    assert process.poll() is None, "it ended before it could be killed"
    process.send_signal(signal.SIGKILL)
    process.wait()
    kept = parts()
    assert kept >= 5
    again = subprocess.run(
        [sys.executable, "-c", code.replace("split.PART_RUNS = 2\n", f"split.PART_RUNS = 2\n{SPY}")],
        cwd=distribution_root(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert again.returncode == 0, again.stderr
    assert f"found {kept} parts" in again.stderr
    assert not journals.exists()
    whole = desk(tmp_path / "whole", only_walked("plain"))
    predict(whole.paths, "plain", "EQUAL_WITHIN_TOLERANCE")
    whole.seal()
    whole.collect(1)
    assert [t.leaves for t in study.trees().values()] == [t.leaves for t in whole.trees().values()]


SPY = (
    "from prereg.collect import split_journal\n"
    "read = split_journal.Journal._read\n"
    "def told(self, path):\n"
    "    sound = read(self, path)\n"
    "    if self._parts:\n"
    "        print(f'found {len(self._parts)} parts', file=sys.stderr)\n"
    "    return sound\n"
    "split_journal.Journal._read = told\n"
)


def test_an_assistant_and_a_bounded_walk(tmp_path: Path) -> None:
    def change(value: dict[str, Any]) -> None:
        only_walked("plain")(value)
        value["models"]["drafter"] = {**value["models"]["tiny"], "seed": "2199"}
        plain = value["configurations"][0]
        plain |= {
            "features": {"top_k": 3},
            "drafter": {"kind": "assistant", "model": "drafter", "max_tokens": 2},
        }
        value["exact"] |= {"runs": 40, "mass": 0.0}

    study = desk(tmp_path, change)
    predict(study.paths, "plain", "INCONCLUSIVE")
    assert study.check().ok
    study.seal()
    study.collect(1)
    trees = study.trees()
    assert trees["exact.plain.off"].meta.unexplored == 0
    on = trees["exact.plain.on"]
    assert on.meta.runs <= 40 and 0 < on.meta.unexplored < 1
    assert {"d", "a"} <= set("".join(leaf.kinds for leaf in on.leaves))
    decisions = analyse_study(study.paths, key=study.key, principal=AUTHOR)
    assert decisions.exact is not None
    (found,) = decisions.exact.configurations
    assert (found.verdict, found.reasons) == ("INCONCLUSIVE", ("interval",))


def test_llama_cpp_python_from_draft_to_audit(tmp_path: Path) -> None:
    if built(load_build(LCP_BUILD)) is None:
        pytest.skip(f"the build {LCP_BUILD} is not made: prereg build {LCP_BUILD}")

    def change(value: dict[str, Any]) -> None:
        only_walked("plain", "min-tokens")(value)
        (plain,) = value["configurations"]
        plain |= {
            "build": LCP_BUILD,
            "adapter": "llamacpp",
            "horizon": lcp.HORIZON,
            "drafter": lcp.DRAFTER,
            "predicates": ["no-early-end"],
        }
        value["configurations"].append({**plain, "id": "min-tokens", "features": {"min_tokens": 3}})
        plain["predicates"] = []
        value["models"], value["prompts"] = {"tiny": lcp.MODEL}, {plain["prompt"]: lcp.PROMPT}

    study = desk(tmp_path, change)
    rule = {"kind": "no-early-end", "n": 3, "end": [lcp.EOS]}
    early = {"id": "no-early-end", "statement": "S.", "source": "min_tokens", "rule": rule}
    predicates = {"schema": "prereg/predicates/v1", "study": "tiny", "predicates": [early]}
    (study.paths.root / "predicates.json").write_text(json.dumps(predicates))
    expected = {"plain": "EQUAL_WITHIN_TOLERANCE", "min-tokens": "DEPARTS"}
    predict(study.paths, "plain", expected["plain"], **{"min-tokens": expected["min-tokens"]})
    report = study.check()
    assert report.ok, report.findings
    study.seal()
    study.collect()
    for unit, tree in study.trees().items():
        assert tree.meta.unexplored == 0, unit
        assert (sum(leaf.proposals for leaf in tree.leaves) > 0) == unit.endswith(".on")
    decisions = analyse_study(study.paths, key=study.key, principal=AUTHOR)
    assert decisions.exact is not None
    found = {c.id: c for c in decisions.exact.configurations}
    assert {name: c.verdict for name, c in found.items()} == expected
    for one in found.values():
        assert one.oracle is not None and one.oracle.largest < 1e-6
    assert found["min-tokens"].reasons == ("total-variation", "witness")
    assert found["min-tokens"].tv_lower == pytest.approx(0.1102, abs=0.001)
    assert found["min-tokens"].witness_mass == pytest.approx(0.1102, abs=0.001)
    assert [p.status for p in decisions.predictions] == ["HELD"] * 2
    audit = audit_study(study.paths, key=study.reviewer, principal=REVIEWER)
    assert audit.result == "AGREES", audit.text
