"""What a verb names as the next command before any data: what a seal still lacks comes first."""

from __future__ import annotations

from pathlib import Path

import pytest

from prereg.cli.ready import next_verb, show_standing
from prereg.seal.standing import standing
from tests.unit.signing_fixture import asked_study, cosign
from tests.unit.study_fixture import seal
from tests.unit.timestamp_fixture import Authority

FOLDER = Path("studies/coin")


def test_what_is_owed_is_named_before_collect(tmp_path: Path) -> None:
    paths = asked_study(tmp_path, signers=(2, "ada", "bob"))
    seal(paths)
    said = next_verb(standing(paths), FOLDER, "ada.key")
    assert said == "prereg cosign studies/coin --key KEY, by another of its signers"
    cosign(paths, "bob")
    assert next_verb(standing(paths), FOLDER, "ada.key") == "prereg collect studies/coin --key ada.key"


def test_a_stamp_that_is_owed_is_named_with_its_url(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = asked_study(tmp_path, signers=(1, "ada", "bob"), roots=Authority(folder=tmp_path).roots)
    seal(paths)
    after = standing(paths)
    assert next_verb(after, FOLDER, "k") == "prereg timestamp studies/coin --url URL --key k"
    assert after is not None
    show_standing(after)
    said = capsys.readouterr().err
    assert "signed  1 of 1 signatures" in said and "stamp   owed" in said
