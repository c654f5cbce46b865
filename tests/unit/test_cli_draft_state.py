"""Verbs that need a seal say so of a draft; a collection interrupted at once says what it left."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from prereg.cli.collect import collect
from prereg.collect import runner
from prereg.errors import EvidenceIncomplete
from tests.unit.study_fixture import make_study, seal
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
