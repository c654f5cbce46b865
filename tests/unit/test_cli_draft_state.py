"""Verbs that need a seal, or a branch, say so; a collection interrupted at once says what it left."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from prereg.cli.collect import collect
from prereg.collect import runner
from prereg.errors import EvidenceIncomplete
from prereg.store.layout import StudyPaths
from tests.unit.second_study import make_second
from tests.unit.study_fixture import git, make_study, seal
from tests.unit.test_cli import prereg

VERBS = {
    "collect": [],
    "analyse": [],
    "audit": [],
    "cosign": [],
    "close": ["--reason", "Done."],
    "push": ["--remote", "origin"],
    "relocate": ["--from", ".", "--reason", "Archived."],
    "deviate": ["--text", "Otherwise."],
    "timestamp": ["--url", "http://127.0.0.1:9"],
}


def test_every_verb_after_the_seal_says_that_a_draft_is_not_sealed(tmp_path: Path) -> None:
    paths = make_study(tmp_path)
    shutil.rmtree(paths.repository / "trust")
    for verb, more in VERBS.items():
        done = prereg(verb, "studies/coin", "--key", "../keys/ada", *more, cwd=paths.repository)
        assert done.returncode == 4, (verb, done.stderr)
        assert "the study is not sealed" in done.stderr and "next:  prereg seal" in done.stderr, verb


def test_no_verb_writes_where_head_is_on_no_branch(tmp_path: Path) -> None:
    """Its commit would be lost with the next checkout, and nobody would be told."""
    paths = make_second(tmp_path)
    refuse_all(paths, {"seal": []})
    seal(paths)
    refuse_all(paths, VERBS | {"amend": ["--reason", "A name."]})


def refuse_all(paths: StudyPaths, verbs: dict[str, list[str]]) -> None:
    """Each of these verbs is refused without a branch, and nothing has changed."""
    git(paths.repository, "checkout", "-q", "--detach")
    before = {file: file.read_bytes() for file in paths.root.rglob("*") if file.is_file()}
    for verb, more in verbs.items():
        done = prereg(verb, "studies/coin", "--key", "../keys/ada", *more, cwd=paths.repository)
        assert done.returncode == 4, (verb, done.stderr)
        assert "HEAD is on no branch" in done.stderr and "next:  git switch -c" in done.stderr, verb
    assert before == {file: file.read_bytes() for file in paths.root.rglob("*") if file.is_file()}
    git(paths.repository, "checkout", "-q", "main")


def test_an_interruption_before_the_first_draw_says_that_nothing_was_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = make_study(tmp_path)
    seal(paths)

    def interrupted(*_: object, **_named: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "collect_study", interrupted)
    key = str(paths.repository.parent / "keys" / "ada")
    with pytest.raises(EvidenceIncomplete, match="interrupted; nothing was drawn") as caught:
        collect(paths.root, key=key, principal=None, workers=1, as_json=False)
    assert caught.value.next_step == f"prereg collect {paths.root} --key {key}"
