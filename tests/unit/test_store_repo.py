"""Git through the store: only the named paths, exact bytes, a clean environment, the whole history."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from prereg.errors import VerificationFailed, WrongState
from prereg.store.repo import Repo
from tests.unit.study_fixture import git


@pytest.fixture
def top(tmp_path: Path) -> Path:
    top = tmp_path / "r"
    top.mkdir()
    git(top, "init", "-q", "-b", "main")
    git(top, "config", "user.name", "Conf")
    git(top, "config", "user.email", "conf@example.org")
    return top


def commit(top: Path, *names: str, message: str = "A subject", principal: str = "ada@example.org") -> str:
    paths = [top / name for name in names]
    return Repo.find(top).commit(paths, message, {"Prereg-Study": "s"}, principal=principal)


def test_outside_a_repository_there_is_none(tmp_path: Path) -> None:
    with pytest.raises(WrongState, match="not in a git work tree") as caught:
        Repo.find(tmp_path)
    assert caught.value.next_step == "git init"


def test_without_the_program_it_says_so(top: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from prereg.errors import WrongState\n"
        "from prereg.store.repo import Repo\n"
        f"try: Repo.find(Path({str(top)!r}))\n"
        "except WrongState as error: sys.exit(0 if 'not installed' in error.what else 2)\n"
        "sys.exit(3)"
    )
    done = subprocess.run([sys.executable, "-c", code], env={"PATH": "/nonexistent"}, check=False)
    assert done.returncode == 0


def test_a_program_that_goes_away_is_said(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = Repo.find(top)
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(WrongState, match="not installed"):
        repo.head()


def test_importing_the_store_does_not_load_git() -> None:
    code = "import sys, prereg.store.repo, prereg.store.ledger; sys.exit('git' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_first_commit_holds_only_the_named_paths(top: Path) -> None:
    (top / "a").write_text("a")
    (top / "b").write_text("b")
    git(top, "add", "b")
    assert Repo.find(top).head() is None
    made = commit(top, "a")
    assert Repo.find(top).head() == made
    assert git(top, "ls-tree", "-r", "--name-only", "HEAD").split() == ["a"]
    assert git(top, "status", "--porcelain").splitlines() == ["A  b"]


def test_other_staged_changes_stay_staged(top: Path) -> None:
    for name in "ab":
        (top / name).write_text("one")
    commit(top, "a", "b")
    for name in "ab":
        (top / name).write_text("two")
    git(top, "add", "b")
    commit(top, "a")
    assert git(top, "show", "HEAD:a") == "two"
    assert git(top, "show", "HEAD:b") == "one"
    assert git(top, "status", "--porcelain").splitlines() == ["M  b"]


def test_a_folder_is_committed_with_what_was_removed_from_it(top: Path) -> None:
    (top / "d" / "e").mkdir(parents=True)
    (top / "d" / "e" / "x").write_text("x")
    (top / "d" / "y").write_text("y")
    commit(top, "d")
    (top / "d" / "y").unlink()
    commit(top, "d")
    assert git(top, "ls-tree", "-r", "--name-only", "HEAD").split() == ["d/e/x"]
    assert git(top, "status", "--porcelain") == ""


def test_bytes_are_committed_as_they_lie(top: Path) -> None:
    git(top, "config", "core.autocrlf", "true")
    git(top, "config", "filter.up.clean", "tr a-z A-Z")
    (top / ".gitattributes").write_text("* text=auto eol=crlf\nf filter=up\n")
    (top / "f").write_bytes(b"line\r\nline\n")
    (top / "x").write_bytes(b"#!/bin/sh\r\n")
    (top / "x").chmod(0o755)
    made = commit(top, "f", "x")
    repo = Repo.find(top)
    assert repo.blob_at(made, top / "f") == b"line\r\nline\n"
    mode, blob = repo.blobs_at(made, top)["x"]
    assert mode == "100755"
    assert blob == repo.blob_id(b"#!/bin/sh\r\n", like=made)


def test_the_message_carries_the_trailers(top: Path) -> None:
    (top / "a").write_text("a")
    commit(top, "a", message="Seal study s")
    assert git(top, "log", "-1", "--format=%s|%(trailers:only,unfold)").strip() == (
        "Seal study s|Prereg-Study: s"
    )


def test_identity_is_gits_or_else_the_principals(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (top / "a").write_text("a")
    commit(top, "a")
    shown = git(top, "log", "-1", "--format=%an %ae %cn %ce").strip()
    assert shown == "Conf conf@example.org Conf conf@example.org"
    git(top, "config", "--unset", "user.name")
    git(top, "config", "--unset", "user.email")
    monkeypatch.setenv("HOME", str(top.parent))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(top.parent))
    for name in list(os.environ):
        if name.startswith("GIT_"):
            monkeypatch.delenv(name)
    if subprocess.run(["git", "config", "user.name"], cwd=top, check=False).returncode == 0:
        pytest.skip("this machine's system configuration names a user")
    (top / "a").write_text("b")
    commit(top, "a")
    assert git(top, "log", "-1", "--format=%an %ae").strip() == "ada@example.org ada@example.org"


def test_hooks_and_inherited_variables_have_no_say(
    top: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for name in ("pre-commit", "commit-msg", "reference-transaction", "post-index-change"):
        (hooks / name).write_text("#!/bin/sh\ntouch ran\nexit 1\n")
        (hooks / name).chmod(0o755)
    git(top, "config", "core.hooksPath", str(hooks))
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    monkeypatch.setenv("GIT_AUTHOR_DATE", "2001-01-01T00:00:00Z")
    (top / "a").write_text("a")
    made = commit(top, "a")
    repo = Repo.find(top)
    repo.annotate("t", made, "message\n", principal="ada@example.org")
    assert repo.top == top.resolve()
    assert not (top / "ran").exists()
    assert not (tmp_path / "index").exists()
    monkeypatch.undo()
    assert git(top, "rev-parse", "HEAD").strip() == made
    assert "2001" not in git(top, "log", "-1", "--format=%ad")


def test_replaced_objects_are_not_believed(top: Path) -> None:
    (top / "a").write_text("true")
    made = commit(top, "a")
    blob = git(top, "rev-parse", "HEAD:a").strip()
    (top / "lie").write_text("false")
    lie = git(top, "hash-object", "-w", "lie").strip()
    git(top, "replace", blob, lie)
    assert git(top, "show", "HEAD:a") == "false"
    assert Repo.find(top).blob_at(made, top / "a") == b"true"


def test_dirty_are_the_changed_files_of_head_only(top: Path) -> None:
    for name in ("kept", "changed", "gone", "staged"):
        (top / name).write_text("one")
    commit(top, "kept", "changed", "gone", "staged")
    (top / "changed").write_text("two")
    (top / "staged").write_text("two")
    (top / "gone").unlink()
    (top / "new").write_text("new")
    (top / "added").write_text("new")
    git(top, "add", "added", "staged")
    assert sorted(Repo.find(top).dirty_paths(top)) == ["changed", "gone", "staged"]


def test_dirty_is_asked_without_running_a_filter(top: Path) -> None:
    for name in ("kept", "mode", "link", "other ü"):
        (top / name).write_text("one")
    assert Repo.find(top).dirty_paths(top) == []
    commit(top, "kept", "mode", "link", "other ü")
    (top / "other ü").write_text("two")
    (top / "mode").chmod(0o755)
    (top / "link").unlink()
    (top / "link").symlink_to("kept")
    (top / ".gitattributes").write_text("* filter=odd\n")
    git(top, "config", "filter.odd.clean", f"touch {top.parent / 'ran'}; echo one")
    assert sorted(Repo.find(top).dirty_paths(top)) == ["link", "mode", "other ü"]
    assert not (top.parent / "ran").exists()


def test_shallow_clones_and_grafts_are_refused(top: Path, tmp_path: Path) -> None:
    (top / "a").write_text("a")
    first = commit(top, "a")
    (top / "a").write_text("b")
    commit(top, "a")
    Repo.find(top).refuse_partial_history()
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{top}", str(clone))
    assert Repo.find(clone).is_shallow()
    with pytest.raises(WrongState, match="shallow") as caught:
        Repo.find(clone).refuse_partial_history()
    assert caught.value.next_step == "git fetch --unshallow"
    (top / ".git" / "info").mkdir(exist_ok=True)
    (top / ".git" / "info" / "grafts").write_text(first + "\n")
    with pytest.raises(WrongState, match="grafts"):
        Repo.find(top).refuse_partial_history()


def test_a_merge_hides_no_commit_of_a_side_branch(top: Path) -> None:
    (top / "f").write_text("0")
    (top / "g").write_text("0")
    first = commit(top, "f", "g")
    git(top, "checkout", "-q", "-b", "side")
    (top / "f").write_text("1")
    side_1 = commit(top, "f")
    (top / "f").write_text("0")
    side_2 = commit(top, "f")
    git(top, "checkout", "-q", "main")
    (top / "g").write_text("1")
    main = commit(top, "g")
    git(top, "merge", "-q", "--no-ff", "-m", "m", "side")
    repo = Repo.find(top)
    assert git(top, "rev-list", "HEAD", "--", "f").split() == [first]
    assert repo.commits_touching(top / "f") == [first, side_1, side_2]
    assert repo.is_ancestor(first, side_2)
    assert not repo.is_ancestor(side_1, main)
    assert {side_2, repo.head()} == repo.descendants(side_1)
    assert repo.parents(side_1) == [first]


def test_submodules_ignored_and_tracked_files_are_told(top: Path, tmp_path: Path) -> None:
    (top / "d").mkdir()
    (top / "d" / "f").write_text("f")
    (top / ".gitignore").write_text("*.tmp\n")
    (top / "d" / "x.tmp").write_text("x")
    made = commit(top, "d/f", ".gitignore")
    git(top, "update-index", "--add", "--cacheinfo", f"160000,{made},d/sub")
    repo = Repo.find(top / "d")
    assert repo.has_submodules_in([top / "d"]) == ["d/sub"]
    assert repo.has_submodules_in([top / ".gitignore"]) == []
    assert repo.ignored([top / "d" / "f", top / "d" / "x.tmp"]) == ["d/x.tmp"]
    assert repo.tracked(top / "d") == {"d/f", "d/sub"}


def test_names_are_not_patterns(top: Path) -> None:
    for name in ("*", "a", ":(top)b", "ü"):
        (top / name).write_text("1")
    commit(top, "*", "a", ":(top)b", "ü")
    (top / "*").write_text("2")
    made = commit(top, "*")
    repo = Repo.find(top)
    assert repo.commits_touching(top / "*")[-1] == made
    assert made not in repo.commits_touching(top / "a")
    assert "ü" in repo.tracked(top)


def test_tags_are_annotated_and_never_moved(top: Path) -> None:
    (top / "a").write_text("a")
    made = commit(top, "a")
    repo = Repo.find(top)
    assert repo.tag("prereg/s/sealed") is None
    repo.annotate("prereg/s/sealed", made, "Sealed s\n\nPrereg-Seal: x\n", principal="ada@example.org")
    tag = repo.tag("prereg/s/sealed")
    assert tag is not None
    assert tag.target == made
    assert tag.message == "Sealed s\n\nPrereg-Seal: x\n"
    with pytest.raises(WrongState, match="already exists"):
        repo.annotate("prereg/s/sealed", made, "again\n", principal="ada@example.org")


def test_a_link_is_not_committed(top: Path) -> None:
    (top / "l").symlink_to("/etc/hostname")
    with pytest.raises(VerificationFailed, match="is a link"):
        commit(top, "l")


def test_a_path_outside_is_refused(top: Path, tmp_path: Path) -> None:
    with pytest.raises(WrongState, match="outside"):
        Repo.find(top).relative(tmp_path / "x")


def test_a_held_index_is_waited_for_and_then_named(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prereg.store.repo._ATTEMPTS", 2)
    (top / "a").write_text("a")
    with (top / ".git" / "index.lock").open("w"), pytest.raises(WrongState, match=r"index\.lock"):
        commit(top, "a")
    assert Repo.find(top).head() is None
    (top / ".git" / "index.lock").unlink()
    commit(top, "a")


@pytest.mark.parametrize("lock", ["index.lock", "HEAD.lock", "refs/heads/main.lock"])
def test_a_lock_that_a_killed_git_left_is_taken_away(
    top: Path, lock: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prereg.store.repo._ATTEMPTS", 2)
    (top / "a").write_text("a")
    (top / ".git" / lock).write_text("")
    with subprocess.Popen(["git", "cat-file", "--batch"], cwd=top, stdin=subprocess.PIPE) as working:
        with pytest.raises(WrongState, match=r"\.lock"):
            commit(top, "a")
        assert (top / ".git" / lock).exists()
        working.kill()
    commit(top, "a")
    assert not (top / ".git" / lock).exists()


@pytest.mark.parametrize("setting", ["extensions.partialClone=origin", "remote.origin.promisor=true"])
def test_a_partial_clone_is_refused(tmp_path: Path, setting: str) -> None:
    repo = Repo.create(tmp_path)
    name, _, value = setting.partition("=")
    subprocess.run(["git", "config", name, value], cwd=tmp_path, check=True)
    with pytest.raises(WrongState, match="partial clone"):
        repo.refuse_partial_history()


def test_a_repository_cannot_make_git_run_a_program(tmp_path: Path) -> None:
    """A missing object and a promisor remote: git would fetch it, by whatever program the remote names."""
    folder = tmp_path / "r"
    folder.mkdir()
    repo = Repo.create(folder)
    (folder / "file").write_text("content")
    commit = repo.commit([folder / "file"], "One", {}, principal="a@example.org")
    blob = repo.blobs_at(commit, folder / "file")["file"][1]
    ran = tmp_path / "ran"
    for setting in (
        ["core.repositoryformatversion", "1"],
        ["extensions.partialClone", "origin"],
        ["remote.origin.promisor", "true"],
        ["protocol.ext.allow", "always"],
        ["remote.origin.url", f"ext::sh -c touch% {ran}"],
    ):
        subprocess.run(["git", "config", *setting], cwd=folder, check=True)
    (folder / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    assert Repo.find(folder).blob_at(commit, folder / "file") is None
    assert not ran.exists()
