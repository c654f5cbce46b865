"""Keys are entered in trust/ of the repository that one is in, and shown whole."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from prereg.seal.keys import SigningKey, generate_key
from prereg.seal.rotation import read_repository
from prereg.seal.trust import add_signer
from prereg.store.layout import StudyPaths
from tests.unit.study_fixture import make_study
from tests.unit.test_cli import PREREG, prereg

ADA, BOB = "ada@example.org", "bob@example.org"


@pytest.fixture
def study(tmp_path: Path) -> StudyPaths:
    return make_study(tmp_path)


def trusts(folder: Path) -> list[Path]:
    return sorted(folder.rglob("trust"))


def public(tmp_path: Path) -> tuple[SigningKey, str]:
    return generate_key(tmp_path / "bob"), str(tmp_path / "bob.pub")


@pytest.mark.parametrize("inside", [".", "studies", "studies/coin", "studies/coin/deeper"])
@pytest.mark.parametrize("verb", ["new", "add", "rotate", "revoke"])
def test_the_trust_of_the_repository_is_changed_from_any_folder(
    verb: str, inside: str, study: StudyPaths, tmp_path: Path
) -> None:
    place = study.repository / inside
    place.mkdir(exist_ok=True)
    key, line = public(tmp_path)
    who = ["--principal", BOB, "--role", "author"]
    given = {
        "new": [str(tmp_path / "new"), *who],
        "add": [line, *who],
        "rotate": [line, "--to", str(tmp_path / "next")],
        "revoke": [line, "--reason", "lost", "--note", "Gone."],
    }[verb]
    if verb in ("rotate", "revoke"):
        add_signer(study.repository, BOB, key.public_line, ["author"])
    before = {file: file.read_bytes() for file in (study.repository / "trust").iterdir()}
    done = prereg("key", verb, *given, cwd=place)
    assert done.returncode == 0, done.stderr
    assert trusts(study.repository) == [study.repository / "trust"]
    assert {file: file.read_bytes() for file in (study.repository / "trust").iterdir()} != before
    named = "Commit trust/" if inside == "." else f"Commit {study.repository / 'trust'}"
    assert named in done.stderr.replace("\n", "")
    assert BOB in prereg("key", "list", "--json", cwd=place).stdout


def test_a_study_in_a_larger_repository_keeps_the_trust_above_its_studies(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    study = whole / "part" / "studies" / "x"
    study.mkdir(parents=True)
    (study / "protocol.json").write_text("{}")
    subprocess.run(["git", "init", "-q"], cwd=whole, check=True)
    who = ["--principal", ADA, "--role", "author"]
    assert prereg("key", "new", str(tmp_path / "k"), *who, cwd=study).returncode == 0
    assert prereg("key", "new", str(tmp_path / "l"), *who, cwd=whole / "part").returncode == 0
    assert trusts(tmp_path) == [whole / "part" / "trust"]
    assert len(read_repository(whole / "part").signers) == 2


@pytest.mark.parametrize("verb", ["new", "add", "rotate", "revoke"])
def test_outside_of_a_repository_nobody_is_entered(verb: str, tmp_path: Path) -> None:
    key, line = public(tmp_path)
    who = ["--principal", BOB, "--role", "author"]
    given = {
        "new": [str(tmp_path / "new"), *who],
        "add": [line, *who],
        "rotate": [key.fingerprint, "--to", str(tmp_path / "new")],
        "revoke": [key.fingerprint, "--reason", "lost", "--note", "Gone."],
    }[verb]
    here = tmp_path / "here"
    here.mkdir()
    done = prereg("key", verb, *given, cwd=here)
    assert done.returncode == 4, done.stderr
    assert "this folder is in none" in done.stderr and "next:  git init;" in done.stderr
    assert not trusts(tmp_path) and not (tmp_path / "new").exists()
    subprocess.run(["git", "init", "-q"], cwd=here, check=True)
    if verb in ("new", "add"):
        assert prereg("key", verb, *given, cwd=here).returncode == 0
        assert trusts(tmp_path) == [here / "trust"]


@pytest.mark.parametrize("columns", [30, 60, 80, 100, 132, 200])
def test_a_fingerprint_is_never_broken(
    columns: int, study: StudyPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    from_to = ["--valid-after", "2026-01-01T00:00", "--valid-before", "2030-01-01T00:00"]
    key = generate_key(study.repository.parent / "kim")
    who = ["--principal", "kim.of.a.long.name@research.example.org", "--role", "author", *from_to]
    added = subprocess.run(
        [PREREG, "key", "add", f"{study.repository.parent}/kim.pub", *who],
        cwd=study.repository,
        check=True,
        capture_output=True,
        text=True,
    )
    said = prereg("key", "list", cwd=study.repository).stderr
    assert key.fingerprint in said and key.fingerprint in added.stderr
    whole = [word for word in said.split() if len(word) == 50 and word.startswith("SHA256:")]
    assert len(whole) == said.count("SHA256:") > 1
    for told in ("valid", "ssh-ed25519", "2026-01-01"):
        assert told in said
