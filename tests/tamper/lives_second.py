"""Two studies of edition 2 at every state of their lives.

`signed` is the coin with everything that sections 17 to 19 of docs/formats.md know, by prereg's own verbs:
sealed, cosigned and stamped, amended twice, pushed, collected, a deviation told, records relocated, analysed,
audited, closed. `second` is a small study with records beside the tokens and a registered mechanism, by hand.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import exact_fixture
import pytest
import stamps
import study_fixture
import tools
import verbs
from study_fixture import git, signing_key
from test_second_edition_run import drafted, told
from timestamp_fixture import serve

from prereg.analyse.run import analyse_study
from prereg.audit.run import audit_study
from prereg.seal.keys import generate_key
from prereg.seal.trust import add_signer
from prereg.store.layout import StudyPaths

SIGNERS = ("ada", "bob", "cyd")
"""Authors, two of whom must sign."""
TITLES = ("A coin, again", "A coin, once more")
"""Of the two amendments; the first is signed and stamped by nobody else."""
RELOCATED = "main.fair.old/00001"

Save = Callable[[str], None]


def signed_life(place: Path, bare: Path, cache: Path, save: Save, *, edition: int = 2) -> None:
    """Make `signed` at `place`, and call `save` with the name of each state that it comes to."""
    root = _signed_draft(place, edition)
    save("draft")
    with serve(stamps.authority().stamp) as url:

        def verb(name: str, who: str, *more: str) -> None:
            env = {"PREREG_CACHE": str(cache), "no_proxy": "127.0.0.1"}
            done = verbs.prereg(name, str(root), "--key", str(place / "keys" / who), *more, env=env)
            assert done.code == 0, done.said

        verb("seal", "ada")
        verb("cosign", "bob")
        verb("timestamp", "ada", "--url", url)
        save("first")
        for title in TITLES:
            value = json.loads((root / "protocol.json").read_bytes()) | {"title": title}
            (root / "protocol.json").write_text(json.dumps(value, indent=1))
            verb("amend", "ada", "--reason", "Another title.")
        save("amended")
        verb("cosign", "bob")
        verb("cosign", "cyd")
        save("cosigned")
        verb("timestamp", "ada", "--url", url)
        save("stamped")
        git(bare, "init", "-q", "--bare", "-b", "main")
        git(root, "remote", "add", "origin", str(bare))
        verb("push", "ada")
        save("sealed")
        verb("collect", "col")
        save("collected")
        verb("deviate", "ada", "--about", "fair", "--text", "Another host.")
        save("deviated")
        shutil.copytree(root / "records", place.with_name("archive"))
        for end in ("jsonl.gz", "meta.json"):
            (root / "records" / f"{RELOCATED}.{end}").unlink()
        git(root, "commit", "-q", "-a", "-m", "Archived")
        save("archived")
        verb("relocate", "ada", "--from", str(place.with_name("archive")), "--reason", "Too large.")
        save("relocated")
        verb("analyse", "ada")
        save("analysed")
        verb("audit", "rex")
        save("audited")
        verb("close", "ada", "--reason", "Published.")
        save("closed")


def _signed_draft(place: Path, edition: int) -> Path:
    paths = study_fixture.make_study(place, draws=2000, rows=100, shard_requests=10)
    for who in SIGNERS[1:]:
        key = generate_key(place / "keys" / who)
        add_signer(paths.repository, f"{who}@example.org", key.public_line, ["author"])
    (paths.root / "roots.pem").write_bytes(stamps.authority().roots)
    value = json.loads(paths.protocol.read_bytes()) | {
        "edition": edition,
        "signers": {"need": 2, "principals": [f"{who}@example.org" for who in SIGNERS]},
        "timestamp": {"roots": "roots.pem"},
    }
    paths.protocol.write_text(json.dumps(value, indent=1))
    git(paths.repository, "add", "-A")
    git(paths.repository, "commit", "-q", "-m", f"Edition {edition}")
    return paths.root


def second_life(place: Path, save: Save) -> None:
    """Make `second` at `place`, and call `save` with the name of each state that it comes to."""
    paths: StudyPaths = drafted(place)
    study_fixture.seal(paths)
    save("sealed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact_fixture, "records_of", told)
        exact_fixture.fabricate(paths)
    save("collected")
    analyse_study(paths, key=signing_key(paths), principal="ada@example.org")
    save("analysed")
    run = audit_study(paths, key=signing_key(paths, "rex"), principal="rex@example.org")
    assert run.result == "AGREES", run.text
    save("audited")


def lineage(study: Path) -> list[Path]:
    """The folders of the seals that were amended, oldest first."""
    seals = [json.loads(line) for line in tools.ledger(study)]
    return [study / "seal/lineage" / e["body"]["previous"] for e in seals if e["type"] == "amended"]
