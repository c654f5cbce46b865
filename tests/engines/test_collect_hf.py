"""Transformers 5.17.0, end to end through the collector: reference laws, a sealed study, its records."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from prereg.codec.convert import read_authored
from prereg.collect.environments import fingerprints
from prereg.collect.oracle import enumerate_references
from prereg.collect.runner import collect_study
from prereg.draft.family import build_events, events_json
from prereg.draft.scaffold import Blanks, draft_study, plan_seeds
from prereg.errors import EngineFailed
from prereg.model.study import Protocol
from prereg.seal.build import seal_study
from prereg.seal.evidence import authenticated_records
from prereg.seal.keys import generate_key
from prereg.seal.trust import add_signer
from prereg.seal.verify import verify_study
from prereg.store.harness import harness_digest
from prereg.store.layout import StudyPaths
from tests.unit.silent import Silent

pytestmark = pytest.mark.engines

AUTHOR = "ada@example.org"
KEPT = ("plain", "guidance")


class Notes(Silent):
    def __init__(self) -> None:
        self.texts: list[str] = []

    def note(self, text: str) -> None:
        self.texts.append(text)


def drafted(repository: Path) -> tuple[StudyPaths, Protocol]:
    """The conformance template with two of its configurations and few draws."""
    blanks = Blanks(title="T", question="Q?", author="Ada", principal=AUTHOR)
    paths = draft_study(repository / "studies" / "tiny", "conformance", blanks, [])
    value: dict[str, Any] = json.loads(paths.protocol.read_bytes())
    value["configurations"] = [c for c in value["configurations"] if c["id"] in KEPT]
    value["stages"][0]["configurations"] = list(KEPT)
    value["sampling"] = {
        "off": {"draws": 1000, "rows": 250, "shard_requests": 2},
        "on": {"draws": 60, "rows": 1, "shard_requests": 25},
    }
    paths.protocol.write_text(json.dumps(value))
    (paths.root / "predictions.json").write_text(
        json.dumps({"schema": "prereg/predictions/v1", "study": "tiny", "predictions": []})
    )
    protocol = read_authored(paths.protocol.read_bytes(), "protocol", Protocol, where="protocol.json")
    (paths.root / "seeds.json").write_text(json.dumps(plan_seeds(protocol, 3_000_000)))
    return paths, protocol


def test_a_conformance_study_is_collected(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    repository.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=repository, check=True)
    key = generate_key(tmp_path / "keys" / "ada")
    add_signer(repository, AUTHOR, key.public_line, ["author"])
    paths, protocol = drafted(repository)
    notes = Notes()
    laws = enumerate_references(protocol, notes, cross_check=True).laws
    assert set(laws) == set(KEPT)
    assert any("again by the other oracle" in text for text in notes.texts)
    events = events_json(build_events(protocol, laws, harness_digest()))
    paths.events.write_text(json.dumps(events))
    seal_study(paths, key=key, principal=AUTHOR, environments=fingerprints(["hf-5.17.0"]))

    result = collect_study(paths, key=key, principal=AUTHOR, progress=notes, workers=2)
    assert (result.complete, dict(result.invalid), result.draws) == (True, {}, 2 * 1060)
    verified = verify_study(paths)
    for unit, records in authenticated_records(verified):
        assert len(records) == (1000 if unit.arm == "off" else 60)
        proposals = sum(record.counters.proposals for record in records)
        assert (proposals > 0) == (unit.arm == "on")
        support = {mass.outcome for mass in laws[unit.configuration]}
        assert unit.configuration == "guidance" or all(r.outcome in support for r in records)


def test_an_engine_that_cannot_open_a_configuration_is_an_engine_failure(tmp_path: Path) -> None:
    _, protocol = drafted(tmp_path)
    text = json.loads((tmp_path / "studies" / "tiny" / "protocol.json").read_bytes())
    text["configurations"][0]["features"] = {"no_such_feature": True}
    protocol = read_authored(json.dumps(text).encode(), "protocol", Protocol, where="protocol.json")
    with pytest.raises(EngineFailed, match=r"the oracle failed on plain.*no_such_feature"):
        enumerate_references(protocol, Silent())
