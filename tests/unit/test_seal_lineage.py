"""What verification asks of a lineage: of seal/lineage/, of the ledger's entries, and of git (section 19)."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from prereg.codec.canonical import digest, dump_file, value_digest
from prereg.seal import amend as amending
from prereg.seal.tell import deviate_study
from prereg.seal.verified import Run
from prereg.seal.verify import verify_study
from prereg.store.layout import StudyPaths
from prereg.store.ledger import append, read_ledger
from tests.unit.seal_kit import fails, finish, resign_head
from tests.unit.second_study import second, second_collected, second_collected_once, second_once
from tests.unit.study_fixture import copy_repository, git, signing_key
from tests.unit.test_seal_amend import amended

__all__ = ["second", "second_collected", "second_collected_once", "second_once"]


@pytest.fixture(scope="module")
def twice_once(second_once: StudyPaths, tmp_path_factory: pytest.TempPathFactory) -> StudyPaths:
    paths = copy_repository(second_once, tmp_path_factory.mktemp("twice") / "x")
    amended(paths)
    return paths


@pytest.fixture
def twice(twice_once: StudyPaths, tmp_path: Path) -> StudyPaths:
    """Sealed, and amended once."""
    return copy_repository(twice_once, tmp_path / "amended")


def spoil(paths: StudyPaths, name: str, change: Callable[[bytes], bytes] | None) -> None:
    (folder,) = paths.lineage.iterdir()
    file = folder / name
    if change is None:
        file.unlink()
    else:
        file.write_bytes(change(file.read_bytes()) if file.exists() else change(b""))


@pytest.mark.parametrize(
    ("name", "change", "step", "what"),
    [
        ("manifest.json", lambda d: d.replace(b"coin", b"toss"), 2, "SHA-256 is not the `amends`"),
        ("manifest.json", None, 2, "the file is missing"),
        ("SHA256SUMS", lambda d: d[1:], 2, "disagrees with"),
        ("SHA256SUMS", None, 2, "the file is missing"),
        ("manifest.json.sig", None, 4, "the file is missing"),
        ("manifest.json.sig", lambda d: d.replace(b"A", b"B", 1), 4, "signature|key|SSHSIG|base64"),
        ("notes.txt", lambda d: b"x", 1, "no known place"),
    ],
)
def test_a_lineage_that_was_touched_is_refused(
    twice: StudyPaths, name: str, change: Any, step: int, what: str
) -> None:
    spoil(twice, name, change)
    fails(twice, step, what)


def test_a_seal_that_is_no_part_of_the_lineage_is_refused(twice: StudyPaths) -> None:
    (folder,) = twice.lineage.iterdir()
    folder.rename(twice.lineage / ("0" * 64))
    fails(twice, 2, "missing")
    (twice.lineage / ("0" * 64)).rename(folder)
    verify_study(twice)
    (twice.lineage / ("1" * 64)).mkdir()
    error = fails(twice, 2, "belongs to no seal that this one amends")
    assert "prereg amend" in (error.next_step or "")


def test_a_lineage_beside_a_seal_that_amends_nothing_is_refused(sealed: StudyPaths) -> None:
    sealed.lineage.mkdir()
    fails(sealed, 2, "nothing was amended")


def relink(paths: StudyPaths, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the last entry, make its digests agree again, and sign the head anew."""
    lines = paths.ledger.read_bytes().splitlines(keepends=True)
    value = json.loads(lines[-1])
    change(value)
    value["body_sha256"] = value_digest(value["body"])
    paths.ledger.write_bytes(b"".join([*lines[:-1], dump_file(value)]))
    resign_head(paths, value["actor"].split("@")[0])


def of_body(**changes: Any) -> Callable[[dict[str, Any]], object]:
    return lambda entry: entry["body"].update(changes)


@pytest.mark.parametrize(
    ("change", "step", "what"),
    [
        (of_body(previous="0" * 64), 6, "is not the `amends` of seal/manifest.json"),
        (of_body(seal="0" * 64), 6, "is not this study's seal digest"),
        (of_body(signature_sha256="0" * 64), 6, "is not the digest of seal/manifest.json.sig"),
        (of_body(commit=None), 6, "is not the manifest's commit"),
        (lambda entry: entry.update(actor="col@example.org"), 6, "has no role author"),
        (of_body(reason="Another."), 9, "does not continue"),
    ],
)
def test_the_entry_of_an_amendment_is_held_against_its_seal(
    twice: StudyPaths, change: Any, step: int, what: str
) -> None:
    relink(twice, change)
    fails(twice, step, what)


