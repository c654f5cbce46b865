"""The trees of an exact stage as records: verified, and refused where a field is not the plan's."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import study_fixture
from exact_fixture import fabricate, make_exact_study
from exact_leaves import leaves_of, tree_meta

from prereg.errors import EvidenceIncomplete, VerificationFailed
from prereg.model.plan import plan
from prereg.model.record import LeafRecord
from prereg.model.tree import ClosedCheck, PathCheck, RandomnessCheck, RefillCheck, TreeMeta
from prereg.seal.evidence import authenticated_records, exact_trees
from prereg.seal.verify import verify_report, verify_study
from prereg.store.layout import StudyPaths
from prereg.store.seeds import seeds_check

UNIT = "walked.other.on"


def sealed(tmp_path: Path, change: Callable[[dict[str, Any]], None] | None = None) -> StudyPaths:
    paths = make_exact_study(tmp_path, change)
    study_fixture.seal(paths)
    return paths


def with_tree(
    tmp_path: Path,
    leaves: Callable[[list[LeafRecord]], list[LeafRecord]] = list,
    meta: Callable[[TreeMeta], TreeMeta] = lambda m: m,
) -> StudyPaths:
    """A collected study one of whose trees a collector with a key wrote otherwise."""
    paths = sealed(tmp_path)
    verified = verify_study(paths)
    (shard,) = [s for s in plan(verified.study.protocol, verified.study.seeds) if s.unit.id == UNIT]
    whole = leaves_of(verified.seal, shard)
    fabricate(paths, trees={UNIT: (leaves(whole), meta(tree_meta(whole)))})
    return paths


def renumbered(leaves: list[LeafRecord]) -> list[LeafRecord]:
    return [dataclasses.replace(leaf, leaf=i) for i, leaf in enumerate(leaves)]


def test_a_study_with_an_exact_stage_verifies(tmp_path: Path) -> None:
    paths = sealed(tmp_path)
    fabricate(paths)
    for step in verify_report(paths):
        assert step.status != "failed", step
    (records,) = [s for s in verify_report(paths) if s.number == 7]
    assert "16 leaves" in records.detail and "800 draws" in records.detail
    assert seeds_check(paths.studies) == []


def test_the_trees_are_those_that_were_stored(tmp_path: Path) -> None:
    paths = sealed(tmp_path)
    fabricate(paths)
    verified = verify_study(paths)
    trees = exact_trees(verified)
    assert list(trees) == [u.id for u in verified.study.protocol.units("exact")]
    tree = trees[UNIT]
    assert [leaf.choices for leaf in tree.leaves] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert [leaf.p for leaf in tree.leaves] == [(0.5, 0.75), (0.5, 0.25)] * 2
    assert (tree.meta.runs, tree.meta.admission.closed.closed) == (2, 2)
    assert (tree.leaves[0].proposals, tree.leaves[0].verifications, tree.leaves[0].accepted) == (2, 1, 1)
    assert {unit.stage for unit, _ in authenticated_records(verified)} == {"drawn"}


def test_a_study_of_one_exact_stage_alone_verifies(tmp_path: Path) -> None:
    def alone(protocol: dict[str, Any]) -> None:
        protocol["stages"] = protocol["stages"][1:]
        protocol["sampling"] = {}
        protocol["decision"] = {"rule": "exact", "threshold": 0, "calibration_allowance": None}
        protocol["exact"]["premise_alpha"] = None

    paths = make_exact_study(
        tmp_path,
        alone,
        predictions=[
            {
                "id": "p",
                "statement": "It departs.",
                "claim": {
                    "kind": "count",
                    "configurations": ["other", "same"],
                    "verdict": "DEPARTS",
                    "at_least": 1,
                    "channel": "exact",
                },
            }
        ],
    )
    study_fixture.seal(paths)
    fabricate(paths)
    for step in verify_report(paths):
        assert step.status != "failed", step
    assert len(exact_trees(verify_study(paths))) == 4


def test_a_lost_tree_is_left_out(tmp_path: Path) -> None:
    paths = sealed(tmp_path)
    fabricate(paths, invalid={UNIT: "the worker ended"})
    assert UNIT not in exact_trees(verify_study(paths))


def test_a_missing_tree_is_refused(tmp_path: Path) -> None:
    paths = sealed(tmp_path)
    with pytest.raises(EvidenceIncomplete, match="shards are missing"):
        exact_trees(verify_study(paths))


TREES: dict[str, tuple[Callable[[list[LeafRecord]], list[LeafRecord]], str, str]] = {
    "leaves out of order": (
        lambda w: renumbered([w[1], w[0], *w[2:]]),
        "does not follow the line before it",
        "00000.jsonl.gz:2#/choices",
    ),
    "a path that stands twice": (
        lambda w: renumbered([w[0], w[0], *w[1:]]),
        "does not follow the line before it",
        "00000.jsonl.gz:2#/choices",
    ),
    "a number that was left out": (
        lambda w: [*w[:2], dataclasses.replace(w[2], leaf=3), dataclasses.replace(w[3], leaf=4)],
        "is 3; the plan says 2",
        "00000.jsonl.gz:3#/leaf",
    ),
    "another unit's leaf": (
        lambda w: [*w[:3], dataclasses.replace(w[3], unit="walked.same.on")],
        "the plan says 'walked.other.on'",
        "00000.jsonl.gz:4#/unit",
    ),
    "another study's leaf": (
        lambda w: [dataclasses.replace(w[0], seal="0" * 64), *w[1:]],
        "the plan says",
        "00000.jsonl.gz:1#/seal",
    ),
    "another shard's leaf": (
        lambda w: [dataclasses.replace(w[0], shard=1), *w[1:]],
        "is 1; the plan says 0",
        "00000.jsonl.gz:1#/shard",
    ),
}


@pytest.mark.parametrize("name", TREES)
def test_leaves_that_are_no_record(name: str, tmp_path: Path) -> None:
    leaves, what, where = TREES[name]
    paths = with_tree(tmp_path, leaves)
    with pytest.raises(VerificationFailed, match=what) as caught:
        verify_study(paths)
    assert "step 7" in caught.value.what
    assert caught.value.where is not None and caught.value.where.endswith(where)


def admitted(**checks: Any) -> Callable[[TreeMeta], TreeMeta]:
    return lambda m: dataclasses.replace(m, admission=dataclasses.replace(m.admission, **checks))


METAS: dict[str, tuple[Callable[[TreeMeta], TreeMeta], str]] = {
    "a difference that is called ok": (
        admitted(replay=PathCheck(checked=4, differences=1, ok=True)),
        "admission/replay/ok",
    ),
    "nothing amiss that is not called ok": (
        admitted(interference=PathCheck(checked=4, differences=0, ok=False)),
        "admission/interference/ok",
    ),
    "randomness that is called ok": (
        admitted(randomness=RandomnessCheck(unaccounted=1, ok=True)),
        "admission/randomness/ok",
    ),
    "closed leaves that are not counted": (
        admitted(closed=ClosedCheck(closed=1, checked=1, differences=0, reopened=False, ok=True)),
        "admission/closed/closed",
    ),
    "filled leaves that are not counted": (
        admitted(refill=RefillCheck(eligible=0, checked=0, differences=0, expanded=False, ok=True)),
        "admission/refill/eligible",
    ),
    "closed leaves that were reopened": (
        admitted(closed=ClosedCheck(closed=2, checked=2, differences=0, reopened=True, ok=True)),
        "admission/closed/reopened",
    ),
}


@pytest.mark.parametrize("name", METAS)
def test_a_meta_that_contradicts_itself(name: str, tmp_path: Path) -> None:
    meta, where = METAS[name]
    paths = with_tree(tmp_path, meta=meta)
    with pytest.raises(VerificationFailed) as caught:
        verify_study(paths)
    assert "step 7" in caught.value.what
    assert caught.value.where is not None and caught.value.where.endswith(where)


def test_counters_of_an_arm_without_speculation(tmp_path: Path) -> None:
    paths = sealed(tmp_path)
    verified = verify_study(paths)
    (shard,) = [
        s for s in plan(verified.study.protocol, verified.study.seeds) if s.unit.id == "walked.same.off"
    ]
    whole = leaves_of(verified.seal, shard)
    counted = dataclasses.replace(whole[0].counters, proposals=1)
    changed = [dataclasses.replace(whole[0], counters=counted), *whole[1:]]
    fabricate(paths, trees={shard.unit.id: (changed, tree_meta(whole))})
    with pytest.raises(VerificationFailed, match="without a drafter"):
        verify_study(paths)
