"""The entries of edition 2 beside amendments: where they stand, and what they say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from audits_kit import failed, look, make_keys
from audits_plan import Plan
from audits_seals import Sealed, Step, amend, build, enter, second, well
from audits_tools import make_key, sha

from audits import states

STEM = "records/main.probe.on/00001"


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make_keys(tmp_path_factory.mktemp("audit-keys"))
    make_key(folder, "third")
    return folder


def _file(b: Sealed, name: str) -> bytes:
    return (b.folder / name).read_bytes()


def relocate(**changes: Any) -> Step:
    """The two files of a shard were copied from elsewhere."""

    def step(b: Sealed) -> None:
        files = []
        for name in (f"{STEM}.jsonl.gz", f"{STEM}.meta.json"):
            data = _file(b, name)
            said = {"from": f"/mnt/{name}", "to": name, "size": len(data), "sha256": sha(data)}
            files.append(said | (changes if name.endswith(changes.pop("of", "")) else {}))
        b.enter("relocation", "col", reason="a disk was full", files=files)

    return step


PUSHED = {"ref": "refs/heads/main", "commit": "0" * 40}


def test_every_other_entry_of_edition_2(tmp_path: Path, keys: Path) -> None:
    before = (
        enter("pushed", remote="https://host.example/r.git", **PUSHED),
        enter("deviation", "col", about=[], text="started late"),
    )
    after = (
        enter("pushed", "col", remote="host.example:r.git", **PUSHED),
        relocate(),
        enter("deviation", about=["probe", "main.probe.on"], text="ran hot"),
    )
    text = well(build(tmp_path, keys, second(), *before, after=after))
    assert "state collected" in text
    assert "deviations: ledger.jsonl line 3 by col@example.org: started late | " in text
    assert "by ann@example.org about probe, main.probe.on: ran hot" in text


@pytest.mark.parametrize(
    ("remote", "user"),
    [
        ("https://host.example?x@y", False),
        ("https://host.example/a@b", False),
        ("://a@b/c", False),
        ("host:22@z:c", False),
        ("/srv/a@b:c", False),
        ("a@b@host.example:c", True),
        ("ssh://a@host.example:22/c", True),
    ],
)
def test_what_names_a_user(remote: str, user: bool) -> None:
    assert (states._USER.match(remote) is not None) == user


def test_a_closed_study_is_closed(tmp_path: Path, keys: Path) -> None:
    plan = second(upto="sealed")
    builder = build(tmp_path, keys, plan, enter("closed", reason="no funds"))
    assert "state closed" in well(builder)
    assert "it stays so" in look(builder.folder).incomplete[0]


CLOSED = enter("closed", reason="done")
BEFORE: dict[str, tuple[Step, str]] = {
    "a user": (enter("pushed", remote="https://me@host.example/r", **PUSHED), "names a user"),
    "a password": (enter("pushed", remote="https://me:word@host.example/r", **PUSHED), "names a user"),
    "a user of ssh": (enter("pushed", remote="git@host.example:r.git", **PUSHED), "names a user"),
    "another seal": (enter("deviation", about=[], text="x", seal="0" * 64), "names another seal"),
    "about nothing": (enter("deviation", about=["nowhere"], text="x"), "no configuration or unit"),
    "a reviewer": (enter("deviation", "rev", about=[], text="x"), "no role author or collector"),
    "a collector closes": (enter("closed", "col", reason="x"), "no role author"),
    "relocated too early": (
        enter("relocation", reason="x", files=[
            {"from": "a", "to": f"{STEM}.jsonl.gz", "size": 1, "sha256": "0" * 64},
        ]), "stored before",
    ),
    "after it was closed": (
        lambda b: (CLOSED(b), enter("deviation", about=[], text="x")(b)), "the study is closed",
    ),
}  # fmt: skip
AFTER: dict[str, tuple[Step, str]] = {
    "an amendment": (amend(), "a collection was started"),
    "another digest": (relocate(sha256="0" * 64), "not what the ledger stored"),
    "another size": (relocate(size=1), "bytes"),
    "another size of a meta": (relocate(size=1, of=".json"), "bytes"),
    "no shard": (relocate(to="records/main.probe.on/99999.meta.json"), "stored before"),
    "no record": (relocate(to="NOTES.md"), "stored before"),
}


@pytest.mark.parametrize("name", BEFORE)
def test_an_entry_that_is_not_as_it_should_be(tmp_path: Path, keys: Path, name: str) -> None:
    step, says = BEFORE[name]
    plan = second(upto="sealed")
    found = failed(look(build(tmp_path, keys, plan, step).folder))
    assert 6 in found and says in found[6]


@pytest.mark.parametrize("name", AFTER)
def test_an_entry_after_the_collection(tmp_path: Path, keys: Path, name: str) -> None:
    step, says = AFTER[name]
    found = failed(look(build(tmp_path, keys, second(), after=(step,)).folder))
    assert 6 in found and says in found[6]


def test_an_entry_of_edition_2_in_a_study_of_edition_1(tmp_path: Path, keys: Path) -> None:
    builder = build(tmp_path, keys, Plan(upto="sealed"), CLOSED)
    assert "is of edition 2" in failed(look(builder.folder))[6]
