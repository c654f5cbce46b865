"""The next step of an error can be typed as it is printed."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from prereg.audit import run as auditing
from prereg.cli.next_step import typed
from prereg.errors import PreregError
from prereg.seal.keys import load_key
from prereg.seal.tell import LONGEST, words_of
from prereg.seal.trust import add_signer
from prereg.store.layout import study_paths
from tests.unit.study_fixture import fabricate_records, git, make_study, seal
from tests.unit.test_cli import prereg

CASES = {
    "prereg diff DIR": "prereg diff studies/x",
    "prereg collect DIR": "prereg collect studies/x --key KEY",
    "prereg amend DIR, if an amendment was interrupted": "prereg amend studies/x --reason WHY --key KEY, "
    "if an amendment was interrupted",
    "prereg timestamp studies/x --url U --key K": "prereg timestamp studies/x --url U --key K",
    "git checkout -- records": "git checkout -- studies/x/records",
    "git checkout -- studies/x, then prereg deviate studies/x": "git checkout -- studies/x, "
    "then prereg deviate studies/x --text WHAT --key KEY",
    "rm code/x": "rm studies/x/code/x",
    "rm -r stamps/2": "rm -r studies/x/stamps/2",
    "chmod 644 coin.py": "chmod 644 studies/x/coin.py",
    "git config core.autocrlf false && rm a.json && git checkout -- a.json": "git config core.autocrlf false "
    "&& rm studies/x/a.json && git checkout -- studies/x/a.json",
    "chmod 600 keys/ada": "chmod 600 keys/ada",
    "git checkout -- /abs/file": "git checkout -- /abs/file",
    "prereg push DIR --remote origin": "prereg push studies/x --key KEY --remote origin",
    "prereg relocate --help": "prereg relocate --help",
    "prereg relocate DIR --help": "prereg relocate studies/x --help",
    "ada@example.org runs prereg push studies/x once more": "ada@example.org runs "
    "prereg push studies/x --key KEY once more",
}


@pytest.mark.parametrize("step", CASES)
def test_folder_and_key_are_filled_in(step: str) -> None:
    assert typed(step, Path("studies/x")) == CASES[step]


REFUSALS: dict[str, tuple[Callable[[], object], str, str]] = {
    "a name with a space": (
        lambda: add_signer(Path("nowhere"), "x y", "", ["author"]), "not a plain name", "--principal NAME"),
    "a role that is none": (
        lambda: add_signer(Path("nowhere"), "x", "", ["boss"]),  # type: ignore[list-item]
        "roles are", "--role author"),
    "a folder for a key": (lambda: load_key("/etc"), "Is a directory", "prereg key new FILE"),
    "a device for a key": (lambda: load_key("/dev/null"), "not a regular file", "prereg key new FILE"),
    "a text that is not UTF-8": (lambda: words_of("a\udcff", "--text"), "not UTF-8", "write it in UTF-8"),
    "a text too long": (lambda: words_of("a" * (LONGEST + 1), "--text"), "at most", "say it shorter"),
    "a file for a study": (lambda: study_paths(Path("/etc/passwd")), "is a file", "such as /etc"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_says_what_next(name: str) -> None:
    call, what, step = REFUSALS[name]
    with pytest.raises(PreregError, match=what) as caught:
        call()
    assert step in (caught.value.next_step or "")


def test_an_auditor_that_takes_too_long_is_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = make_study(tmp_path)

    def late(*_: object, **__: object) -> NoReturn:
        raise subprocess.TimeoutExpired("audits", 3600)

    monkeypatch.setattr(auditing.subprocess, "run", late)
    with pytest.raises(PreregError, match="took over 3600 s") as caught:
        auditing.run_auditor(paths)
    assert (caught.value.next_step or "").startswith("prereg audit DIR")


def test_a_missing_record_is_restored_by_the_command_that_is_printed(tmp_path: Path) -> None:
    paths = make_study(tmp_path)
    seal(paths)
    fabricate_records(paths)
    next(paths.records.rglob("*.jsonl.gz")).unlink()
    done = prereg("analyse", "studies/coin", "--key", "../keys/ada", cwd=paths.repository)
    assert done.returncode == 1, done.stderr
    assert "next:  git checkout -- studies/coin/records" in done.stderr


def test_verify_ends_with_the_next_step_of_the_first_step_that_failed(tmp_path: Path) -> None:
    paths = make_study(tmp_path)
    seal(paths)

    def ends_with(step: str) -> str:
        done = prereg("verify", "studies/coin", cwd=paths.repository)
        assert done.returncode == 1
        assert done.stderr.rstrip().splitlines()[-1] == f"  next:  {step}"
        assert "DIR" not in done.stderr
        return done.stderr

    (paths.root / "coin.py").chmod(0o755)
    ends_with("chmod 644 studies/coin/coin.py")
    (paths.root / "coin.py").write_text("changed")
    said = ends_with("prereg diff studies/coin")
    assert "(next:" not in said.rpartition("error: ")[2]
    value = json.loads(prereg("verify", "studies/coin", "--json", cwd=paths.repository).stdout)
    assert value["steps"][2]["next_step"] == "prereg diff studies/coin"
    git(paths.repository, "checkout", "-q", "--", "studies/coin")
    paths.sums.write_text("x")
    ends_with("prereg diff studies/coin")  # its step knows none of its own
