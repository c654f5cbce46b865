"""The template `main` as a study of its own repository: drafted, its events built, checked and sealed."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prereg.codec.convert import read_authored
from prereg.collect.environments import fingerprints
from prereg.collect.oracle import enumerate_references
from prereg.collect.runtime import load_build
from prereg.draft.family import build_events, events_json
from prereg.draft.lint import check_study
from prereg.draft.scaffold import FIRST_SEED, Blanks, draft_study, plan_seeds
from prereg.model.hypotheses import Hypotheses
from prereg.model.study import Protocol
from prereg.seal.build import seal_study
from prereg.seal.keys import SigningKey, generate_key
from prereg.seal.trust import add_signer
from prereg.store.harness import harness_digest
from prereg.store.layout import StudyPaths
from tests.unit.silent import Silent

AUTHOR, REVIEWER = "ada@example.org", "rex@example.org"

DEPART = {
    "hf12-p2",
    "hf17-p1",
    "hf17-6",
    "hf17-7",
    "hfx-8",
    *(f"lcp-{number}-{version}" for number in (1, 2, 3) for version in (19, 35)),
}
"""Configurations whose law under speculation is another, walked exactly."""


@dataclass(frozen=True, kw_only=True)
class Sealed:
    """A sealed study and the keys of its people."""

    paths: StudyPaths
    protocol: Protocol
    key: SigningKey
    reviewer: SigningKey


def sealed(
    folder: Path, *, exact: bool, edit: Callable[[str, dict[str, Any]], None] = lambda name, value: None
) -> Sealed:
    """Seal the template; `edit` may change its protocol, predictions and hypotheses before."""
    repository = folder / "repository"
    repository.mkdir()
    subprocess.run(["git", "init", "-q", "-b", "main"], cwd=repository, check=True)
    key, reviewer = generate_key(folder / "keys" / "ada"), generate_key(folder / "keys" / "rex")
    add_signer(repository, AUTHOR, key.public_line, ["author", "collector"])
    add_signer(repository, REVIEWER, reviewer.public_line, ["reviewer"])
    who = ["-c", "user.name=A", "-c", f"user.email={AUTHOR}"]
    subprocess.run(["git", "add", "trust"], cwd=repository, check=True)
    subprocess.run(["git", *who, "commit", "-q", "-m", "Trust"], cwd=repository, check=True)
    blanks = Blanks(title="T", question="Q?", author="Ada", principal=AUTHOR)
    paths = draft_study(repository / "studies" / "main", "main", blanks, [], exact=exact)
    for name in ("protocol.json", "predictions.json", "hypotheses.json"):
        value = json.loads((paths.root / name).read_bytes())
        edit(name, value)
        (paths.root / name).write_text(json.dumps(value))
    protocol = read_authored(paths.protocol.read_bytes(), "protocol", Protocol, where="protocol.json")
    (paths.root / "seeds.json").write_text(json.dumps(plan_seeds(protocol, FIRST_SEED)))
    registered = (paths.root / "hypotheses.json").read_bytes()
    hypotheses = read_authored(registered, "hypotheses", Hypotheses, where="hypotheses.json")
    found = enumerate_references(protocol, Silent(), hypotheses=hypotheses)
    events = build_events(
        protocol, found.laws, harness_digest(), mechanisms=found.mechanisms, replays=found.replays
    )
    paths.events.write_text(json.dumps(events_json(events)))
    builds = sorted({c.build for c in protocol.configurations})
    rates = {name: load_build(name).requests_per_second for name in builds}
    report = check_study(paths, rates=rates, harness_sha256=harness_digest())
    assert report.ok, report.findings
    seal_study(paths, key=key, principal=AUTHOR, environments=fingerprints(builds))
    return Sealed(paths=paths, protocol=protocol, key=key, reviewer=reviewer)