def test_a_ledger_without_the_amendment_is_refused(twice: StudyPaths) -> None:
    twice.ledger.write_bytes(twice.ledger.read_bytes().splitlines(keepends=True)[0])
    resign_head(twice, "ada")
    fails(twice, 6, "ends with 0 amendments")


def test_an_amendment_without_a_seal_is_refused(second: StudyPaths) -> None:
    seal = digest(second.manifest.read_bytes())
    words = {"signature_sha256": "0" * 64, "commit": None, "reason": "x"}
    append(second, "amended", {"seal": "1" * 64, "previous": seal, **words}, "ada@example.org")
    resign_head(second, "ada")
    fails(second, 6, "no such amendment leads to seal/manifest.json")


def test_the_tag_of_an_amendment_is_on_its_commit(twice: StudyPaths) -> None:
    git(twice.repository, "tag", "-f", "prereg/coin/amended-1", "HEAD~1")
    fails(twice, 9, "is on no commit that holds seal/manifest.json")
    git(twice.repository, "tag", "-f", "prereg/coin/amended-1", "HEAD")
    git(twice.repository, "tag", "-f", "prereg/coin/sealed", "HEAD")
    fails(twice, 9, "is on no commit that holds seal/lineage/")


def test_a_seal_of_the_lineage_that_was_never_committed_is_refused(twice: StudyPaths) -> None:
    git(twice.repository, "tag", "-d", "prereg/coin/sealed")
    tree = git(twice.repository, "rev-parse", "HEAD^{tree}").strip()
    made = git(twice.repository, "commit-tree", tree, "-p", "HEAD~2", "-m", "Squashed").strip()
    git(twice.repository, "reset", "-q", "--soft", made)
    fails(twice, 9, "no commit in the history of HEAD holds this manifest")


def test_an_amendment_of_another_edition_is_refused(
    sealed: StudyPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A seal of edition 1 that was amended by a program that does not ask."""
    real = amending.step_5_study_files

    def lies(run: Run) -> tuple[int, str]:
        told = real(run)
        run.found["study"] = replace(run.study, protocol=replace(run.study.protocol, edition=2))
        return told

    with monkeypatch.context() as patch:
        patch.setattr(amending, "step_5_study_files", lies)
        amended(sealed, lambda protocol: protocol.update(edition=2))
    error = fails(sealed, 9, "is of another edition than the present seal")
    assert (error.where or "").startswith("seal/lineage/")


def test_records_before_the_last_seal_are_refused(second: StudyPaths) -> None:
    place = second.shard_records("main.fair.old", 0)
    place.parent.mkdir(parents=True)
    place.write_bytes(b"x")
    git(second.repository, "add", "studies")
    git(second.repository, "commit", "-q", "-m", "Too early")
    git(second.repository, "rm", "-q", "-r", "studies/coin/records")
    git(second.repository, "commit", "-q", "-m", "Gone")
    amended(second)
    fails(second, 9, "touches records/ and does not come after the seal's")


def test_what_another_said_before_an_amendment_stays_signed_by_them(second: StudyPaths) -> None:
    deviate_study(second, "x", key=signing_key(second, "col"), principal="col@example.org")
    amended(second)
    verified = verify_study(second)
    assert [e.actor.split("@")[0] for e in verified.entries] == ["ada", "col", "ada"]


def test_a_deviation_is_about_the_plan_in_force_where_it_stands(second: StudyPaths) -> None:
    about = ["loaded"]
    deviate_study(second, "x", about=about, key=signing_key(second), principal="ada@example.org")
    amended(second)
    seal = digest(second.manifest.read_bytes())
    append(second, "deviation", {"seal": seal, "about": ["gone"], "text": "x"}, "ada@example.org")
    finish(second, "ada")
    fails(second, 6, "no configuration or unit gone")
    assert read_ledger(second.ledger.read_bytes())[1].body["about"] == about
