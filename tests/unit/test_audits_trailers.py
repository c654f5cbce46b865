"""Trailers and tags: what git says of the seals and of the ledger."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from audits_kit import failed, look, make_keys
from audits_plan import Plan
from audits_seals import Sealed, Step, amend, build, second, well
from audits_tools import make_key, run, sha


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
    builder = build(tmp_path, keys, second(), amend(), after=(_tagged("other"), _tagged("deep/amended-1")))
    before = look(builder.folder).steps[9].applied
    run("git", "tag", "-d", "prereg/tiny/sealed", "prereg/tiny/amended-1", cwd=builder.root)
    well(builder)
    assert look(builder.folder).steps[9].applied == before - 2


TAGS: dict[str, tuple[Step, str]] = {
    "of the first seal on the second": (_tagged("sealed"), "is not that seal"),
    "of the second seal on the first": (_tagged("amended-1", "HEAD~2"), "is not that seal"),
    "before there was a seal": (_tagged("sealed", "HEAD~3"), "is not that seal"),
    "of an amendment that never was": (_tagged("amended-2"), "the lineage does not have"),
    "of a number with a zero before it": (_tagged("amended-01"), "the lineage does not have"),
    "of amendment zero": (_tagged("amended-0"), "the lineage does not have"),
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


SAYS = "Prereg-Study: tiny"
MESSAGES = {
    SAYS: False,
    f"{SAYS}\n\n": False,
    f"x\n\n{SAYS}\n\nthe end": False,
    "x\n\nSome words.\nPrereg-Study:\n tiny": False,
    f"x\n\n {SAYS}": False,
    "x\n\nPrereg-Study: tidy": False,
    f"x\n\n{SAYS}": True,
    "x\n\npREREG-sTUDY: tiny": True,
    f"x\n\nSome words.\n{SAYS}\n more\nand more words": True,
    f"x\n\n---\n{SAYS}": True,
    f"x\n\ny\n \n# {SAYS}\n{SAYS}\n\n": True,
}
"""Messages, and whether they say that the commit is of the study."""


def test_what_a_trailer_is(tmp_path: Path, keys: Path) -> None:
    """A line of the last paragraph that is not the first, whatever else stands there or git is told."""
    builder = build(tmp_path, keys, second(upto="sealed"))
    run("git", "config", "trailer.separators", "=", cwd=builder.root)
    message = tmp_path / "message"
    for text, says in MESSAGES.items():
        message.write_text(text)
        options = ("-q", "--allow-empty", "--cleanup=verbatim", "-F", str(message))
        run("git", "commit", *options, cwd=builder.root)
        found = failed(look(builder.folder))
        assert ("0 trailers Prereg-Seal" in found.get(9, "")) == says, (text, found)
        run("git", "reset", "-q", "--soft", "HEAD~1", cwd=builder.root)


ZERO = "0" * 64
OF_TAGS: dict[str, tuple[str, str]] = {
    "as it is": ("Prereg-Seal: {seal}\nPrereg-Ledger-Head: {head}", ""),
    "some": ("Prereg-Seal: {seal}", ""),
    "no trailers": ("Prereg-Seal: {zero}\n\nwords", ""),
    "another seal": ("prereg-seal: {zero}\nPrereg-Ledger-Head: {head}", "Prereg-Seal that is not that seal"),
    "the seal it amends": ("Prereg-Seal: {first}", "Prereg-Seal that is not that seal"),
    "one of two": ("Prereg-Seal: {seal}\nPrereg-Seal: {zero}", "Prereg-Seal that is not that seal"),
    "another head": ("Prereg-Seal: {seal}\nPrereg-Ledger-Head: {zero}", "not the digest of a line"),
    "before a signature": (
        "Prereg-Seal: {zero}\n-----BEGIN PGP SIGNATURE-----\n\niQ\n-----END PGP SIGNATURE-----",
        "Prereg-Seal that is not that seal",
    ),
}


def test_what_a_tag_says(tmp_path: Path, keys: Path) -> None:
    builder = build(tmp_path, keys, second(upto="sealed"), amend())
    first = next((builder.folder / "seal/lineage").iterdir()).name
    named = {"seal": builder.digest, "head": sha(builder.lines[-1]), "zero": ZERO, "first": first}
    for name, (text, says) in OF_TAGS.items():
        message = "amended\n\n" + text.format(**named)
        run("git", "tag", "-f", "-a", "-m", message, "prereg/tiny/amended-1", cwd=builder.root)
        found = failed(look(builder.folder))
        if says:
            assert set(found) == {9} and "tag prereg/tiny/amended-1 " in found[9], (name, found)
            assert says in found[9], (name, found)
        else:
            assert found == {}, name
