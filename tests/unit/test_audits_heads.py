"""Every head that was ever committed is sound, and what one person hands over is signed by that person."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from audits_fixture import Builder
from audits_kit import Copy, commit, failed, look, make_keys
from audits_plan import Plan
from audits_tools import machine, run, sign

LEDGER = "ledger.jsonl"
HEAD = "ledger.head.json"


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_keys(tmp_path_factory.mktemp("audit-keys"))


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory, keys: Path) -> Path:
    root = tmp_path_factory.mktemp("audit-template") / "repository"
    Builder(root, keys, Plan()).build()
    return root


@pytest.fixture
def copy(template: Path, keys: Path, tmp_path: Path) -> Copy:
    shutil.copytree(template, tmp_path / "r", symlinks=True)
    return Copy(tmp_path / "r", keys)


class Unsigned(Builder):
    """Nobody signs the head of the entries of one type; what follows is signed as ever."""

    kind = "analysis"

    def head(self, key: str) -> None:
        if json.loads(self.lines[-1])["type"] != self.kind:
            super().head(key)


@pytest.mark.parametrize("kind", ["analysis", "collection-ended", "sealed"])
def test_a_hand_over_that_was_never_signed(tmp_path: Path, keys: Path, kind: str) -> None:
    builder = Unsigned(tmp_path / "r", keys, Plan())
    builder.kind = kind
    study = builder.build()
    outcome = look(study)
    found = failed(outcome)
    assert list(found) == [9], found
    number = next(i for i, line in enumerate(builder.lines, 1) if json.loads(line)["type"] == kind)
    assert f"{LEDGER} line {number}: " in found[9]
    assert "no commit" in found[9]
    assert outcome.result == "FAILED"
    assert look(study, without_history=True).result == "AGREES"


def test_a_line_followed_by_the_same_person_needs_no_head(tmp_path: Path, keys: Path) -> None:
    """The author who collects need not sign between the seal and the collection."""

    def to_author(_: str, value: Any) -> Any:
        if isinstance(value, dict) and value.get("actor") == "col@example.org":
            return value | {"actor": "ann@example.org"}
        return value

    class Alone(Unsigned):
        kind = "sealed"

        def head(self, key: str) -> None:
            super().head("author" if key == "collector" else key)

    assert look(Alone(tmp_path / "r", keys, Plan(edit=to_author)).build()).result == "AGREES"


def _head(copy: Copy, number: int, **changes: Any) -> bytes:
    lines = (copy.study / LEDGER).read_bytes().splitlines(keepends=True)
    entry = json.loads(lines[number - 1])
    following = json.loads(lines[number])["prev"] if number < len(lines) else None
    value = json.loads((copy.study / HEAD).read_bytes())
    value |= {"seq": number, "time": entry["time"], "actor": entry["actor"]}
    if following is not None:
        value["head"] = following
    return machine(value | changes)


def _put(copy: Copy, head: bytes, key: str, namespace: str = "prereg-ledger") -> None:
    (copy.study / HEAD).write_bytes(head)
    (copy.study / f"{HEAD}.sig").write_bytes(sign(copy.keys / key, head, namespace))


def _linked(copy: Copy) -> None:
    (copy.study / HEAD).rename(copy.root / "elsewhere")
    (copy.study / HEAD).symlink_to("../../elsewhere")


def _wide(copy: Copy) -> None:
    (copy.study / HEAD).write_bytes((copy.study / HEAD).read_bytes() + b"\n")


UNSOUND: dict[str, tuple[Callable[[Copy], object], str]] = {
    "by a stranger": (lambda c: _put(c, _head(c, 1), "stranger"), "is not an allowed key of ann@example.org"),
    "by another who is trusted": (lambda c: _put(c, _head(c, 1), "reviewer"), "is not an allowed key"),
    "of a line that is no more": (lambda c: _put(c, _head(c, 1, head="0" * 64), "author"), "line 1"),
    "of a line that is not yet": (lambda c: _put(c, _head(c, 1, seq=99), "author"), "99"),
    "of another study": (lambda c: _put(c, _head(c, 1, study="tidy"), "author"), "#/study"),
    "that names its signer": (
        lambda c: _put(c, _head(c, 1, actor="rev@example.org"), "reviewer"), "#/actor",
    ),
    "in another namespace": (lambda c: _put(c, _head(c, 1), "author", "prereg-seal"), "namespace"),
    "from before its line": (
        lambda c: _put(c, _head(c, 1, time="2026-11-29T09:00:00.000001+00:00"), "author"), "#/time",
    ),
    "from after its line": (
        lambda c: _put(c, _head(c, 1, time="2026-11-29T12:00:00.000001+00:00"), "author"), "#/time",
    ),
    "of another schema": (lambda c: _put(c, _head(c, 1, schema="prereg/head/v2"), "author"), "#/schema"),
    "that is not canonical": (_wide, HEAD),
    "that is a link": (_linked, "no regular file"),
}  # fmt: skip


@pytest.mark.parametrize("name", UNSOUND)
def test_a_head_that_was_committed_once(copy: Copy, name: str) -> None:
    """It was there in one commit, the next has the right one again: the folder looks as it should."""
    whole = {path: (copy.study / path).read_bytes() for path in (HEAD, f"{HEAD}.sig")}
    tamper, says = UNSOUND[name]
    tamper(copy)
    commit(copy)
    named = run("git", "rev-parse", "HEAD", cwd=copy.root).decode().strip()
    for path, data in whole.items():
        (copy.study / path).unlink()
        (copy.study / path).write_bytes(data)
    commit(copy)
    outcome = look(copy.study)
    found = failed(outcome)
    assert list(found) == [9], found
    assert f"commit {named}" in found[9]
    assert says in found[9]
    assert found[9].count(named) == 1
    assert look(copy.study, without_history=True).result == "AGREES"


def test_a_sound_head_of_an_earlier_line_may_be_committed_again(copy: Copy) -> None:
    whole = {path: (copy.study / path).read_bytes() for path in (HEAD, f"{HEAD}.sig")}
    _put(copy, _head(copy, 1), "author")
    commit(copy)
    for path, data in whole.items():
        (copy.study / path).write_bytes(data)
    commit(copy)
    assert look(copy.study).result == "AGREES"


def test_a_head_on_a_merged_branch_counts_and_is_checked(copy: Copy) -> None:
    run("git", "checkout", "-q", "-b", "side", cwd=copy.root)
    whole = {path: (copy.study / path).read_bytes() for path in (HEAD, f"{HEAD}.sig")}
    _put(copy, _head(copy, 1), "stranger")
    commit(copy)
    named = run("git", "rev-parse", "HEAD", cwd=copy.root).decode().strip()
    for path, data in whole.items():
        (copy.study / path).write_bytes(data)
    commit(copy)
    run("git", "checkout", "-q", "main", cwd=copy.root)
    identity = ("-c", "user.name=x", "-c", "user.email=x@y")
    run("git", *identity, "merge", "-q", "--no-ff", "--no-edit", "side", cwd=copy.root)
    assert named in failed(look(copy.study))[9]
