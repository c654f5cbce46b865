"""A sealed study whose ledger is gone is told so, and no draft: HEAD has what is missing."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from prereg.seal.verify import verify_study
from prereg.store.layout import StudyPaths
from tests.unit.study_fixture import copy_repository, git, make_study, seal
from tests.unit.test_cli import prereg

GIVEN = {"status": [], "check": [], "seal": ["--key", "../keys/ada"]}


@pytest.fixture
def sealed(tmp_path: Path) -> StudyPaths:
    paths = make_study(tmp_path)
    seal(paths)
    return paths


@pytest.mark.parametrize("verb", GIVEN)
@pytest.mark.parametrize("gone", ["the ledger", "all", "also from the index"])
def test_a_lost_ledger_is_no_draft(verb: str, gone: str, sealed: StudyPaths) -> None:
    if gone == "also from the index":
        git(sealed.repository, "rm", "-q", "studies/coin/ledger.jsonl")
    else:
        sealed.ledger.unlink()
    if gone == "all":
        for place in (sealed.seal, sealed.code):
            shutil.rmtree(place)
        for file in (sealed.head, sealed.head_signature):
            file.unlink()
    done = prereg(verb, "studies/coin", *GIVEN[verb], "--json", cwd=sealed.repository)
    assert done.returncode == 3, done.stderr
    told = json.loads(done.stdout)
    assert told["error"] == "EvidenceIncomplete" and "the ledger is missing" in told["what"]
    assert told["next"] == "git checkout HEAD -- studies/coin/ledger.jsonl"
    subprocess.run(shlex.split(told["next"]), cwd=sealed.repository, check=True)
    if gone != "all":
        verify_study(sealed)
        assert prereg("status", "studies/coin", cwd=sealed.repository).returncode == 0


def test_a_ledger_that_no_commit_had_is_not_lost(tmp_path: Path) -> None:
    """A killed seal leaves its folder before any ledger; the study is a draft, and is sealed again."""
    paths = make_study(tmp_path / "x")
    kept = copy_repository(paths, tmp_path / "kept")
    seal(kept)
    (kept.root / "seal").rename(paths.root / "seal")
    done = prereg("status", "studies/coin", "--json", cwd=paths.repository)
    assert json.loads(done.stdout)["state"] == "draft"
    done = prereg("seal", "studies/coin", "--key", "../keys/ada", cwd=paths.repository)
    assert done.returncode == 4 and f"rm -r {paths.seal}, then prereg seal" in done.stderr
