"""A repository of another user is read and never written; one that names commits by SHA-256 is refused."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from prereg.errors import EvidenceIncomplete, WrongState
from prereg.store.repo import Repo
from tests.unit import study_fixture
from tests.unit.test_cli import prereg

SOMEBODY = 12345
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


def give_away(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        os.chown(path, SOMEBODY, SOMEBODY, follow_symlinks=False)


@root_only
def test_a_strangers_study_verifies(tmp_path: Path) -> None:
    paths = study_fixture.make_study(tmp_path)
    study_fixture.seal(paths)
    give_away(paths.repository)
    done = prereg("verify", str(paths.root))
    assert done.returncode == 0, done.stderr
    (paths.root / "coin.py").write_text("changed")
    assert prereg("verify", str(paths.root)).returncode == 1
    # A link on the way does not change whose it is, or that it can be read.
    (tmp_path / "link").symlink_to(paths.repository)
    (paths.root / "coin.py").write_text(study_fixture.COIN)
    assert prereg("verify", str(tmp_path / "link" / "studies" / "coin")).returncode == 0


@root_only
def test_a_strangers_repository_runs_nothing_and_is_not_written(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    folder.mkdir()
    repo = Repo.create(folder)
    (folder / "file").write_text("content")
    commit = repo.commit([folder / "file"], "One", {}, principal="a@example.org")
    ran = tmp_path / "ran"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {ran}\n")
    program.chmod(0o755)
    for name in ("core.fsmonitor", "core.sshCommand", "core.pager", "core.editor", "core.gitProxy"):
        subprocess.run(["git", "config", name, str(program)], cwd=folder, check=True)
    for name in ("diff.external", "gpg.program", "credential.helper", "filter.x.clean", "filter.x.process"):
        subprocess.run(["git", "config", name, str(program)], cwd=folder, check=True)
    (folder / ".gitattributes").write_text("* filter=x diff=x\n")
    for hook in ("reference-transaction", "post-index-change", "pre-commit"):
        (folder / ".git" / "hooks" / hook).write_bytes(program.read_bytes())
        (folder / ".git" / "hooks" / hook).chmod(0o755)
    give_away(folder)
    there = Repo.find(folder)
    assert there.foreign
    assert there.head() == commit
    assert there.blob_at(commit, folder / "file") == b"content"
    assert there.dirty_paths(folder) == []
    assert there.ignored([folder / "file"]) == []
    assert there.commits_touching(folder / "file") == [commit]
    for write in (
        lambda: there.commit([folder / "file"], "Two", {}, principal="a@example.org"),
        lambda: there.annotate("t", commit, "T", principal="a@example.org"),
        lambda: there.call(["ls-remote", "--", str(folder)], transports=True),
    ):
        with pytest.raises(EvidenceIncomplete, match="another user") as refused:
            write()
        assert refused.value.next_step is not None
        assert f"safe.directory {folder}" in refused.value.next_step
    assert not ran.exists()


@root_only
def test_a_git_that_refuses_all_the_same_is_told_its_top_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """git before 2.38 obeys safe.directory from files alone."""
    paths = study_fixture.make_study(tmp_path)
    give_away(paths.repository)
    monkeypatch.setattr("prereg.store.repo.safe", lambda _: {})
    with pytest.raises(EvidenceIncomplete) as refused:
        Repo.find(paths.root)
    assert refused.value.exit_code == 3
    assert refused.value.next_step is not None
    assert f"safe.directory {paths.repository.resolve()}," in refused.value.next_step


def test_ones_own_repository_is_not_foreign(tmp_path: Path) -> None:
    assert not Repo.create(tmp_path).foreign


@pytest.mark.parametrize("verb", ["check", "seal"])
def test_a_repository_of_sha256_holds_no_study(verb: str, tmp_path: Path) -> None:
    repository = tmp_path / "repo"
    repository.mkdir()
    done = subprocess.run(["git", "init", "-q", "--object-format=sha256"], cwd=repository, check=False)
    if done.returncode != 0:
        pytest.skip("this git knows SHA-1 alone")
    with pytest.raises(WrongState, match="SHA-256"):
        Repo.find(repository)
    study = repository / "studies" / "x"
    assert prereg("draft", str(study), "--template", "two-arm").returncode in (0, 4)
    study.mkdir(parents=True, exist_ok=True)
    key = tmp_path / "k"
    given = {"check": [], "seal": ["--key", str(key)]}
    made = prereg(
        "key", "new", str(key), "--principal", "ada", "--role", "author", "--repository", str(repository)
    )
    assert made.returncode == 0, made.stderr
    refused = prereg(verb, str(study), *given[verb])
    assert refused.returncode == 4, refused.stderr
    assert "SHA-256" in refused.stderr and "git init" in refused.stderr
    assert "Traceback" not in refused.stderr
