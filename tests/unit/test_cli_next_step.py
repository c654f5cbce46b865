"""The next step of an error can be typed as it is printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from prereg.cli.next_step import typed
from tests.unit.study_fixture import fabricate_records, make_study, seal
from tests.unit.test_cli import prereg

CASES = {
    "prereg diff DIR": "prereg diff studies/x",
    "prereg collect DIR": "prereg collect studies/x --key KEY",
    "prereg amend DIR, if an amendment was interrupted": "prereg amend studies/x --key KEY, "
    "if an amendment was interrupted",
    "prereg timestamp studies/x --url U --key K": "prereg timestamp studies/x --url U --key K",
    "git checkout -- records": "git checkout -- studies/x/records",
    "git checkout -- studies/x, then prereg deviate studies/x": "git checkout -- studies/x, "
    "then prereg deviate studies/x --key KEY",
    "git checkout -- /abs/file": "git checkout -- /abs/file",
    "ada@example.org runs prereg push studies/x once more": "ada@example.org runs "
    "prereg push studies/x --key KEY once more",
}


@pytest.mark.parametrize("step", CASES)
def test_folder_and_key_are_filled_in(step: str) -> None:
    assert typed(step, Path("studies/x")) == CASES[step]


def test_a_missing_record_is_restored_by_the_command_that_is_printed(tmp_path: Path) -> None:
    paths = make_study(tmp_path)
    seal(paths)
    fabricate_records(paths)
    next(paths.records.rglob("*.jsonl.gz")).unlink()
    done = prereg("analyse", "studies/coin", "--key", "../keys/ada", cwd=paths.repository)
    assert done.returncode == 1, done.stderr
    assert "next:  git checkout -- studies/coin/records" in done.stderr
