"""The lock of a study: where it lies, and who waits for it."""

from __future__ import annotations

import multiprocessing
from pathlib import Path
from typing import Any

import pytest

from prereg.errors import WrongState
from prereg.store.layout import StudyPaths
from prereg.store.lock import lock_file, study_lock
from tests.unit.test_store_ledger import paths

__all__ = ["paths"]


def test_the_lock_lies_outside_the_study_and_may_be_taken_again(paths: StudyPaths) -> None:
    assert paths.root not in lock_file(paths).parents
    assert lock_file(paths).is_relative_to(paths.repository / ".git")
    with study_lock(paths), study_lock(paths):
        assert lock_file(paths).exists()


def test_the_lock_of_a_linked_work_tree_lies_in_its_git_folder(paths: StudyPaths, tmp_path: Path) -> None:
    (paths.repository / ".git").rmdir()
    (paths.repository / ".git").write_text(f"gitdir: {tmp_path / 'main' / 'worktrees' / 'x'}\n")
    assert lock_file(paths).is_relative_to(tmp_path / "main" / "worktrees" / "x")


def test_without_a_repository_the_lock_lies_in_the_cache(
    paths: StudyPaths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (paths.repository / ".git").rmdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert lock_file(paths).is_relative_to(tmp_path / "cache" / "prereg")


def _hold(root: str, ready: Any, done: Any) -> None:
    with study_lock(StudyPaths(root=Path(root))):
        ready.set()
        done.wait(30)


def test_another_process_waits_for_the_lock(paths: StudyPaths) -> None:
    context = multiprocessing.get_context("spawn")
    ready, done = context.Event(), context.Event()
    holder = context.Process(target=_hold, args=(str(paths.root), ready, done))
    holder.start()
    try:
        assert ready.wait(30)
        with pytest.raises(WrongState, match="another prereg"), study_lock(paths, wait=0.1):
            pass
    finally:
        done.set()
        holder.join(30)
    with study_lock(paths, wait=5):
        pass
