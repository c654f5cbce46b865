"""Section 21: files of attempts and second results dropped and added, claims about them, and their seeds."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from audits_fixture import Builder
from audits_kit import Copy, change, drop, failed, look, make_keys, put
from audits_plan import Plan
from audits_slow import Json
from audits_third import (
    AGAIN,
    ON,
    Step,
    Third,
    build,
    collected,
    copy,
    crash,
    draw,
    end,
    fail,
    rest,
    start,
    third,
    third_exact,
    walks,
)
from audits_tools import sha

HOME = f"records/{ON}"


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_keys(tmp_path_factory.mktemp("audit-keys"))


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory, keys: Path) -> Third:
    """A study that was tried again, with a second result."""
    steps = (*AGAIN[:-1], copy(ON, 1, crash(0, 3)), copy(ON, 0, crash(2), attempt=1), AGAIN[-1])
    return build(tmp_path_factory.mktemp("template"), keys, third(), *steps)


@pytest.fixture
def tampered(template: Third, tmp_path: Path) -> Copy:
    shutil.copytree(template.root, tmp_path / "r", symlinks=True)
    return Copy(tmp_path / "r", template.keys)


def test_the_template_is_well(tampered: Copy) -> None:
    outcome = look(tampered.study)
    assert failed(outcome) == {}
    assert outcome.result == "AGREES"


@pytest.mark.parametrize(
    "path",
    [
        HOME,
        f"{HOME}/00000.jsonl.gz",
        f"{HOME}/00000.meta.json",
        f"{HOME}/00000.duplicate-1.jsonl.gz",
        f"{HOME}.attempt-2",
        f"{HOME}.attempt-2/00002.jsonl.gz",
        f"{HOME}.attempt-2/00002.meta.json",
        f"{HOME}.attempt-2/00001.duplicate-1.jsonl.gz",
    ],
)
def test_removing_what_was_stored_passes_nothing(tampered: Copy, path: str) -> None:
    tampered.drop(path)
    outcome = look(tampered.study)
    assert outcome.result == "FAILED"
    assert "missing" in failed(outcome)[7]
    assert "probe" not in [row["id"] for row in outcome.configurations]


@pytest.mark.parametrize(
    "path",
    [
        f"{HOME}.attempt-1/00000.jsonl.gz",
        f"{HOME}.attempt-10/00000.jsonl.gz",
        f"{HOME}.attempt-02/00000.jsonl.gz",
        f"{HOME}.attempt-2/00001.duplicate-0.jsonl.gz",
        f"{HOME}.attempt-2/00001.duplicate-01.jsonl.gz",
        f"{HOME}.attempt-2/00001.duplicate-1.meta.json",
        f"{HOME}.attempt-2/00001.duplicate-1.jsonl",
        f"{HOME}.attempt-2.attempt-2/00001.jsonl.gz",
        f"{HOME}.again/00001.jsonl.gz",
    ],
)
def test_a_file_at_no_known_place(tampered: Copy, path: str) -> None:
    target = tampered.study / path
    target.parent.mkdir(exist_ok=True)
    target.write_bytes(b"x")
    found = failed(look(tampered.study))
    assert f"{path}: not listed in the manifest, and not at a known place" in found[1]


@pytest.mark.parametrize("number", [2, 3, 4, 9])
@pytest.mark.parametrize("unit", ["main.control.off", "main.nobody.on"])
def test_an_empty_folder_of_an_attempt(tampered: Copy, unit: str, number: int) -> None:
    """It may be there of a unit of the plan, for the three attempts that this protocol allows."""
    path = f"records/{unit}.attempt-{number}"
    (tampered.study / path).mkdir()
    found = failed(look(tampered.study))
    if unit == "main.control.off" and number <= 3:
        assert found == {}
    else:
        assert list(found) == [7] and found[7].startswith(f"{path}: a folder of no unit of the plan")


@pytest.mark.parametrize("upto", ["sealed", "collected"])
def test_an_empty_folder_of_no_unit(tmp_path: Path, keys: Path, upto: str) -> None:
    copy_ = Copy(tmp_path / "r", keys)
    Builder(copy_.root, keys, Plan(upto=upto)).build()
    (copy_.study / "records/main.probe.on").mkdir(parents=True, exist_ok=True)
    assert failed(look(copy_.study)) == {}
    (copy_.study / "records/main.probe.other").mkdir()
    found = failed(look(copy_.study))
    assert list(found) == [7] and found[7].startswith("records/main.probe.other: a folder of no unit")


@pytest.mark.parametrize("path", [f"{HOME}.attempt-2/00000.jsonl.gz", f"{HOME}/00001.duplicate-1.jsonl.gz"])
def test_the_places_of_edition_3_are_unknown_before_it(tmp_path: Path, keys: Path, path: str) -> None:
    copy_ = Copy(tmp_path / "r", keys)
    Builder(copy_.root, keys, Plan(upto="collected")).build()
    (copy_.study / path).parent.mkdir(exist_ok=True)
    (copy_.study / path).write_bytes(b"x")
    assert f"{path}: not listed in the manifest" in failed(look(copy_.study))[1]


PROBE = ("configurations", 1)
CLAIMS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "no attempts": (drop(*PROBE, "attempts"), "probe /attempts: not claimed"),
    "no duplicates": (drop("configurations", 0, "duplicates"), "control /duplicates: not claimed"),
    "another attempt": (put(*PROBE, "attempts", "on", to=1), "probe /attempts/on: claimed 1, derived 2"),
    "a copy less": (
        put(*PROBE, "duplicates", "on", "copies", to=1), "probe /duplicates/on/copies: claimed 1, derived 3",
    ),
    "less that differs": (
        put(*PROBE, "duplicates", "on", "differing", to=0),
        "probe /duplicates/on/differing: claimed 0, derived 3",
    ),
    "a ceiling": (put(*PROBE, "reasons", to=["ceiling"]), "probe /reasons"),
}  # fmt: skip


@pytest.mark.parametrize("name", CLAIMS)
def test_a_claim_that_does_not_follow_disagrees(tmp_path: Path, keys: Path, name: str) -> None:
    edit, says = CLAIMS[name]
    steps = (*AGAIN[:-1], copy(ON, 1, crash(0, 3)), copy(ON, 0, crash(2), attempt=1), AGAIN[-1])
    outcome = look(build(tmp_path, keys, change("decisions", edit, make=third), *steps).folder)
    assert list(failed(outcome)) == [13]
    assert says in failed(outcome)[13]


def test_invalid_where_the_protocol_says_inconclusive(tmp_path: Path, keys: Path) -> None:
    def edit(value: Json) -> None:
        value["configurations"][1] |= {"verdict": "INVALID", "reasons": ["unit-lost"]}

    plan = change("decisions", edit, make=lambda **o: third(on_ceiling="INCONCLUSIVE", **o))
    steps = (start(), fail(ON, "unit-ceiling"), *rest(ON), end())
    found = failed(look(build(tmp_path, keys, plan, *steps).folder))
    assert 'probe /verdict: claimed "INVALID", derived "INCONCLUSIVE"' in found[13]


def test_seeds_of_several_attempts_are_used_once(tmp_path: Path, keys: Path) -> None:
    """A study beside it meets the seeds of an attempt that counts no more, each named once."""
    steps = (start(), draw(ON, [0, 1]), fail(ON), draw(ON, [1]), fail(ON, "unit-ceiling"), *rest(ON), end())
    first = build(tmp_path, keys, third(), *steps)
    outcome = look(first.folder)
    assert failed(outcome) == {}
    # Unit number 3 has the seeds from 1030 on, of which the shards 0 and 1 used eight.
    beside = Builder(tmp_path / "r", keys, Plan(study="second", first_seed=1037))
    beside.build()
    found = failed(look(first.folder))
    assert list(found) == [10]
    # What the other study used is named beside its block, and this study's own use with its block.
    assert found[10].count("block block-3 of tiny and used by main.control.off of second") == 1
    theirs = failed(look(beside.folder))
    assert list(theirs) == [10]
    # Once with the block of the other study, and once with what it used.
    assert theirs[10].count("used by main.probe.on of tiny share [1037, 1038) at 64 bits") == 2
    assert "attempt-2" not in theirs[10]


def test_trees_of_later_attempts_have_the_seeds_of_the_unit(tmp_path: Path, keys: Path) -> None:
    first = build(tmp_path, keys, third_exact(), start(), fail("walk.probe.on"), *walks(), end())
    assert failed(look(first.folder)) == {}
    last = int(first.files["seeds.json"]["blocks"][-3]["first"])
    beside = Builder(tmp_path / "r", keys, Plan(study="second", first_seed=last + 3))
    theirs = failed(look(beside.build()))
    assert list(theirs) == [10]
    assert "used by walk.probe.on of tiny share" in theirs[10]


def test_a_relocated_file_of_a_later_attempt(tmp_path: Path, keys: Path) -> None:
    def relocate(path: str) -> Step:
        def step(b: Third) -> None:
            data = (b.folder / path).read_bytes()
            files = [{"from": "/mnt/x", "to": path, "size": len(data), "sha256": sha(data)}]
            body = {"seal": b.digest, "reason": "a disk was full", "files": files}
            b.entry("relocation", "col@example.org", body)

        return step

    well = build(tmp_path / "a", keys, collected(), *AGAIN, relocate(f"{HOME}.attempt-2/00001.jsonl.gz"))
    assert failed(look(well.folder)) == {}
    steps = (start(), *rest(), copy(ON, 1, crash(0, 3)), end())
    ill = build(tmp_path / "b", keys, collected(), *steps, relocate(f"{HOME}/00001.duplicate-1.jsonl.gz"))
    assert "is no file of a shard that was stored before" in failed(look(ill.folder))[6]
