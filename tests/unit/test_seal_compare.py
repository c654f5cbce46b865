"""What `diff` shows: each file that is not as sealed, with sizes, digests and lines."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from prereg.cli.diff import diff
from prereg.codec.canonical import digest
from prereg.errors import VerificationFailed, WrongState
from prereg.seal.compare import diff_study
from prereg.store.layout import StudyPaths
from tests.unit.second_study import second_collected, second_collected_once, second_once
from tests.unit.study_fixture import copy_repository, git, make_study, seal

__all__ = ["second_collected", "second_collected_once", "second_once"]


@pytest.fixture(scope="module")
def sealed_once(tmp_path_factory: pytest.TempPathFactory) -> StudyPaths:
    paths = make_study(tmp_path_factory.mktemp("sealed"))
    seal(paths)
    return paths


@pytest.fixture
def sealed(sealed_once: StudyPaths, tmp_path: Path) -> StudyPaths:
    return copy_repository(sealed_once, tmp_path / "copy")


def test_an_untouched_study_has_no_differences(sealed_once: StudyPaths) -> None:
    found = diff_study(sealed_once)
    assert found.seal == digest(sealed_once.manifest.read_bytes())
    assert (found.files, found.harness) == ((), ())


def test_a_changed_file_is_shown_line_by_line(sealed: StudyPaths) -> None:
    before = (sealed.root / "NOTES.md").read_bytes()
    after = before.replace(b"A coin", b"A dice") + b"no newline"
    (sealed.root / "NOTES.md").write_bytes(after)
    (change,) = diff_study(sealed).files
    assert (change.path, change.change, change.note) == ("NOTES.md", "changed", None)
    assert (change.sealed_size, change.sealed_sha256) == (len(before), digest(before))
    assert (change.size, change.sha256) == (len(after), digest(after))
    assert change.diff is not None
    assert change.diff.splitlines() == [
        "--- sealed/NOTES.md",
        "+++ current/NOTES.md",
        "@@ -1,3 +1,4 @@",
        "-# A coin",
        "+# A dice",
        " ",
        " Über nothing.",
        "+no newline",
        "\\ no newline at the end",
    ]


def test_added_removed_binary_and_linked_files(sealed: StudyPaths) -> None:
    (sealed.root / "new").write_text("x")
    (sealed.root / "coin.py").unlink()
    (sealed.root / "seeds.json").write_bytes(b"\xff\0")
    (sealed.root / "NOTES.md").unlink()
    (sealed.root / "NOTES.md").symlink_to("/etc/hostname")
    (sealed.root / "seal" / "odd").write_text("x")
    found = {c.path: c for c in diff_study(sealed).files}
    assert {path: c.change for path, c in found.items()} == {
        "NOTES.md": "changed",
        "coin.py": "removed",
        "new": "added",
        "seal/odd": "added",
        "seeds.json": "changed",
    }
    assert found["NOTES.md"].note == "is a link"
    assert (found["NOTES.md"].size, found["NOTES.md"].diff) == (None, None)
    assert (found["new"].sealed_size, found["new"].size) == (None, 1)
    assert (found["coin.py"].size, found["coin.py"].sha256) == (None, None)
    assert found["seeds.json"].diff is None


def test_modes_and_line_ends_are_said_in_words(sealed: StudyPaths) -> None:
    (sealed.root / "coin.py").chmod(0o755)
    data = (sealed.root / "NOTES.md").read_bytes()
    (sealed.root / "NOTES.md").write_bytes(data.replace(b"\n", b"\r\n"))
    notes = {c.path: c.note for c in diff_study(sealed).files}
    assert notes == {
        "coin.py": "has mode 100755, sealed with 100644",
        "NOTES.md": "has CRLF line ends; the rest is as sealed",
    }


def test_evidence_is_no_difference(sealed: StudyPaths) -> None:
    (sealed.records / "main.fair.old").mkdir(parents=True)
    (sealed.records / "main.fair.old" / "00000.meta.json").write_text("x")
    (sealed.root / "report").mkdir()
    (sealed.root / "report" / "x").write_text("x")
    assert diff_study(sealed).files == ()


def test_without_git_there_are_digests_and_no_lines(sealed: StudyPaths) -> None:
    shutil.rmtree(sealed.repository / ".git")
    (sealed.root / "NOTES.md").write_text("x")
    (change,) = diff_study(sealed).files
    assert (change.change, change.size, change.diff) == ("changed", 1, None)


def test_lines_are_against_the_sealed_bytes_and_no_later_commit(sealed: StudyPaths) -> None:
    (sealed.root / "NOTES.md").write_text("later\n")
    git(sealed.repository, "commit", "-q", "-a", "-m", "x")
    (change,) = diff_study(sealed).files
    assert change.diff is not None
    assert "-# A coin\n" in change.diff
    assert "+later\n" in change.diff


def test_another_installed_harness_is_shown_apart(
    sealed: StudyPaths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = tmp_path / "harness"
    shutil.copytree(sealed.code / "harness", installed)
    (installed / "worker.py").write_text("other\n")
    (installed / "more.py").write_text("more\n")
    (installed / "wire.py").unlink()
    monkeypatch.setattr("prereg.store.harness.harness_root", lambda: installed)
    found = diff_study(sealed)
    assert found.files == ()
    assert [(c.path, c.change) for c in found.harness] == [
        ("harness/more.py", "added"),
        ("harness/wire.py", "removed"),
        ("harness/worker.py", "changed"),
    ]
    assert found.harness[2].diff is not None
    assert "+other\n" in found.harness[2].diff


def test_a_draft_has_nothing_to_compare_with(tmp_path: Path) -> None:
    with pytest.raises(WrongState, match="not sealed"):
        diff_study(make_study(tmp_path))


def test_records_are_compared_with_the_ledger(second_collected: StudyPaths) -> None:
    assert diff_study(second_collected).records == ()
    first, second = sorted(second_collected.records.rglob("*.jsonl.gz"))[:2]
    third = second.with_name(second.name.replace("jsonl.gz", "meta.json"))
    for file in (first, third):
        file.write_bytes(file.read_bytes() + b"\0")
    second.unlink()
    names = [file.relative_to(second_collected.root).as_posix() for file in (first, second, third)]
    found = diff_study(second_collected)
    assert found.files == ()
    assert sorted(found.records) == sorted(
        [
            f"{names[0]} is not as it was stored",
            f"{names[1]} is missing",
            f"{names[2]} is not as it was stored",
        ]
    )
    with pytest.raises(VerificationFailed, match="3 files of records not as the ledger has them") as caught:
        diff(second_collected.root)
    assert caught.value.next_step is not None
    assert caught.value.next_step.startswith(f"git checkout -- {second_collected.root}/records")


def test_an_added_file_is_taken_away(sealed: StudyPaths) -> None:
    (sealed.root / "more notes").write_text("x")
    with pytest.raises(VerificationFailed) as caught:
        diff(sealed.root)
    assert caught.value.next_step == f"rm '{sealed.root}/more notes'"
