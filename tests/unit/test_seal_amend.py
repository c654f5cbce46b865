"""Amendments: before data only, the old seal kept byte for byte, nothing lost when cut off (section 19)."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from prereg.codec.canonical import digest
from prereg.errors import PreregError, UsageError, WrongState
from prereg.seal import amend as amending
from prereg.seal.amend import amend_study, take_back
from prereg.seal.build import SealResult
from prereg.seal.tell import close_study, deviate_study
from prereg.seal.trust import Untrusted
from prereg.seal.verify import verify_report, verify_study
from prereg.store.layout import StudyPaths
from prereg.store.ledger import read_ledger
from prereg.store.repo import Repo
from tests.unit.second_study import edit, second, second_collected, second_collected_once, second_once
from tests.unit.study_fixture import ENVIRONMENTS, SEALED_AT, fabricate_records, git, signing_key

__all__ = ["second", "second_collected", "second_collected_once", "second_once"]


def fewer(protocol: dict[str, Any]) -> None:
    protocol["title"] += ", again"


def amend(paths: StudyPaths, *, who: str = "ada", reason: str = "Too many.", **options: Any) -> SealResult:
    return amend_study(
        paths,
        reason=reason,
        key=signing_key(paths, who),
        principal=f"{who}@example.org",
        environments=options.pop("environments", ENVIRONMENTS),
        now=SEALED_AT + timedelta(days=len(read_ledger(paths.ledger.read_bytes()))),
        **options,
    )


def amended(paths: StudyPaths, change: Callable[[dict[str, Any]], object] = fewer) -> SealResult:
    edit(paths, change)
    return amend(paths)


def files(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_a_clock_that_is_set_back_enters_no_amendment_before_it_was_made(second: StudyPaths) -> None:
    edit(second, fewer)
    ahead = datetime.now(UTC) + timedelta(days=1)
    amend_study(
        second,
        reason="Too many.",
        key=signing_key(second, "ada"),
        principal="ada@example.org",
        environments=ENVIRONMENTS,
        now=ahead,
    )
    verified = verify_study(second)
    assert verified.entries[-1].time == verified.manifest.created == ahead.isoformat(timespec="microseconds")


def test_the_old_seal_is_kept_and_the_new_one_names_it(second: StudyPaths) -> None:
    old, before = digest(second.manifest.read_bytes()), files(second.seal)
    made = amended(second)
    verified = verify_study(second)
    assert (verified.seal, verified.state, verified.manifest.amends) == (made.seal, "sealed", old)
    assert files(second.lineage / old) == before
    entry = verified.entries[-1]
    assert (entry.type, entry.body["previous"], entry.body["reason"]) == ("amended", old, "Too many.")
    assert made.tag == "prereg/coin/amended-1"
    assert git(second.repository, "rev-parse", f"{made.tag}^{{commit}}").strip() == made.commit
    assert git(second.repository, "status", "--porcelain") == ""
    assert verified.study.protocol.title == "A coin, again"


def test_amendments_follow_each_other_and_data_follows_the_last(second: StudyPaths) -> None:
    (second.root / "NOTES.md").unlink()
    (second.root / "more.txt").write_text("new")
    seals = [digest(second.manifest.read_bytes()), amended(second).seal]
    deviate_study(second, "Said.", key=signing_key(second), principal="ada@example.org")
    seals.append(amended(second).seal)
    fabricate_records(second)
    verified = verify_study(second)
    assert (verified.state, verified.seal) == ("collected", seals[-1])
    steps = verify_report(second)
    assert [s.status for s in steps[:7]] == ["ok"] * 7 and steps[8].status == "ok"
    assert (steps[1].applied, steps[3].applied) == (3, 3)
    assert steps[1].detail == f"seal {seals[-1]}, amendment number 2"
    assert steps[8].detail.endswith("5 commits name the study, 3 tags; HEAD holds 124 files")
    assert sorted(p.name for p in second.lineage.iterdir()) == sorted(seals[:2])


def test_seeds_may_move_and_the_study_does_not_overlap_itself(second: StudyPaths) -> None:
    from prereg.store.seeds import seeds_check

    def moved(seeds: dict[str, Any]) -> None:
        for block in seeds["blocks"]:
            block.update(first=str(int(block["first"]) + 3), end=str(int(block["end"]) + 3))

    edit(second, moved, "seeds.json")
    amend(second)
    assert seeds_check(second.studies) == []
    assert verify_study(second).study.seeds.blocks[0].first == "5003"


def test_edits_that_are_committed_already_may_be_amended_too(second: StudyPaths) -> None:
    edit(second, fewer)
    git(second.repository, "commit", "-q", "-a", "-m", "Edited")
    amend(second)
    verify_study(second)


def test_nothing_changed_is_refused(second: StudyPaths) -> None:
    with pytest.raises(WrongState, match="nothing changed"):
        amend(second)
    verify_study(second)
    amend(second, environments={"plain": "0" * 64})
    assert verify_study(second).manifest.environments == {"plain": "0" * 64}


def test_after_a_collection_was_started_it_is_refused(second: StudyPaths) -> None:
    fabricate_records(second, skip=[("main.fair.old", 0)], end=False)
    edit(second, fewer)
    with pytest.raises(WrongState, match="collecting: an amendment comes before any data") as caught:
        amend(second)
    assert "prereg deviate" in (caught.value.next_step or "")


def test_with_evidence_or_after_the_end_it_is_refused(second: StudyPaths) -> None:
    place = second.shard_records("main.fair.old", 0)
    place.parent.mkdir(parents=True)
    place.write_bytes(b"x")
    edit(second, fewer)
    with pytest.raises(WrongState, match="evidence already"):
        amend(second)
    place.unlink()
    place.parent.rmdir()
    second.records.rmdir()
    git(second.repository, "checkout", "--", "studies")
    close_study(second, "No money.", unfinished=True, key=signing_key(second), principal="ada@example.org")
    edit(second, fewer)
    with pytest.raises(WrongState, match="is closed"):
        amend(second)


def test_edition_and_name_stay(second: StudyPaths) -> None:
    edit(second, lambda protocol: protocol.pop("edition"))
    with pytest.raises(WrongState, match="keeps the edition"):
        amend(second)
    edit(second, lambda protocol: protocol.update(edition=2, study="toss"))
    with pytest.raises(PreregError, match="toss"):
        amend(second)
    moved = second.root.rename(second.studies / "toss")
    for name in ("seeds", "events", "predicates", "predictions"):
        edit(StudyPaths(root=moved), lambda value: value.update(study="toss"), f"{name}.json")
    with pytest.raises(PreregError):
        amend(StudyPaths(root=moved))


def test_edition_1_has_no_amendments(sealed: StudyPaths) -> None:
    edit(sealed, fewer)
    with pytest.raises(WrongState, match="edition 1 has no amendments"):
        amend(sealed)


def test_faults_of_the_edited_study_and_strangers_are_refused(second: StudyPaths) -> None:
    before = files(second.root)
    with pytest.raises(UsageError, match="is empty"):
        amend(second, reason=" ")
    edit(second, fewer)
    for who in ("col", "eve"):
        with pytest.raises(Untrusted):
            amend(second, who=who)
    edit(second, lambda protocol: protocol.update(alpha=7))
    with pytest.raises(PreregError, match=r"alpha|7"):
        amend(second)
    after = files(second.root)
    assert {n for n in after if after[n] != before.get(n)} == {"protocol.json"}


def test_code_that_was_edited_is_not_replaced_in_silence(second: StudyPaths) -> None:
    with (second.code / "harness" / "worker.py").open("a") as file:
        file.write("# mine\n")
    with pytest.raises(WrongState, match="is written by prereg alone"):
        amend(second)


# -- what is left by a kill ------------------------------------------------------------------------------


class Killed(BaseException):
    pass


def cuts(paths: StudyPaths, monkeypatch: pytest.MonkeyPatch, after: int) -> bool:
    """Amend, and die, undoing nothing, before the write or git call of that number; whether it died."""
    count = 0

    def mortal(call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **options: Any) -> Any:
            nonlocal count
            count += 1
            if count > after:
                raise Killed
            return call(*args, **options)

        return counted

    with monkeypatch.context() as patch:
        for name in ("write_whole", "head_bytes", "sign_head", "check_committed", "annotate_seal"):
            patch.setattr(amending, name, mortal(getattr(amending, name)))
        patch.setattr(Path, "unlink", mortal(Path.unlink))
        patch.setattr(os, "fsync", mortal(os.fsync))
        patch.setattr(Repo, "commit", mortal(Repo.commit))
        patch.setattr(amending, "take_back", lambda *_: False)
        try:
            amend(paths)
        except Killed:
            return True
    return False


@pytest.mark.parametrize("after", [0, 1, 8, 13, 16, 20, 24, 25, 27, 31, 35, 36, 37])
def test_an_amendment_that_was_cut_off_is_made_by_the_next_run(
    second: StudyPaths, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    edit(second, fewer)
    wanted, old = (second.root / "protocol.json").read_bytes(), digest(second.manifest.read_bytes())
    died = cuts(second, monkeypatch, after)
    made = amend(second) if died else None
    verified = verify_study(second)
    assert [e.type for e in verified.entries] == ["sealed", "amended"]
    assert (second.root / "protocol.json").read_bytes() == wanted
    assert verified.manifest.amends == old
    assert Repo.find(second.root).tag("prereg/coin/amended-1") is not None
    assert made is None or made.seal == verified.seal


def test_a_failure_that_is_no_kill_leaves_the_old_seal_at_once(
    second: StudyPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit(second, fewer)
    before = files(second.root)

    def refuse(*_: object, **__: object) -> str:
        raise WrongState("git is busy")

    with monkeypatch.context() as patch:
        patch.setattr(Repo, "commit", refuse)
        with pytest.raises(WrongState, match="busy"):
            amend(second)
    assert files(second.root) == before
    assert not take_back(second, Repo.find(second.root))
