"""Trailers and tags: what git says of the seals and of the ledger."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from audits_kit import failed, look, make_keys
from audits_plan import Plan
from audits_seals import Sealed, Step, amend, build, second, well
from audits_tools import make_key, run


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make_keys(tmp_path_factory.mktemp("audit-keys"))
    make_key(folder, "third")
    return folder


def _tagged(name: str, commit: str = "HEAD") -> Step:
    return lambda b: b.tag(name, commit)


def _tagged_tree(b: Sealed) -> None:
    run("git", "tag", "-f", "prereg/tiny/sealed", "HEAD^{tree}", cwd=b.root)


def test_tags_that_did_not_travel_are_not_missed(tmp_path: Path, keys: Path) -> None:
    builder = build(tmp_path, keys, second(), amend(), after=(_tagged("other"), _tagged("amended-01")))
    before = look(builder.folder).steps[9].applied
    run("git", "tag", "-d", "prereg/tiny/sealed", "prereg/tiny/amended-1", cwd=builder.root)
    well(builder)
    assert look(builder.folder).steps[9].applied == before - 2


TAGS: dict[str, tuple[Step, str]] = {
    "of the first seal on the second": (_tagged("sealed"), "is not that seal"),
    "of the second seal on the first": (_tagged("amended-1", "HEAD~2"), "is not that seal"),
    "before there was a seal": (_tagged("sealed", "HEAD~3"), "is not that seal"),
    "of an amendment that never was": (_tagged("amended-2"), "the lineage does not have"),
    "on a tree": (_tagged_tree, "on no commit"),
}


@pytest.mark.parametrize("name", TAGS)
def test_a_tag_on_another_commit(tmp_path: Path, keys: Path, name: str) -> None:
    step, says = TAGS[name]
    found = failed(look(build(tmp_path, keys, second(), amend(), after=(step,)).folder))
    assert set(found) == {9} and says in found[9], found


TRAILERS: dict[str, tuple[dict[str, Any], str]] = {
    "no seal": ({"Prereg-Seal": None}, "0 trailers Prereg-Seal"),
    "no head": ({"prereg-ledger-head": None}, "0 trailers Prereg-Ledger-Head"),
    "another seal": ({"Prereg-Seal": "0" * 64}, "not a seal of the lineage"),
    "another head": ({"prereg-ledger-head": "0" * 64}, "not the digest of a line"),
    "two seals": ({"PREREG-SEAL": "0" * 64}, "2 trailers Prereg-Seal"),
}


@pytest.mark.parametrize("name", TRAILERS)
@pytest.mark.parametrize("edition", [1, 2])
def test_a_commit_whose_trailers_are_not_so(tmp_path: Path, keys: Path, name: str, edition: int) -> None:
    changes, says = TRAILERS[name]

    def edit(kind: str, said: Any) -> Any:
        if kind != "trailers":
            return said
        said = {key.lower() if key.endswith("Head") else key: value for key, value in said.items()} | changes
        return {key: value for key, value in said.items() if value is not None}

    plan = second(edit, upto="sealed") if edition == 2 else Plan(edit=edit, upto="sealed")
    found = failed(look(build(tmp_path, keys, plan).folder))
    assert set(found) == {9} and says in found[9], found


def test_a_commit_of_another_study_or_before_the_seal_has_its_own_trailers(
    tmp_path: Path, keys: Path
) -> None:
    def edit(kind: str, said: Any) -> Any:
        return said | {"Prereg-Study": "tidy", "Prereg-Seal": "x"} if kind == "trailers" else said

    plan = Plan(edit=edit, upto="sealed")
    builder = build(tmp_path, keys, plan)
    well(builder)
    run("git", "commit", "-q", "--allow-empty", "-m", "Prereg-Study: tiny", cwd=builder.root)
    run("git", "commit", "-q", "--allow-empty", "-m", "x\n\nPrereg-Study: tiny\n\nthe end", cwd=builder.root)
    well(builder)
    run(
        "git",
        "commit",
        "-q",
        "--allow-empty",
        "-m",
        "x\n\nSome words.\nPrereg-Study:\n tiny",
        cwd=builder.root,
    )
    assert 9 in failed(look(builder.folder))
