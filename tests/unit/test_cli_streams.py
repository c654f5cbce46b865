"""Streams that are closed, full or unread, and too little memory: the exit code says how the verb ended."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from prereg.store.layout import StudyPaths
from tests.unit import study_fixture
from tests.unit.test_cli import PREREG
from tests.unit.third_fixture import make_third_study


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> StudyPaths:
    paths = study_fixture.make_study(tmp_path_factory.mktemp("streams"))
    study_fixture.seal(paths)
    return paths


def shell(line: str, *, study: Path) -> tuple[int, str, str]:
    """Run a line of bash where `$0` is prereg and `$1` the study; the status is that of its first program."""
    line += "; exit ${PIPESTATUS[0]}"
    done = subprocess.run(
        ["bash", "-c", line, PREREG, str(study)], capture_output=True, text=True, check=False
    )
    assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr, done.stderr
    return done.returncode, done.stdout, done.stderr


SOUND = {
    "stderr closed": '"$0" verify "$1" 2>&-',
    "stderr full": '"$0" verify "$1" 2>/dev/full',
    "nobody reads stderr": '"$0" verify "$1" 2>&1 | true',
    "stderr closed, with output": '"$0" verify "$1" --json 2>&-',
    "all closed, and nothing asked for": '"$0" verify "$1" <&- >&- 2>&-',
    "stdout full, and nothing asked for": '"$0" verify "$1" >/dev/full',
    "nobody reads stdout": '"$0" verify "$1" --json | true',
}


@pytest.mark.parametrize("name", SOUND)
def test_what_nobody_hears_changes_no_exit_code(name: str, study: StudyPaths) -> None:
    assert shell(SOUND[name], study=study.root)[0] == 0


@pytest.mark.parametrize("stderr", ["2>&-", "2>/dev/full", "2>&1 | true"])
def test_what_nobody_hears_of_a_failure_changes_no_exit_code(stderr: str, tmp_path: Path) -> None:
    paths = study_fixture.make_study(tmp_path)
    key = tmp_path / "keys" / "ada"
    assert shell(f'"$0" collect "$1" --key {key} {stderr}', study=paths.root)[0] == 4
    study_fixture.seal(paths)
    (paths.root / "coin.py").write_text("changed")
    assert shell(f'"$0" verify "$1" {stderr}', study=paths.root)[0] == 1
    assert shell(f'"$0" verify "$1" --json {stderr}', study=paths.root)[0] == 1
    assert shell('"$0" verify "$1" --json | true', study=paths.root)[0] == 1


LOST = {
    "closed": '"$0" verify "$1" --json >&-',
    "full": '"$0" verify "$1" --json >/dev/full',
    "closed, and stderr too": '"$0" verify "$1" --json >&- 2>&-',
    "full, of a state": '"$0" status "$1" --json >/dev/full',
    "full, of an error": '"$0" collect "$1" --key nowhere --json >/dev/full',
    "full, of wrong use": '"$0" verify "$1" --nosuch --json >/dev/full',
    "full, of the version": '"$0" --version >/dev/full',
    "closed, of a help page": '"$0" verify --help >&-',
}


@pytest.mark.parametrize("name", LOST)
def test_output_that_was_asked_for_and_is_lost_ends_with_3(name: str, study: StudyPaths) -> None:
    code, out, err = shell(LOST[name], study=study.root)
    assert (code, out) == (3, "")
    assert "the system refuses" in err or "2>&-" in LOST[name]


def test_no_file_of_a_study_gets_the_number_of_a_closed_stream(tmp_path: Path) -> None:
    paths = make_third_study(tmp_path)
    study_fixture.seal(paths)
    before = paths.ledger.read_bytes()
    key = tmp_path / "keys" / "ada"
    line = f'"$0" close "$1" --reason Over. --unfinished --key {key} <&- >&- 2>&-'
    assert shell(line, study=paths.root)[0] == 0
    after = paths.ledger.read_bytes()
    assert after.startswith(before) and json.loads(after[len(before) :])["type"] == "closed"
    assert shell('"$0" verify "$1"', study=paths.root)[0] == 0


def test_a_text_from_a_closed_stdin_is_empty(study: StudyPaths) -> None:
    key = study.repository.parent / "keys" / "ada"
    code, _, err = shell(f'"$0" deviate "$1" --key {key} <&-', study=study.root)
    assert code == 2 and "empty" in err


@pytest.mark.parametrize("kib", [60_000, 120_000, 200_000, 250_000, 300_000, 350_000])
def test_too_little_memory_is_no_bug_and_no_failed_check(kib: int, study: StudyPaths) -> None:
    code, _, err = shell(f'ulimit -v {kib}; "$0" verify "$1"', study=study.root)
    assert code in (0, 3), err
    assert code == 0 or "refuses" in err
